"""Cross-validation: nothing leaks, warm is cold, baselines are those of every held-out table."""

import functools
import json
import warnings

import numpy as np
import pandas as pd
import pytest

from irtjax.data.responses import ResponseMatrix
from irtjax.errors import InputError, IrtjaxWarning
from irtjax.evaluate.baselines import BASELINES, predict_baselines
from irtjax.evaluate.crossval import FIT, cross_validate
from irtjax.evaluate.fold_fits import block_folds
from irtjax.evaluate.fold_metrics import FOLD_METRICS
from irtjax.evaluate.folds import OVER, make_folds
from irtjax.evaluate.heldout import evaluate_heldout
from irtjax.fit.routes import choose_route
from irtjax.fit.settings import FitSettings
from irtjax.model.priors import Priors
from tests.fit.fitting import KINDS, quiet_fit, simulated

N_FOLDS = 3


@functools.cache
def validated(over, kind="2pl"):
    spec, settings = KINDS[kind]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IrtjaxWarning)
        return cross_validate(
            simulated(kind).data,
            spec.dims,
            folds=N_FOLDS,
            over=over,
            family=spec.family,
            seed=5,
            **settings,
        )


def predicted(data, over, fold, full=None, kind="2pl"):
    """Predictions of a fold's scored cells, the cells, and the state they started from."""
    spec, settings = KINDS[kind]
    group = data.groups("benchmark")[0] if "group" in settings else None
    folds = make_folds(data, over, N_FOLDS, 5)
    blocked = block_folds(folds, group, None)
    estimator = choose_route(
        data, spec, Priors(), FitSettings(group=settings.get("group"), estimator="marginal-items")
    )[0].estimator
    full = full or blocked.fitted(estimator, spec, Priors(), 0, 1000)
    found = blocked.predicted(estimator, full, fold, 1000)
    return found.probability, folds.scored(fold), full


def flipped(data, model, item):
    dense = data.dense.copy()
    dense[model, item] = 1 - dense[model, item]
    return data.replace(dense=dense)


@pytest.mark.parametrize("over", OVER)
def test_a_held_out_response_does_not_change_its_own_prediction(over):
    data = simulated("2pl").data
    probability, cells, full = predicted(data, over, 0)
    for k in (0, len(cells) // 2):
        other = flipped(data, cells.model_index[k], cells.item_index[k])
        again, _, _ = predicted(other, over, 0, full)
        np.testing.assert_array_equal(again, probability)


@pytest.mark.parametrize("over", ["items", "models"])
def test_what_places_an_item_or_model_does_change_its_predictions(over):
    data = simulated("2pl").data
    probability, cells, full = predicted(data, over, 0)
    folds = make_folds(data, over, N_FOLDS, 5)
    is_placing = folds.code.dense == 0
    model, item = (int(index[7]) for index in np.nonzero(is_placing))
    again, _, _ = predicted(flipped(data, model, item), over, 0, full)
    unit, index = (item, cells.item_index) if over == "items" else (model, cells.model_index)
    assert np.all(again[index == unit] != probability[index == unit])
    # Placing goes on until the whole fold has settled: a pass more moves the others' last digit.
    np.testing.assert_allclose(again[index != unit], probability[index != unit], atol=1e-6)


@pytest.mark.parametrize("kind", ["2pl", "2pl-2d"])
def test_folds_over_cells_equal_fits_that_start_anew(kind):
    spec, settings = KINDS[kind]
    data = simulated(kind).data
    folds = make_folds(data, "cells", N_FOLDS, 5)
    # Not fold 1: there the cold fit of two dims stalls, .07 from where both end if they go on.
    warm, cells, _ = predicted(data, "cells", 0, kind=kind)
    cold = quiet_fit(folds.fitted(0), spec, **settings)
    assert cold.status == "converged"
    expected = cold.predict_cells(cells.model_index, cells.item_index)
    np.testing.assert_allclose(warm, expected, atol=1e-4)


def test_a_cold_start_gives_the_same_table():
    warm = validated("cells")
    cold = cross_validate(simulated("2pl").data, 1, folds=N_FOLDS, seed=5, start="cold")
    assert cold.chosen_dims == warm.chosen_dims
    for metric in FOLD_METRICS:
        np.testing.assert_allclose(
            cold.table[metric], warm.table[metric], atol=2e-3, err_msg=metric
        )
    np.testing.assert_allclose(cold.table["log_loss"], warm.table["log_loss"], atol=1e-5)


def test_baselines_equal_those_of_every_held_out_table():
    data = simulated("2pl").data
    found = validated("cells")
    folds = make_folds(data, "cells", N_FOLDS, 5)
    cells = folds.scored(1)
    train = quiet_fit(folds.fitted(1))
    expected = evaluate_heldout(train, cells, chosen="fold 1")
    rows = found.by_fold[found.by_fold["fold"] == 1].set_index("predictor")
    for name in BASELINES:
        for metric in ("accuracy", "log_loss"):
            assert rows.loc[name, metric] == expected["baselines"][name][metric]
        assert rows.loc[name, "n"] == expected["n"]
    assert rows.loc["2pl", "log_loss"] == pytest.approx(expected["model"]["log_loss"], abs=1e-5)


@pytest.mark.parametrize("over", ["items", "models"])
def test_baselines_learn_from_all_but_the_scored_cells(over):
    data = simulated("2pl").data
    folds = make_folds(data, over, N_FOLDS, 5)
    cells = folds.scored(2)
    group = data.groups("benchmark")[0]
    p = predict_baselines(folds.unscored(2), cells, group)["model_benchmark_mean"]
    y = cells.response
    loss = -np.mean(y * np.log(p) + (1 - y) * np.log(1 - p))
    rows = validated(over).by_fold
    row = rows[(rows["fold"] == 2) & (rows["predictor"] == "model_benchmark_mean")]
    assert row["log_loss"].item() == pytest.approx(loss, rel=1e-6)


@pytest.mark.parametrize("over", OVER)
@pytest.mark.parametrize("kind", ["2pl", "2pl-2d"])
def test_the_fit_predicts_better_than_means_and_nearly_as_well_as_the_truth(over, kind):
    made = simulated(kind)
    loss = validated(over, kind).table.set_index("predictor")["log_loss"]
    assert loss[FIT] < loss["model_mean"] - 0.02
    cells = made.data.cells()
    p = made.truth.cell_probability(cells)
    y = cells.response
    truth = -np.mean(y * np.log(p) + (1 - y) * np.log(1 - p))
    assert truth < loss[FIT] < truth + 0.1


def test_the_table_and_what_json_holds():
    found = validated("cells", "2pl-2d")
    data = simulated("2pl-2d").data
    names = [FIT, "model_mean", "model_benchmark_mean", "1pl", "2pl"]
    assert found.table["predictor"].tolist() == names
    assert found.table["dims"].fillna(0).tolist() == [2, 0, 0, 0, 1]
    assert (found.table["n"] == data.n_responses).all()
    assert len(found.by_fold) == N_FOLDS * len(names)
    by_hand = found.by_fold[found.by_fold["predictor"] == FIT]["log_loss"]
    fit = found.table.iloc[0]
    assert fit["log_loss"] == pytest.approx(by_hand.mean())
    assert fit["log_loss_se"] == pytest.approx(by_hand.std(ddof=1) / np.sqrt(N_FOLDS))
    assert fit["spearman_pooled"] > 0.9
    text = json.dumps(found.to_dict(), allow_nan=False)
    assert json.loads(text)["chosen_dims"] == found.chosen_dims == 2
    assert json.loads(text)["table"][1]["dims"] is None


def test_the_seed_decides():
    again = cross_validate(simulated("2pl").data, [1], folds=N_FOLDS, seed=5)
    pd.testing.assert_frame_equal(again.by_fold, validated("cells").by_fold)


def test_items_with_one_response_are_reported():
    dense = simulated("2pl").data.dense.copy()
    dense[1:, :2] = -1
    dense[0, :2] = 1
    with pytest.warns(IrtjaxWarning, match="2 items with fewer than two responses"):
        found = cross_validate(
            ResponseMatrix.from_dense(dense), 1, folds=N_FOLDS, over="items", seed=5
        )
    assert len(found.notes) == 1


def test_fits_that_do_not_converge_are_reported():
    with pytest.warns(IrtjaxWarning) as caught:
        found = cross_validate(simulated("2pl").data, 1, folds=N_FOLDS, max_steps=2)
    assert [str(each.message) for each in caught] == [
        f"3 of 3 folds of {name} at dims 1: max_steps" for name in ("2pl", "fit")
    ]
    assert set(found.by_fold["status"].dropna()) == {"max_steps"}


@pytest.mark.parametrize(
    "settings, said",
    [
        ({"dims": []}, "no dims"),
        ({"dims": [1, 2, 1]}, "dims 1 is listed twice"),
        ({"dims": [0]}, "at least 1, not 0"),
        ({"folds": 1}, "at least 2"),
        ({"over": "rows"}, "not 'rows'"),
        ({"over": "models", "folds": 7}, "there are 6"),
        ({"over": "models", "folds": 2, "dims": [3]}, "3 of 6 are left in a fold"),
        ({"family": "1pl", "dims": [2]}, "not identified"),
        ({"family": "5pl"}, "'5pl'"),
        ({"estimator": "best"}, "'best'"),
        ({"group": "benchmark"}, "no item metadata column"),
        ({"start": "hot"}, "'hot'"),
        ({"start": "cold", "over": "items"}, "cannot place"),
        ({"seed": -1}, "seed"),
        ({"dims": "12"}, "dims must be a whole number or several, not '12'"),
        ({"dims": None}, "dims must be a whole number or several, not None"),
        ({"dims": [1.5]}, "dims must be a whole number of at least 1, not 1.5"),
        ({"components": 3}, "components=3 belongs to item distribution mixture"),
        ({"priors": "off"}, "priors must be Priors, not 'off'"),
        ({"priors": Priors(guessing=(4.0, 9.0))}, "family 2pl has no guessing"),
        ({"devices": 3}, "devices must be a list"),
    ],
)
def test_bad_settings(settings, said):
    data = ResponseMatrix.from_dense(np.random.default_rng(0).integers(0, 2, (6, 20)))
    with pytest.raises(InputError, match=said) as error:
        cross_validate(data, **{"dims": 1, "folds": 3} | settings)
    assert "\n" not in str(error.value)

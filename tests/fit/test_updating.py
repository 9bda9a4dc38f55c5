"""`update`: the estimates of a fit of all responses, in fewer steps, on the old fit's scale."""

import dataclasses
import functools

import numpy as np
import pandas as pd
import pytest

from irtjax.data.responses import ResponseMatrix
from irtjax.data.splits import holdout
from irtjax.errors import InputError
from irtjax.fit.updating import update
from irtjax.model.spec import ModelSpec
from tests.fit.fitting import N_ITEMS, N_MODELS, quiet_fit, simulated

N_OLD = N_MODELS - 2


def cut(data, models, items):
    return ResponseMatrix.from_dense(
        data.to_dense()[np.ix_(models, items)],
        model_ids=list(data.model_ids[models]),
        item_ids=list(data.item_ids[items]),
        item_metadata=data.item_metadata.iloc[items].reset_index(drop=True),
    )


CASES = {"2pl": {}, "2pl-2d": {"group": "benchmark"}}


@functools.cache
def updated(kind):
    """The fit of most models and items, and of all after the rest has arrived."""
    data, every = simulated(kind).data, np.arange(N_ITEMS)
    spec = ModelSpec("2pl", 2 if kind == "2pl-2d" else 1)
    old = quiet_fit(cut(data, np.arange(N_OLD), every[:-10]), spec, **CASES[kind])
    # All items of the new models, and the new items of some old ones with answers known already.
    found = update(old, cut(data, np.arange(N_OLD - 10, N_MODELS), every))
    return old, found, quiet_fit(found.fit.data, spec, **CASES[kind])


@pytest.mark.parametrize("kind", CASES)
def test_predictions_are_those_of_a_fit_of_all_responses_in_no_more_steps(kind):
    _, found, full = updated(kind)
    models, items = np.indices((N_MODELS, N_ITEMS)).reshape(2, -1)
    away = found.fit.predict_cells(models, items) - full.predict_cells(models, items)
    assert found.fit.status == "converged"
    assert np.abs(away).max() < 1e-3
    assert found.fit.report["n_steps"] <= full.report["n_steps"]
    assert found.summary["start"] == "warm"
    counts = [found.summary[f"n_new_{name}"] for name in ("models", "items")]
    assert counts == [2, 10]


@pytest.mark.parametrize("kind", CASES)
def test_the_old_models_keep_their_scale_signs_and_order_of_dims(kind):
    old, found, _ = updated(kind)
    before = np.asarray(old.parameters.ability, float)
    now = np.asarray(found.fit.parameters.ability, float)[:N_OLD]
    np.testing.assert_allclose(now.mean(axis=0), before.mean(axis=0), atol=1e-5)
    np.testing.assert_allclose(np.cov(now.T), np.cov(before.T), atol=1e-4)
    for k in range(before.shape[1]):
        assert np.corrcoef(before[:, k], now[:, k])[0, 1] > 0.95
    np.testing.assert_array_equal(found.fit.ability_correlations(), old.ability_correlations())


def test_moves_are_in_standard_errors_of_the_old_fit():
    old, found, _ = updated("2pl")
    models, before = found.models, old.abilities()
    assert list(models["model_id"]) == list(before["model_id"])
    away = models["dim1_ability"] - models["dim1_ability_before"]
    expected = away / before["dim1_ability_se"]
    np.testing.assert_allclose(models["dim1_ability_moved"], expected, rtol=1e-6, atol=1e-9)
    summary = found.summary["abilities"]
    assert summary["max"] == pytest.approx(np.abs(expected).max())
    assert summary["rms"] == pytest.approx(np.sqrt(np.mean(expected**2)))
    assert summary["farthest"] == models["model_id"][np.abs(expected).argmax()]
    assert len(found.items) == old.data.n_items
    assert 0 < found.summary["items"]["rms"] < 1


def test_where_models_are_integrated_out_the_items_keep_the_scale():
    tall = ResponseMatrix.from_dense(simulated("2pl").data.to_dense().T[:, :12])
    old = quiet_fit(cut_rows(tall, slice(0, 220)), estimator="marginal-models")
    found = update(old, cut_rows(tall, slice(220, N_ITEMS)))
    full = quiet_fit(tall, estimator="marginal-models")
    models, items = np.indices((N_ITEMS, 12)).reshape(2, -1)
    away = found.fit.predict_cells(models, items) - full.predict_cells(models, items)
    assert np.abs(away).max() < 1e-3
    assert found.summary["n_new_models"] == 20


def cut_rows(data, rows):
    return ResponseMatrix.from_dense(data.to_dense()[rows], model_ids=list(data.model_ids[rows]))


def test_held_out_cells_stay_out():
    data = simulated("2pl").data
    train, cells = holdout(cut(data, np.arange(N_OLD), np.arange(N_ITEMS)), 0.1, seed=0)
    old = dataclasses.replace(quiet_fit(train), heldout=cells)
    found = update(old, data)
    pd.testing.assert_index_equal(
        pd.Index(found.fit.data.model_ids[:N_OLD]), pd.Index(old.data.model_ids)
    )
    dense = found.fit.data.to_dense()
    assert (dense[cells.model_index, cells.item_index] == -1).all()
    assert found.fit.heldout is cells
    assert found.summary["n_new_responses"] == int((data.to_dense()[N_OLD:] >= 0).sum())


def test_what_cannot_be_updated_is_refused_in_one_line():
    old, _, _ = updated("2pl")
    flipped = 1 - old.data.to_dense()[:1, :5]
    other = ResponseMatrix.from_dense(
        np.where(flipped > 1, -1, flipped),
        model_ids=list(old.data.model_ids[:1]),
        item_ids=list(old.data.item_ids[:5]),
    )

    def reported(**more):
        return dataclasses.replace(old, report=old.report | more)

    for fit, responses, message in (
        (old, old.data, "there is nothing new"),
        (old, other, "pass --replace to take the new"),
        (old, "week.csv", "update takes a ResponseMatrix"),
        ("run", other, "update takes a FitResult"),
        (reported(status="diverged"), other, "the fit diverged"),
        (reported(anchors={}), other, "an anchored fit is not updated"),
        (reported(dim_names=["x"]), other, "a confirmatory fit is not updated"),
        (reported(estimator="psn"), other, "a fit of psn is not updated"),
    ):
        with pytest.raises(InputError, match=message):
            update(fit, responses)

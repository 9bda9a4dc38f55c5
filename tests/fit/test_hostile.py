"""Shapes and data on which such estimators break: finite, flagged, kept, never an exception."""

import numpy as np
import pandas as pd
import pytest

from irtjax.data.responses import ResponseMatrix
from irtjax.errors import InputError, IrtjaxWarning
from irtjax.fit.api import fit
from irtjax.model.spec import ModelSpec
from tests.fit.fitting import KINDS, N_ITEMS, N_MODELS, fitted, quiet_fit, simulated

SHAPE = (N_MODELS, N_ITEMS)


def run(dense, spec=None, group=None, **settings):
    """Fit an array, with one benchmark name an item.

    Of the common shape the items also have the common benchmarks, so that it compiles once.
    """
    metadata = None if group is None else pd.DataFrame({"benchmark": group})
    if group is None and np.shape(dense) == SHAPE:
        metadata = simulated("2pl").data.item_metadata
    weight = settings.pop("weight", None)
    data = ResponseMatrix.from_dense(dense, weight=weight, item_metadata=metadata)
    return quiet_fit(data, spec, group=None if group is None else "benchmark", **settings)


def check(result):
    """Everything that is estimated is finite, every row is there, and the status is one of four."""
    items, models = result.item_parameters(), result.abilities()
    assert len(items) == result.data.n_items
    assert len(models) == result.data.n_models
    for table in (items, models):
        # A difficulty is -intercept / slope, and p_correct and clustered errors may be empty.
        estimated = table.select_dtypes("number").filter(regex="^(?!difficulty|p_correct|.*clus)")
        assert np.isfinite(estimated.to_numpy()).all(), table.columns[~np.isfinite(estimated).all()]
    dims = result.spec.dims
    ability = models[[f"dim{k + 1}_ability" for k in range(dims)]].to_numpy()
    scored = ability[models.n_responses > 0]
    # Standard unless the data support no such dim at all; then small, not blown up.
    np.testing.assert_allclose(scored.mean(axis=0), 0, atol=1e-4)
    assert (scored.std(axis=0) < 1 + 1e-3).all()
    error = models[[f"dim{k + 1}_ability_se" for k in range(dims)]].to_numpy()
    # The prior's standard deviation, turned into the published frame, is all there is to not know.
    assert (error > 0).all()
    assert (error < 1.5).all()
    assert (items.filter(regex="slope_se|intercept_se") >= 0).to_numpy().all()
    p = result.predict_cells(np.zeros(result.data.n_items, int), np.arange(result.data.n_items))
    assert np.all((p >= 0) & (p <= 1))
    assert result.status in ("converged", "max_steps", "stalled")
    assert result.report["reason"]


def noise(shape, seed=0):
    """Responses that say nothing."""
    return np.random.default_rng(seed).integers(0, 2, shape)


@pytest.mark.parametrize("value", [0, 1])
def test_a_constant_matrix(value):
    result = run(np.full(SHAPE, value))
    check(result)
    flag = "all_right" if value else "all_wrong"
    assert (result.item_parameters()["flags"].str.contains(flag)).all()
    assert (result.abilities()["flags"].str.contains(flag)).all()
    score = result.abilities().expected_score.to_numpy()
    np.testing.assert_allclose(score, value, atol=0.02)
    # All models answered alike: nobody is above the others.
    slope = result.item_parameters().dim1_slope
    np.testing.assert_allclose(slope, 0, atol=1e-3)


def test_noise_has_no_slopes_and_abilities_that_nobody_knows():
    result = run(noise(SHAPE))
    check(result)
    assert result.item_parameters().dim1_slope.abs().max() < 0.3
    assert result.abilities().dim1_ability_se.min() > 0.5


def test_models_that_differ_in_nothing_but_right_or_wrong_throughout():
    result = run(np.repeat(noise((N_MODELS, 1)), N_ITEMS, axis=1))
    check(result)
    models = result.abilities()
    right = models["flags"] == "all_right"
    assert right.any()
    assert models.dim1_ability[right].min() > models.dim1_ability[~right].max()


def test_case_5_all_right_and_all_wrong_models_and_items_are_kept_finite_and_wide():
    dense = simulated("2pl").data.to_dense().copy()
    dense[0], dense[1] = np.where(dense[:2] < 0, -1, [[1], [0]])
    dense[:, 0], dense[:, 1] = np.where(dense[:, :2] < 0, -1, [1, 0]).T
    result = run(dense)
    check(result)
    models, items = result.abilities(), result.item_parameters()
    # Each answered the item that the other kind answers, so that only one stays extreme.
    assert models.dim1_ability.idxmax() == 0
    assert models.dim1_ability.idxmin() == 1
    typical = models.dim1_ability_se[2:].median()
    assert models.dim1_ability_se[:2].min() > 2 * typical
    assert items["flags"][0] == "all_right"
    assert items["flags"][1] == "all_wrong"
    assert items.intercept[0] > items.intercept[2:].quantile(0.9)
    assert items.intercept[1] < items.intercept[2:].quantile(0.1)
    assert items.intercept_se[:2].min() > items.intercept_se[2:].median()


def test_case_8_a_model_and_an_item_without_responses_are_kept_at_the_priors_values():
    dense = simulated("2pl").data.to_dense().copy()
    dense[3], dense[:, 5] = -1, -1
    metadata = simulated("2pl").data.item_metadata
    data = ResponseMatrix.from_dense(dense, item_metadata=metadata)
    with pytest.warns(IrtjaxWarning) as caught:
        result = fit(data, KINDS["2pl"][0])
    said = [str(warning.message) for warning in caught]
    assert any("1 model without responses (first: 'model-3')" in text for text in said)
    assert any("1 item without responses (first: 'item-5')" in text for text in said)
    check(result)
    models, items = result.abilities(), result.item_parameters()
    assert models["flags"][3] == "no_responses"
    assert items["flags"][5] == "no_responses"
    assert models.dim1_ability[3] == 0
    # The prior N(0, 1) of the loop's frame, whose unit is within some percent of the published sd.
    assert models.dim1_ability_se[3] == pytest.approx(1, abs=0.1)
    mean = result.parameters.group_mean[0, 0]
    sd = np.sqrt(np.diag(result.parameters.group_covariance[0, 0]))
    np.testing.assert_allclose(items.loc[5, ["dim1_slope", "intercept"]].to_list(), mean, atol=1e-3)
    errors = items.loc[5, ["dim1_slope_se", "intercept_se"]].to_list()
    np.testing.assert_allclose(errors, sd, rtol=1e-2)
    assert items.intercept_se[5] > items.intercept_se.drop(5).max()
    # The others do not notice.
    kept = models.drop(3).dim1_ability
    assert np.corrcoef(kept, fitted("2pl").abilities().dim1_ability.drop(3))[0, 1] > 0.999


def test_case_7_four_to_six_responses_an_item():
    rng = np.random.default_rng(3)
    dense = np.full(SHAPE, -1)
    full = simulated("2pl").data.to_dense()
    for j in range(N_ITEMS):
        models = rng.choice(N_MODELS, rng.integers(4, 7), replace=False)
        dense[models, j] = full[models, j]
    result = run(dense)
    check(result)
    items = result.item_parameters()
    few = items.n_responses <= 5
    assert (items["flags"].str.contains("few_responses") == few).all()

    def unknown(fitted_):
        """The share of the prior's standard deviation that is left in the slopes' errors."""
        prior = np.sqrt(fitted_.parameters.group_covariance[0, 0, 0, 0])
        return fitted_.item_parameters().dim1_slope_se.mean() / prior

    # .76 with 5 responses an item, .66 with the 22 of the full matrix.
    assert unknown(result) > 0.7
    assert unknown(result) > unknown(fitted("2pl")) + 0.05


@pytest.mark.parametrize("weight", [1e-3, 1.0, 1e6])
def test_fractions_with_weights_from_a_thousandth_to_a_million(weight):
    # The same program for all three: a fraction, and a weight that is not 1 everywhere.
    dense = np.random.default_rng(0).random(SHAPE)
    each = np.full(SHAPE, weight)
    each[0, 0] *= 2
    check(run(dense, weight=each))


def test_two_models():
    result = run(noise((2, 6)))
    check(result)
    identical = run(np.repeat(noise((1, 6)), 2, axis=0))
    check(identical)


def test_one_item():
    result = run([[0], [1]])
    check(result)
    models = result.abilities()
    assert models.dim1_ability_se.min() > 0.5
    assert models.dim1_ability[0] < models.dim1_ability[1]


def test_as_many_dims_as_can_be():
    result = run(noise((4, 60)), ModelSpec("2pl", 3))
    check(result)
    with pytest.raises(InputError, match="4 dims need more than 4 models with responses"):
        run(noise((4, 60)), ModelSpec("2pl", 4))


def test_two_hundred_groups_of_two_items_one_of_one_and_one_that_nobody_answered():
    dense = noise((12, 406))
    dense[:, 401:] = -1
    group = np.repeat([f"g{k:03d}" for k in range(200)], 2)
    result = run(dense, group=[*group, "one", *["nobody"] * 5])
    check(result)
    assert result.parameters.effect.shape == (12, 202)
    # Nobody has an effect on items that nobody answered.
    np.testing.assert_allclose(result.abilities().nobody_effect, 0, atol=1e-3)


def test_a_benchmark_whose_items_all_have_the_same_responses():
    dense = simulated("2pl-2d").data.to_dense().copy()
    dense[:, :60] = dense[:, :1]
    group = np.repeat(["same", "b", "c", "d"], 60)
    result = run(dense, KINDS["2pl-2d"][0], group=group)
    check(result)
    items = result.item_parameters()
    same = items[items.benchmark == "same"]
    np.testing.assert_allclose(same.dim1_slope, same.dim1_slope[0], atol=1e-3)


@pytest.mark.parametrize("n_items", [181, 200, 239])
def test_a_number_of_items_that_is_no_multiple_of_the_block(n_items):
    data = simulated("2pl").data
    group = data.item_metadata["benchmark"].iloc[:n_items]
    dense = ResponseMatrix.from_dense(
        data.to_dense()[:, :n_items], item_metadata=pd.DataFrame({"benchmark": group})
    )
    result = quiet_fit(dense)
    check(result)
    # Padding has no say: the items that are there are those of the larger fit, nearly.
    if n_items == 200:
        full = fitted("2pl").abilities().dim1_ability
        assert np.corrcoef(result.abilities().dim1_ability, full)[0, 1] > 0.99

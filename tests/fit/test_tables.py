"""items.csv and models.csv from given parameters: conversions, delta-method errors, flags."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

from irtjax.data.responses import ResponseMatrix
from irtjax.fit.result import FitResult, FittedParameters
from irtjax.fit.rotation import loadings
from irtjax.fit.tables import FEW_RESPONSES, slope_and_intercept
from irtjax.model.spec import ModelSpec
from tests.fit.bridge import packed

N_MODELS, N_ITEMS = 9, 12


def result(dims=2, n_components=1, seed=0, response=None, slope=None, group=None):
    """A `FitResult` with random parameters and two benchmarks; nothing was fitted."""
    rng = np.random.default_rng(seed)
    size = dims + 1
    mean = rng.normal(size=(N_ITEMS, n_components, size))
    if slope is not None:
        mean[:, :, :-1] = slope[:, None]
    root = rng.normal(0, 0.1, (N_ITEMS, n_components, size, size))
    covariance = packed(root @ root.swapaxes(-1, -2) + 0.02 * np.eye(size))
    if response is None:
        response = rng.integers(0, 2, (N_MODELS, N_ITEMS))
    metadata = pd.DataFrame(
        {"source": ["s"] * N_ITEMS, "benchmark": ["easy", "hard"] * (N_ITEMS // 2)}
    )
    spread = rng.normal(0, 0.1, (N_MODELS, dims, dims))
    ability_covariance = spread @ spread.swapaxes(1, 2) + 0.01 * np.eye(dims)
    data = ResponseMatrix.from_dense(
        response,
        item_metadata=metadata,
        model_metadata=pd.DataFrame({"maker": [f"m{k}" for k in range(N_MODELS)]}),
    )
    n_groups = 2 if group else 1
    # Asymptotes of each item: without groups all have the first group's.
    codes = np.arange(N_ITEMS) % n_groups
    nothing = np.zeros(N_ITEMS)
    parameters = FittedParameters(
        ability=rng.normal(size=(N_MODELS, dims)),
        ability_covariance=ability_covariance,
        ability_se_clustered=np.full((N_MODELS, dims), np.nan),
        clustered_degrees_of_freedom=np.full((N_MODELS, dims), np.nan),
        effect=rng.normal(size=(N_MODELS, 2)) if group else None,
        effect_variance=np.array(0.2),
        expected_score=rng.random(N_MODELS),
        mean=mean,
        covariance=covariance,
        share=rng.dirichlet(np.ones(n_components), N_ITEMS),
        group_mean=np.zeros((n_groups, n_components, size)),
        group_covariance=np.zeros((n_groups, n_components, size, size)),
        group_log_weight=np.zeros((n_groups, n_components)),
        guessing=codes / 10,
        feasibility=1 - codes / 20,
        guessing_se=nothing + 0.01,
        feasibility_se=nothing + 0.02,
        population_mean=np.zeros((1, dims)),
        population_covariance=np.eye(dims)[None],
    )
    return FitResult(data, ModelSpec("2pl", dims), parameters, group)


def _with(fit, **changes):
    """The same fit with other parameters."""
    return dataclasses.replace(fit, parameters=dataclasses.replace(fit.parameters, **changes))


def _published(point):
    """Difficulty, discrimination and loadings of one item's `(slope, intercept)`."""
    slope, intercept = point[:-1], point[-1]
    discrimination = slope[0] if len(slope) == 1 else np.sqrt(np.sum(slope**2))
    loading = slope / np.sqrt(1.702**2 + np.sum(slope**2))
    return np.array([-intercept / discrimination, discrimination, *loading])


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("n_components", [1, 3])
def test_published_parameters_and_their_delta_method_errors(dims, n_components):
    fit = result(dims, n_components)
    slope, intercept, covariance = slope_and_intercept(fit)
    point = np.column_stack([slope, intercept])
    # The mixture's mean and covariance, by the law of total covariance.
    share, mean = fit.parameters.share, fit.parameters.mean
    np.testing.assert_allclose(point, np.einsum("jc,jca->ja", share, mean), rtol=1e-12)
    between = np.einsum("jc,jca,jcb->jab", share, mean, mean) - np.einsum(
        "ja,jb->jab", point, point
    )
    within = np.einsum("jc,jcp->jp", share, fit.parameters.covariance)
    np.testing.assert_allclose(packed(covariance), within + packed(between), atol=1e-12)
    table, h = fit.item_parameters(), 1e-6
    names = ["difficulty", "discrimination", *(f"dim{k + 1}_loading" for k in range(dims))]
    values, errors = [], []
    for x, V in zip(point, covariance, strict=True):
        steps = h * np.eye(dims + 1)
        gradient = [(_published(x + step) - _published(x - step)) / (2 * h) for step in steps]
        values.append(_published(x))
        errors.append(np.sqrt(np.einsum("ak,ab,bk->k", gradient, V, gradient)))
    np.testing.assert_allclose(table[names], values, rtol=1e-9)
    np.testing.assert_allclose(table[[f"{name}_se" for name in names]], errors, rtol=1e-5)
    np.testing.assert_allclose(table["intercept"], intercept, rtol=1e-12)
    sd = np.sqrt(np.diagonal(covariance, axis1=1, axis2=2))
    raw = ["intercept_se", *(f"dim{k + 1}_slope_se" for k in range(dims))]
    np.testing.assert_allclose(table[raw], np.roll(sd, 1, axis=1), rtol=1e-9)


@pytest.mark.parametrize("dims", [1, 3])
def test_case_18_intercept_and_difficulty_convert_back(dims):
    table = result(dims).item_parameters()
    slope = table[[f"dim{k + 1}_slope" for k in range(dims)]].to_numpy()
    np.testing.assert_allclose(-table.difficulty * table.discrimination, table.intercept)
    # Loadings give the slopes back, on the scale of 1.702.
    loading = table[[f"dim{k + 1}_loading" for k in range(dims)]].to_numpy()
    rest = np.sqrt(1 - np.sum(loading**2, axis=1, keepdims=True))
    np.testing.assert_allclose(1.702 * loading / rest, slope)
    np.testing.assert_allclose(loadings(slope), loading)
    if dims > 1:
        np.testing.assert_allclose(table.discrimination, np.linalg.norm(slope, axis=1))
        assert (table.discrimination > 0).all()


def test_case_18_difficulty_is_the_logit_0_location():
    # One dim: P = 1/2 at theta = difficulty; more: at difficulty along the item's direction.
    one, many = result(1).item_parameters(), result(2).item_parameters()
    np.testing.assert_allclose(one.dim1_slope * one.difficulty + one.intercept, 0, atol=1e-9)
    slope = many[["dim1_slope", "dim2_slope"]].to_numpy()
    direction = slope / np.linalg.norm(slope, axis=1, keepdims=True)
    theta = direction * many.difficulty.to_numpy()[:, None]
    np.testing.assert_allclose((theta * slope).sum(axis=1) + many.intercept, 0, atol=1e-9)


@pytest.mark.parametrize("error", [0.1, 0.0])
@pytest.mark.parametrize("slope", [0.0, 4e-20])
def test_an_item_without_a_slope_has_no_difficulty_a_flag_and_no_warning(slope, error):
    slopes = np.ones((N_ITEMS, 1))
    slopes[3] = slope
    fit = result(1, slope=slopes)
    covariance = np.array(fit.parameters.covariance)
    covariance[3] = [[error**2, 0, error**2]]
    table = _with(fit, covariance=covariance).item_parameters()
    assert np.isnan(table.difficulty[3])
    assert table.discrimination[3] == slope
    assert table["flags"][3] == "weak_slope"
    assert np.isfinite(table.difficulty.drop(3)).all()


@pytest.mark.parametrize("variance", [-1e-9, np.nan, np.inf])
def test_a_variance_that_is_none_leaves_no_error_and_a_flag(variance):
    fit = result(2)
    item, model = np.array(fit.parameters.covariance), np.array(fit.parameters.ability_covariance)
    item[4, 0, 0], model[5, 1, 1] = variance, variance
    table = _with(fit, covariance=item).item_parameters()
    assert np.isnan(table.dim1_slope_se[4])
    assert table["flags"].str.contains("no_error").tolist() == [j == 4 for j in range(N_ITEMS)]
    table = _with(fit, ability_covariance=model).abilities()
    assert np.isnan(table.dim2_ability_se[5])
    assert table["flags"].str.contains("no_error").tolist() == [i == 5 for i in range(N_MODELS)]


def test_asymptotes_without_errors_are_flagged():
    nothing = np.full(N_ITEMS, 0.01)
    nothing[2] = np.inf
    table = _with(result(1), guessing_se=nothing).item_parameters()
    assert table["flags"].str.contains("no_error").tolist() == [j == 2 for j in range(N_ITEMS)]


@pytest.mark.parametrize("dims", [1, 2])
def test_case_20_negative_items_are_kept_and_flagged(dims):
    slope = np.full((N_ITEMS, dims), 0.2)
    slope[:, -1] = np.where(np.arange(N_ITEMS) % 3 == 0, -1.5, 1.1)
    table = result(dims, slope=slope).item_parameters()
    flagged = table["flags"].str.split(";").map(lambda flags: "negative_slope" in flags)
    assert flagged.tolist() == [j % 3 == 0 for j in range(N_ITEMS)]
    assert len(table) == N_ITEMS
    assert (table[f"dim{dims}_slope"] < 0).tolist() == flagged.tolist()


def test_flags_of_items_and_models():
    response = np.random.default_rng(0).integers(0, 2, (N_MODELS, N_ITEMS))
    response[:, 0], response[:, 1], response[:, 2] = 1, 0, -1
    response[:, 3] = -1
    response[:3, 3] = [1, 0, 1]
    response[0, :], response[1, :], response[2, :] = 1, 0, -1
    response[0, 2:4], response[1, 2:4] = -1, -1
    response[3, 3], response[4, 3] = 1, 0
    response[:, 0], response[:, 1] = np.where(response[:, :2] < 0, -1, [1, 0]).T
    fit = result(1, response=response, slope=np.ones((N_ITEMS, 1)))
    items, models = fit.item_parameters(), fit.abilities()
    assert items["flags"][:5].tolist() == [
        "all_right",
        "all_wrong",
        "no_responses",
        items["flags"][3],
        "",
    ]
    assert items["flags"][3] == "few_responses"
    assert 0 < items.n_responses[3] <= FEW_RESPONSES
    assert models["flags"][2] == "no_responses"
    assert items.n_responses.tolist() == (response >= 0).sum(axis=0).tolist()
    assert np.isnan(items.p_correct[2])
    assert np.isnan(models.p_correct[2])
    seen = np.ma.masked_less(response, 0)
    np.testing.assert_allclose(models.p_correct.drop(2), seen.mean(axis=1).compressed())


def test_columns_order_and_metadata():
    fit = result(2, group="benchmark")
    items, models = fit.item_parameters(), fit.abilities()
    assert list(items) == [
        *("item_id", "benchmark", "source", "difficulty", "discrimination", "guessing"),
        *("feasibility", "intercept", "dim1_slope", "dim2_slope", "dim1_loading", "dim2_loading"),
        *("difficulty_se", "discrimination_se", "guessing_se", "feasibility_se", "intercept_se"),
        *("dim1_slope_se", "dim2_slope_se", "dim1_loading_se", "dim2_loading_se"),
        *("n_responses", "p_correct", "flags"),
    ]
    assert list(models) == [
        *("model_id", "maker", "dim1_ability", "dim2_ability", "dim1_ability_se"),
        *("dim2_ability_se", "dim1_ability_se_clustered", "dim2_ability_se_clustered"),
        *("expected_score", "easy_effect", "hard_effect", "n_responses", "p_correct", "flags"),
    ]
    assert items.item_id.tolist() == fit.data.item_ids.tolist()
    assert models.model_id.tolist() == fit.data.model_ids.tolist()
    # Each item has the asymptotes of its own benchmark.
    assert items.guessing.tolist() == [0.0, 0.1] * (N_ITEMS // 2)
    assert items.feasibility.tolist() == [1.0, 0.95] * (N_ITEMS // 2)
    np.testing.assert_array_equal(models.hard_effect, fit.parameters.effect[:, 1])
    variance = np.diagonal(fit.parameters.ability_covariance, axis1=1, axis2=2)
    np.testing.assert_allclose(models[["dim1_ability_se", "dim2_ability_se"]], np.sqrt(variance))

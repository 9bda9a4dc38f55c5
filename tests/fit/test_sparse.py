"""Sparse blocks against the oracle's loops, and a fit to sparse data against one to dense."""

import dataclasses

import jax
import numpy as np
import pytest

from irtjax.data.responses import ResponseMatrix
from irtjax.data.simulate import simulate
from irtjax.fit.start import model_accuracy, start_abilities
from irtjax.fit.uncertainty import uncertainty_sums
from irtjax.model.spec import ModelSpec
from tests.fit import reference
from tests.fit.bridge import Placed, unpacked
from tests.fit.fitting import leaves, quiet_fit
from tests.tolerances import close, tolerance

ITEMS_PER_BLOCK = 48
SIZE = {"n_models": 100, "n_items": 400, "n_groups": 5, "missing": 0.9}
KINDS = {
    "2pl": {"dims": 2, "is_uncertain": True},
    "everything": {
        "dims": 2,
        "n_components": 2,
        "has_asymptotes": True,
        "is_fractional": True,
        "is_weighted": True,
        "is_uncertain": True,
    },
    "1pl": {"dims": 1, "has_effects": False, "is_free": (False, True), "n_nodes": 5},
}


def _problem(kind):
    """Few cells, an item without any, a model without any, and an item that all others answered."""
    problem = reference.random_problem(np.random.default_rng(7), **SIZE, **KINDS[kind])
    everyone, nobody, silent = 11, 20, 30
    problem.response[:, everyone] = np.random.default_rng(1).integers(0, 2, SIZE["n_models"])
    problem.response[:, nobody] = -1
    problem.response[silent] = -1
    problem.weight[silent] = 1
    return problem


@pytest.fixture(scope="module", params=list(KINDS))
def passed(request):
    """The problem in sparse blocks, what the oracle says, and what the estimator computed."""
    problem = _problem(request.param)
    placed = Placed(problem, ITEMS_PER_BLOCK, sparse_below=0.2)
    assert placed.blocks.cell_model is not None
    return placed, reference.renew(problem), *placed.renew()


@pytest.mark.oracle
def test_a_pass_over_sparse_blocks(passed):
    placed, expected, result, renewed = passed
    mean, covariance, share = placed.items_first(renewed)
    clear = np.max(np.abs(expected.covariance), axis=(1, 2, 3)) < 5
    assert clear.mean() > 0.9
    close(mean[clear], expected.mean[clear], kind="solve", scale=3)
    close(covariance[clear], expected.covariance[clear], kind="solve", scale=3)
    close(share[clear], expected.share[clear], kind="solve", scale=10)
    close(result.bound, expected.bound, kind="reduction")
    close(result.models.score, expected.score, kind="solve", scale=30)
    close(unpacked(result.models.information), expected.information, kind="solve", scale=30)
    if placed.effect is not None:
        close(result.effects.score, expected.effect_score, kind="solve", scale=10)
        close(result.effects.information, expected.effect_information, kind="solve", scale=10)
        close(result.effects.cross, expected.effect_cross, kind="solve", scale=10)
    moments = result.moments
    close(moments.count, expected.count, kind="solve", scale=30)
    close(moments.deviation, expected.deviation, kind="solve", scale=30)
    close(unpacked(moments.squares), expected.squares, kind="solve", scale=30)
    if placed.asymptotes is not None:
        close(moments.answers, expected.answers, kind="solve", scale=100)


@pytest.mark.oracle
def test_sums_for_standard_errors_are_those_of_dense_blocks(passed):
    # Dense ones are compared with the oracle in test_uncertainty.
    sparse = passed[0]
    both = []
    for placed in (sparse, Placed(sparse.problem, ITEMS_PER_BLOCK)):
        both.append(
            placed.run(
                lambda blocks, items, context: uncertainty_sums(blocks, items, context),
                placed.posteriors,
                placed.context,
            )
        )
    one, other = (leaves(each) for each in both)
    assert one.keys() == other.keys()
    for name, value in one.items():
        close(value, other[name], kind="solve", scale=30)


@pytest.mark.oracle
def test_starts_are_those_of_dense_blocks():
    # Also above 512 models, where the subspace is found by iteration, from the same vectors.
    for n_models in (100, 520):
        problem = reference.random_problem(
            np.random.default_rng(3), **SIZE | {"n_models": n_models}, dims=1
        )
        found = [
            placed.run(
                lambda blocks: (
                    start_abilities(blocks, 1, jax.random.key(0)),
                    model_accuracy(blocks),
                )
            )
            for placed in (Placed(problem, ITEMS_PER_BLOCK, sparse_below=s) for s in (0.2, 0.0))
        ]
        for one, other in zip(*(jax.tree.leaves(each) for each in found), strict=True):
            close(one, other, kind="fit")


@pytest.mark.parametrize("size", [7, None])
def test_the_size_of_sparse_blocks_does_not_matter(size):
    problem = _problem("2pl")
    one, first = (placed := Placed(problem, ITEMS_PER_BLOCK, sparse_below=0.2)).renew()
    other, second = (cut := Placed(problem, size, sparse_below=0.2)).renew()
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        close(a, b, kind="reduction", scale=30)
    for a, b in zip(placed.items_first(first), cut.items_first(second), strict=True):
        close(a, b, kind="solve")


@pytest.mark.devices
def test_sparse_blocks_on_four_devices_give_the_pass_of_one():
    problem = _problem("everything")
    results = []
    for n in (1, 4):
        placed = Placed(problem, 48, devices=jax.devices()[:n], sparse_below=0.2)
        assert len(placed.blocks.cell_model.sharding.device_set) == n
        result, renewed = placed.renew()
        results.append((result, placed.items_first(renewed)))
    for one, four in zip(*(jax.tree.leaves(each) for each in results), strict=True):
        close(four, one, kind="reduction", scale=30)


def _layouts(spec, *, weight=False, **settings):
    """The same few responses as sparse and as dense data."""
    dense = simulate(
        spec, n_models=60, n_items=240, n_benchmarks=3, missing=0.0, effect_sd=0.3, seed=0
    ).data
    rng = np.random.default_rng(1)
    response = np.where(rng.random(dense.dense.shape) < 0.15, dense.dense, -1)
    weights = rng.integers(1, 4, response.shape) if weight else None
    sparse = ResponseMatrix.from_dense(
        response, weight=weights, item_metadata=dense.item_metadata, **settings
    )
    assert sparse.sparse is not None
    dense_weight = None
    if weight:
        dense_weight = np.where(response >= 0, weights, 1).astype(np.float32)
    return sparse, sparse.replace(sparse=None, dense=sparse.to_dense(), dense_weight=dense_weight)


@pytest.mark.oracle
def test_a_fit_to_sparse_data_is_the_fit_to_dense_data():
    spec = ModelSpec("3pl", 2)
    sparse, dense = _layouts(spec, weight=True)
    settings = {"group": "benchmark", "item_distribution": "mixture", "components": 2}
    one, other = (quiet_fit(data, spec, **settings, max_steps=5) for data in (sparse, dense))
    assert one.report["n_steps"] == other.report["n_steps"]
    # Five steps: acceleration, and 40 responses a model for two dims, multiply rounding later on.
    bound = {"float32": 1e-2, "float64": 1e-8}[str(one.parameters.ability.dtype)]
    expected, actual = leaves(other.parameters), leaves(one.parameters)
    for name, value in expected.items():
        np.testing.assert_allclose(actual[name], value, rtol=bound, atol=bound, err_msg=name)


def test_case_7_five_responses_an_item():
    # 4 to 6 responses an item: wide errors, a flag, and abilities that are right all the same.
    spec, n_models, n_items = ModelSpec("2pl"), 60, 1_200
    simulated = simulate(spec, n_models=n_models, n_items=n_items, missing=0.0, seed=3)
    rng = np.random.default_rng(0)
    chosen = np.argsort(rng.random((n_models, n_items)), axis=0) < rng.integers(4, 7, n_items)
    data = ResponseMatrix.from_dense(np.where(chosen, simulated.data.dense, -1))
    assert data.sparse is not None
    result = quiet_fit(data, spec)
    assert result.status == "converged"
    items = result.item_parameters()
    few = items.n_responses <= 5
    assert 0.5 < few.mean() < 0.8
    np.testing.assert_array_equal(items["flags"].str.contains("few_responses"), few)
    # Nearly as wide as the items differ: five responses say little.
    spread = np.sqrt(np.asarray(result.parameters.group_covariance)[0, 0, -1, -1])
    assert items.intercept_se.min() > 0.4 * spread
    assert items.intercept_se.max() < 1.2 * spread
    away = np.abs(items.intercept - simulated.truth.intercept) / items.intercept_se
    assert 0.9 < np.mean(away < 1.96) < 0.99
    ability = result.abilities().dim1_ability
    assert abs(np.corrcoef(ability, simulated.truth.theta[:, 0])[0, 1]) > 0.9


def test_a_sparse_fit_keeps_empty_rows_and_columns():
    sparse, _ = _layouts(ModelSpec("2pl"))
    cells = sparse.sparse
    kept = (cells.item_index != 5) & (cells.model_index != 7)
    data = sparse.replace(
        sparse=dataclasses.replace(
            cells, **{name: value[kept] for name, value in vars(cells).items()}
        )
    )
    result = quiet_fit(data, ModelSpec("2pl"), max_steps=20)
    assert len(result.item_parameters()) == data.n_items
    assert result.item_parameters()["flags"][5] == "no_responses"
    model = result.abilities().iloc[7]
    assert model["flags"] == "no_responses"
    assert abs(model["dim1_ability"]) < 1e-5
    assert abs(model["dim1_ability_se"] - 1) < 10 * tolerance("reduction")

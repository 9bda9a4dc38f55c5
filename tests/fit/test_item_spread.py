"""What the abilities' errors add to an item's, against the formula one cell at a time."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest

from irtjax.fit.item_spread import item_spreads
from irtjax.fit.packed import unpack_index
from tests.fit import reference
from tests.fit.bridge import Placed
from tests.fit.fitting import fitted
from tests.tolerances import close

N_MODELS, N_ITEMS, DIMS = 24, 300, 2
KINDS = {"plain": {"has_effects": False}, "everything": {"has_asymptotes": True, "n_components": 2}}


@pytest.mark.oracle
@pytest.mark.parametrize("kind", KINDS)
def test_the_spread_is_the_sum_over_models(kind):
    rng = np.random.default_rng(11)
    problem = reference.random_problem(
        rng,
        n_models=N_MODELS,
        n_items=N_ITEMS,
        dims=DIMS,
        n_groups=9,
        is_weighted=True,
        **KINDS[kind],
    )
    root = rng.normal(0, 0.3, (N_MODELS, DIMS, DIMS))
    ability_covariance = root @ root.transpose(0, 2, 1)
    placed = Placed(problem, 64)
    found = placed.run(
        lambda blocks, items, context, given: item_spreads(blocks, items, context, given),
        placed.posteriors,
        placed.context,
        jnp.asarray(ability_covariance, placed.context.design.dtype),
    )
    found = placed.layout.from_blocks(np.moveaxis(np.asarray(found), -1, 1))
    mean = np.einsum("jc,jca->ja", problem.share, problem.mean)
    away = problem.mean - mean[:, None]
    within = problem.covariance + np.einsum("jca,jcb->jcab", away, away)
    covariance = np.einsum("jc,jcab->jab", problem.share, within)
    lift = np.eye(DIMS + 1, DIMS)
    expected = np.zeros((N_ITEMS, DIMS + 1, DIMS + 1))
    for j in range(N_ITEMS):
        V = covariance[j]
        i, x, _, _, _ = problem.seen(j)
        _, first, second, _, _ = problem.cells(j, mean[j], V)
        for row, design, f, n in zip(i, x, first, -second, strict=True):
            S = ability_covariance[row]
            C = f * lift - n * np.outer(design, mean[j, :DIMS])
            expected[j] += C @ S @ C.T + n * lift @ S @ lift.T
        expected[j] = V @ expected[j] @ V
    close(found[:, unpack_index(DIMS + 1)], expected, kind="solve", scale=1)


@pytest.mark.oracle
def test_sparse_blocks_have_the_spread_of_dense_ones():
    problem = reference.random_problem(
        np.random.default_rng(5), n_models=100, n_items=96, dims=DIMS, n_groups=4, missing=0.9
    )
    root = np.random.default_rng(6).normal(0, 0.3, (100, DIMS, DIMS))
    given = jnp.asarray(root @ root.transpose(0, 2, 1), jnp.zeros(()).dtype)
    found = []
    for is_sparse in (True, False):
        placed = Placed(problem, 32, sparse_below=0.5 * is_sparse)
        assert (placed.blocks.cell_model is not None) == is_sparse
        spread = placed.run(
            lambda blocks, items, context, given: item_spreads(blocks, items, context, given),
            placed.posteriors,
            placed.context,
            given,
        )
        found.append(placed.layout.from_blocks(np.moveaxis(np.asarray(spread), -1, 1)))
    close(found[0], found[1], kind="solve", scale=1)


@pytest.mark.parametrize("kind", ["1pl", "2pl", "2pl-2d", "4pl-2d", "mixture"])
def test_published_errors_have_it_and_predictions_do_not(kind):
    result = fitted(kind)
    items, fitted_parameters = result.item_parameters(), result.parameters
    size = result.spec.dims + 1
    diagonal = unpack_index(size)[np.arange(size), np.arange(size)]
    spread = np.asarray(fitted_parameters.item_spread)[:, diagonal]
    assert np.isfinite(spread).all()
    assert (spread >= 0).all()
    if kind == "1pl":
        assert (spread[:, 0] == 0).all()  # a slope that is no item's own
    bare = dataclasses.replace(
        result, parameters=dataclasses.replace(fitted_parameters, item_spread=None)
    )
    before = bare.item_parameters()
    for k, name in enumerate([*(f"dim{k + 1}_slope" for k in range(size - 1)), "intercept"]):
        added = items[f"{name}_se"] ** 2 - before[f"{name}_se"] ** 2
        np.testing.assert_allclose(added, spread[:, k], rtol=1e-3, atol=1e-6)
    row = np.arange(20)
    np.testing.assert_array_equal(result.predict_cells(row, row), bare.predict_cells(row, row))

"""Errors of items with the models integrated out, against Hessians and scores by brute force."""

import functools

import numpy as np
import pytest

from irtjax.fit.item_information import (
    information_sums,
    inverse_informations,
    item_covariances,
    prior_information,
    second_part,
)
from irtjax.model.priors import LogNormal, Normal, Priors
from tests.fit import models_reference as reference
from tests.fit.models_bridge import PlacedModels
from tests.tolerances import close

N_NODES = {1: 25, 2: 7}
# Few items keep the brute force small; enough models that every matrix is positive definite.
SIZE = {"n_models": 300, "n_items": 5}
# Family, dims, and whether each cell is one answer or k right of n.
KINDS = [
    ("1pl", 1, True),
    ("2pl", 1, True),
    ("2pl", 1, False),
    ("2pl", 2, True),
    ("3pl", 1, True),
    ("4pl", 1, False),
]
# Informations of float32 lose digits in the differences of Louis' identity.
SHARE = {np.dtype(np.float32): 2e-3, np.dtype(np.float64): 1e-6}


def priors_of(family):
    """Strong enough that the information is positive definite at the truth, not at the maximum."""
    slope = LogNormal(0.1, 0.2) if family in ("3pl", "4pl") else Normal(0.2, 0.4)
    return Priors(
        slope=slope, intercept=Normal(0.1, 1.0), guessing=(50, 170), infeasibility=(30, 270)
    )


def name_of(kind):
    return f"{kind[0]}-{kind[1]}d-{'plain' if kind[2] else 'counts'}"


@functools.cache
def problem_of(kind):
    family, dims, is_plain = kind
    rng = np.random.default_rng(8)
    return reference.random_problem(rng, family, dims=dims, is_plain=is_plain, **SIZE)


@functools.cache
def grid_of(kind):
    return reference.standard_grid(kind[1], N_NODES[kind[1]])


@functools.cache
def placed_of(kind):
    return PlacedModels(problem_of(kind), N_NODES[kind[1]], priors_of(kind[0]))


@functools.cache
def marginal_information(kind):
    """Minus the Hessian of the marginal log-likelihood, size x size."""
    problem, grid = problem_of(kind), grid_of(kind)
    return -reference.hessian(
        lambda items: reference.log_likelihood(problem, items, grid), problem.items
    )


@functools.cache
def sums_of(kind, method):
    """What one pass gives: sums of the information, and the second part."""
    placed = placed_of(kind)

    def everything(blocks, count, items, populations):
        passed, sums = information_sums(
            blocks, count, items, populations, placed.grid, placed.model, method
        )
        return passed, sums, second_part(placed.model, items, passed.counts)

    return placed.run(everything, placed.items, placed.populations)


def found(kind, method, is_loading=None):
    """`item_covariances` of the estimator."""
    placed = placed_of(kind)
    _, sums, second = sums_of(kind, method)
    return item_covariances(placed.model, placed.items, sums, second, method, is_loading)


def prior_matrix(kind):
    """Prior information of all coordinates, as a size x size matrix."""
    placed = placed_of(kind)
    blocks = prior_information(placed.model, placed.items)
    n, n_items = placed.model.n_coordinates, SIZE["n_items"]
    full = np.zeros((n, n_items, n, n_items))
    every = np.arange(n_items)
    full[:, every, :, every] = np.moveaxis(blocks, 2, 0)
    return full.reshape(n * n_items, n * n_items)


def covariances(kind, information):
    """Blocks of each item of the inverse; with a common slope the slopes are one parameter."""
    placed, n_items = placed_of(kind), SIZE["n_items"]
    n = placed.model.n_coordinates
    lift = np.eye(n * n_items)
    if placed.spec.has_common_slope:
        lift = np.hstack([np.sum(lift[:, :n_items], axis=1, keepdims=True), lift[:, n_items:]])
    inverse = lift @ np.linalg.inv(lift.T @ information @ lift) @ lift.T
    return np.einsum("ajbj->jab", inverse.reshape(n, n_items, n, n_items))


def assert_same(actual, expected, dtype):
    """Within a share of the variances, whose sizes differ between coordinates."""
    sd = np.sqrt(np.einsum("jaa->ja", expected))
    scaled = (np.asarray(actual) - expected) / sd[:, :, None] / sd[:, None]
    assert np.abs(scaled).max() < SHARE[np.dtype(dtype)]


@pytest.mark.oracle
@pytest.mark.parametrize("kind", KINDS, ids=name_of)
def test_observed_information_is_the_hessian_of_the_marginal_likelihood(kind):
    information = marginal_information(kind) + prior_matrix(kind)
    assert np.linalg.eigvalsh(information).min() > 0
    dtype = placed_of(kind).items.slope.dtype
    assert_same(found(kind, "observed").covariance, covariances(kind, information), dtype)


@pytest.mark.oracle
@pytest.mark.parametrize("kind", KINDS, ids=name_of)
def test_by_item_is_the_hessian_within_each_item(kind):
    information = marginal_information(kind) + prior_matrix(kind)
    n, n_items = placed_of(kind).model.n_coordinates, SIZE["n_items"]
    is_within = np.tile(np.eye(n_items), (n, n))
    expected = covariances(kind, information * is_within)
    assert_same(found(kind, "by-item").covariance, expected, placed_of(kind).items.slope.dtype)


@pytest.mark.oracle
@pytest.mark.parametrize("kind", KINDS, ids=name_of)
def test_cross_product_of_explicit_scores(kind):
    problem, grid = problem_of(kind), grid_of(kind)
    score = reference.gradient(
        lambda items: reference.each_log_likelihood(problem, items, grid), problem.items
    )
    score = score.reshape(len(problem.count), -1)
    information = (problem.count * score.T) @ score + prior_matrix(kind)
    dtype = placed_of(kind).items.slope.dtype
    assert_same(found(kind, "cross-product").covariance, covariances(kind, information), dtype)


@pytest.mark.oracle
@pytest.mark.parametrize("kind", [*KINDS, ("4pl", 2, True)], ids=name_of)
def test_second_part(kind):
    """`r P''/P - w P''/(1 - P)`, by second derivatives of the curves."""
    problem = problem_of(kind)
    placed = placed_of(kind)
    counts = sums_of(kind, "by-item")[0].counts
    node, right, wrong = (
        np.asarray(leaf, np.float64) for leaf in (counts.node, counts.right, counts.wrong)
    )
    p = reference.curves(problem.family, problem.items, node)
    weight = right / p - wrong / (1 - p)
    total = reference.hessian(
        lambda items: np.sum(weight * reference.curves(problem.family, items, node)), problem.items
    )
    n, n_items = placed.model.n_coordinates, SIZE["n_items"]
    expected = np.einsum("ajbj->abj", total.reshape(n, n_items, n, n_items))
    actual = sums_of(kind, "by-item")[2]
    scale = np.abs(expected).max()
    share = 1e-4 if placed.items.slope.dtype == np.float32 else 1e-6
    np.testing.assert_allclose(actual, expected, rtol=0, atol=share * scale)


@pytest.mark.oracle
@pytest.mark.parametrize("kind", KINDS, ids=name_of)
def test_the_pass_is_an_e_step_too(kind):
    problem, grid = problem_of(kind), grid_of(kind)
    passed = sums_of(kind, "by-item")[0]
    expected = reference.log_likelihood(problem, problem.items, grid)
    close(passed.log_likelihood, expected, kind="reduction")
    close(np.sum(passed.mass), problem.count.sum(), kind="reduction")
    close(np.sum(passed.counts.right, axis=1), problem.count @ problem.right, kind="reduction")


@pytest.mark.oracle
@pytest.mark.parametrize("kind", [*KINDS, ("4pl", 2, True)], ids=name_of)
def test_information_of_the_priors_is_positive(kind):
    blocks = prior_information(placed_of(kind).model, placed_of(kind).items)
    assert np.linalg.eigvalsh(np.moveaxis(blocks, 2, 0)).min() > -1e-12


@pytest.mark.oracle
def test_a_pinned_slope_has_no_error():
    kind = ("2pl", 2, True)
    is_loading = np.array([[1, 0], [0, 1], [1, 1], [1, 0], [0, 1]])
    errors = found(kind, "observed", is_loading)
    variance = np.einsum("jaa->ja", errors.covariance)[:, :2]
    assert np.all(variance[is_loading == 0] < 1e-12)
    free = np.concatenate([is_loading.T.ravel() > 0, np.ones(SIZE["n_items"], bool)])
    information = (marginal_information(kind) + prior_matrix(kind))[np.ix_(free, free)]
    inverse = np.full(free.size, 0.0)
    inverse[free] = np.diagonal(np.linalg.inv(information))
    expected = inverse.reshape(3, -1).T
    share = SHARE[np.dtype(placed_of(kind).items.slope.dtype)]
    np.testing.assert_allclose(
        np.einsum("jaa->ja", errors.covariance), expected, rtol=share, atol=1e-12
    )


def test_directions_without_information_get_a_large_variance():
    """With and without a direction of nothing in the stack: by Cholesky and by eigenvectors."""
    rng = np.random.default_rng(6)
    full = rng.normal(size=(4, 3, 8))
    full = full @ full.swapaxes(1, 2) * np.outer([1, 100, 1], [1, 100, 1])
    flat = np.array([[2.0, 2.0, 0.0], [2.0, 2.0, 0.0], [0.0, 0.0, 3.0]])
    inverse = inverse_informations(np.concatenate([full, flat[None]]), None)
    np.testing.assert_allclose(inverse[:4], np.linalg.inv(full), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(inverse_informations(full, None), np.linalg.inv(full), rtol=1e-9)
    variance = np.diagonal(inverse[4])
    assert np.all(variance[:2] > 1e6)
    np.testing.assert_allclose(variance[2], 1 / 3)
    np.testing.assert_allclose(inverse[4] @ [1, 1, 0], [1 / 4, 1 / 4, 0], rtol=1e-6, atol=1e-8)

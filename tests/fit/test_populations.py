"""Distributions of ability: moments, moves that change no logit, and where they lead."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize

from irtjax.fit.item_step import ItemModel, log_prior
from irtjax.fit.populations import (
    Grid,
    PopulationMoments,
    expanded_move,
    moments_of_nodes,
    shifted,
    start_populations,
    update_populations,
)
from irtjax.model.priors import Normal, Priors
from irtjax.model.spec import ModelSpec
from tests.fit import models_reference as reference
from tests.fit.models_bridge import PlacedModels, item_parameters
from tests.tolerances import close, tolerance

N_ITEMS, N_NODES = 5, 21
# Added to the variances of every population.
RIDGE = 1e-6


def logits(items, node):
    """Items x nodes, float64."""
    slope, intercept = (np.asarray(v, np.float64) for v in (items.slope, items.intercept))
    return slope @ np.asarray(node, np.float64).T + intercept[:, None]


def random_populations(dims, n_populations=2):
    rng = np.random.default_rng(9)
    problem = reference.random_problem(rng, "2pl", dims=dims, n_populations=n_populations)
    placed = PlacedModels(problem, N_NODES)
    size = (n_populations, N_NODES**dims)
    tilt = np.exp(0.4 * placed.grid.node.sum(axis=1) + 0.2 * placed.grid.node.prod(axis=1))
    mass = rng.uniform(0, 3, size) * np.exp(placed.grid.log_weight) * tilt * 1000
    return placed, jnp.asarray(mass)


@pytest.mark.oracle
@pytest.mark.parametrize("dims", [1, 2])
def test_moments(dims):
    placed, mass = random_populations(dims)
    found = moments_of_nodes(placed.populations, mass, placed.grid)
    node = reference.nodes_of(placed.problem, reference.standard_grid(dims, N_NODES)[0])
    weight = np.asarray(mass, np.float64)
    close(found.count, weight.sum(axis=1), kind="reduction")
    close(found.total, np.einsum("gq,gqk->gk", weight, node), kind="reduction", scale=100)
    expected = np.einsum("gq,gqk,gql->gkl", weight, node, node)
    close(found.squares, expected, kind="reduction", scale=100)


@pytest.mark.oracle
@pytest.mark.parametrize("dims", [1, 2])
def test_the_first_population_stays_standard_and_the_others_take_their_moments(dims):
    placed, mass = random_populations(dims)
    moments = moments_of_nodes(placed.populations, mass, placed.grid)
    moved, items = update_populations(placed.populations, placed.items, moments, False)
    close(items.slope, placed.items.slope)
    close(items.intercept, placed.items.intercept)
    close(moved.mean[0], np.zeros(dims))
    close(moved.factor[0], np.eye(dims))
    count, total, squares = (
        np.asarray(v, np.float64) for v in (moments.count, moments.total, moments.squares)
    )
    mean = total[1] / count[1]
    spread = squares[1] / count[1] - np.outer(mean, mean) + RIDGE * np.eye(dims)
    close(moved.mean[1], mean, kind="reduction")
    close(moved.factor[1] @ moved.factor[1].T, spread, kind="solve", scale=1e2)


@pytest.mark.oracle
def test_correlated_dims_keep_unit_variances_and_every_logit():
    placed, mass = random_populations(2)
    moments = moments_of_nodes(placed.populations, mass, placed.grid)
    moved, items = update_populations(placed.populations, placed.items, moments, True)
    covariance = np.asarray(moved.factor @ jnp.swapaxes(moved.factor, 1, 2), np.float64)
    close(np.diagonal(covariance[0]), np.ones(2), kind="reduction")
    assert abs(covariance[0, 0, 1]) > 1e-3
    # What was one standard deviation of the first population still is, in logits.
    count, total, squares = (
        np.asarray(v, np.float64)[0] for v in (moments.count, moments.total, moments.squares)
    )
    sd = np.sqrt(np.diagonal(squares / count - np.outer(total, total) / count**2) + RIDGE)
    close(items.slope, np.asarray(placed.items.slope) * sd, kind="solve")
    close(items.intercept, placed.items.intercept)


@pytest.mark.oracle
@pytest.mark.parametrize("dims", [1, 2])
def test_an_empirical_distribution_is_standardised_without_changing_a_logit(dims):
    placed, mass = random_populations(dims)
    moments = moments_of_nodes(placed.populations, mass, placed.grid)
    moved, items = update_populations(placed.populations, placed.items, moments, False, mass)
    node = moved.nodes(placed.grid)
    for g in range(2):
        before = logits(placed.items, placed.populations.nodes(placed.grid)[g])
        close(logits(items, node[g]), before, kind="reduction", scale=10)
    weight = np.exp(np.asarray(moved.log_weight, np.float64))
    close(weight.sum(axis=1), np.ones(2), kind="reduction")
    share = np.asarray(mass, np.float64)
    share = share / share.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(weight, share, rtol=0, atol=3e-3 * share.max())
    first = np.asarray(node[0], np.float64)
    np.testing.assert_allclose(weight[0] @ first, 0, atol=2e-3)
    np.testing.assert_allclose(weight[0] @ first**2, 1, atol=0.02)


def test_a_population_without_models_stays_finite():
    placed, mass = random_populations(1)
    moments = moments_of_nodes(placed.populations, mass.at[1].set(0), placed.grid)
    moved, _ = update_populations(placed.populations, placed.items, moments, False)
    np.testing.assert_allclose(moved.mean[1], [0])
    np.testing.assert_allclose(moved.factor[1], [[1]], rtol=1e-5)


@pytest.mark.oracle
@pytest.mark.parametrize("family", ["2pl", "3pl", "4pl"])
def test_shifted_items_have_the_same_logits(family):
    rng = np.random.default_rng(2)
    items = item_parameters(family, reference.random_items(rng, family, 2, N_ITEMS), 2)
    mean, sd = rng.normal(size=2), rng.uniform(0.5, 2, 2)
    ability = rng.normal(size=(7, 2))
    moved = shifted(items, jnp.asarray(mean), jnp.asarray(sd))
    close(logits(moved, (ability - mean) / sd), logits(items, ability), kind="reduction", scale=10)


@pytest.mark.oracle
@pytest.mark.parametrize("family, dims", [("2pl", 1), ("2pl", 2), ("3pl", 1)])
def test_the_expanded_move_is_the_best_place(family, dims):
    """By a general optimiser: mean and sd of the first population, the items taken along."""
    rng = np.random.default_rng(1)
    model = ItemModel(ModelSpec(family, dims), Priors(intercept=Normal(0, 10)))
    items = reference.random_items(rng, family, dims, N_ITEMS)
    count, mean, sd = 12.0, rng.normal(0.3, 0.2, dims), rng.uniform(0.7, 1.3, dims)
    squares = np.diag(count * (sd**2 + mean**2))
    moments = PopulationMoments(
        jnp.asarray([count]), jnp.asarray(count * mean[None]), jnp.asarray(squares[None])
    )
    parameters = item_parameters(family, items, dims)
    found = expanded_move(model, parameters, moments)

    prior = model.priors.of_slopes(model.spec)
    is_log = model.has_log_slopes

    def cost(place):
        where, scale = place[:dims], np.exp(place[dims:])
        moved = items.copy()
        moved[dims] = items[dims] + where @ items[:dims]
        moved[:dims] = items[:dims] * scale[:, None]
        of_items = reference.log_prior(
            family,
            moved,
            dims,
            (prior.mean, prior.sd),
            (model.priors.intercept.mean, model.priors.intercept.sd),
            model.priors.guessing,
            model.priors.infeasibility,
            is_log,
        )
        spread = count * (sd**2 + (mean - where) ** 2)
        return np.sum(0.5 * spread / scale**2 + count * np.log(scale)) - np.sum(of_items)

    best = scipy.optimize.minimize(cost, np.zeros(2 * dims), tol=1e-12).x
    bound = max(5e-5, tolerance("solve"))  # what the optimiser leaves
    np.testing.assert_allclose(found[0], best[:dims], atol=bound)
    np.testing.assert_allclose(found[1], np.exp(best[dims:]), atol=bound)
    assert np.isfinite(np.sum(np.asarray(log_prior(model, parameters))))


def test_the_start_is_standard_normal():
    grid = Grid(2, 5)
    start = start_populations(3, grid, jnp.float32)
    np.testing.assert_array_equal(start.mean, np.zeros((3, 2)))
    np.testing.assert_array_equal(start.factor, np.broadcast_to(np.eye(2), (3, 2, 2)))
    np.testing.assert_allclose(np.exp(start.log_weight).sum(axis=1), 1, rtol=1e-5)
    assert dataclasses.asdict(grid) == {"dims": 2, "n_nodes": 5, "is_empirical": False}

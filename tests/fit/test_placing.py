"""Placing items and models against the float64 reference, iterated to its fixed point."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from irtjax.fit.outer import OuterParameters
from irtjax.fit.placing import place_items, place_models
from tests.fit import reference
from tests.fit.bridge import Placed
from tests.tolerances import close

TAU_SQUARED = 0.3
SIZE = {"n_models": 14, "n_items": 20, "dims": 2, "n_groups": 2, "is_uncertain": True}
KINDS = {
    "2pl": {"is_weighted": True, "is_fractional": True},
    "mixture": {"n_components": 2},
    "1pl": {"dims": 1, "is_free": (False, True), "has_effects": False},
}


@pytest.fixture(params=KINDS)
def problem(request):
    """A problem of a kind, with an item and a model that nobody answered or that answered none."""
    found = reference.random_problem(np.random.default_rng(3), **SIZE | KINDS[request.param])
    found.response[:, 5] = -1
    found.response[4] = -1
    return found


def outer_of(placed):
    problem = placed.problem
    optional = (
        None if value is None else jnp.asarray(value)
        for value in (problem.ability_covariance, problem.effect_spread)
    )
    covariance, spread = optional
    tau_squared = jnp.asarray(TAU_SQUARED, placed.ability.dtype)
    return OuterParameters(
        placed.ability,
        covariance,
        placed.effect,
        spread,
        tau_squared,
        placed.distribution,
        placed.asymptotes,
    )


@pytest.mark.oracle
def test_items_are_placed_at_the_fixed_point_of_newtons_step(problem):
    placed = Placed(problem, items_per_block=8)
    with jax.set_mesh(placed.mesh):
        found = place_items(
            placed.blocks, outer_of(placed), is_free=problem.is_free, n_nodes=problem.n_nodes
        )
    mean, covariance, share = placed.items_first(found)
    for j in range(problem.response.shape[1]):
        g = problem.group[j]
        for c in range(problem.mu.shape[1]):
            # From the truth's side: the place must not depend on the start.
            problem.mean[j, c], problem.covariance[j, c] = problem.mu[g, c], problem.sigma[g, c]
            for _ in range(60):
                new = reference.renewed_posterior(problem, j, c)
                problem.mean[j, c], problem.covariance[j, c] = new
    close(mean, problem.mean, kind="solve", scale=3)
    close(covariance, problem.covariance, kind="solve", scale=3)
    close(share, reference.renew(problem).share, kind="solve", scale=3)
    g = problem.group[5]
    close(mean[5], problem.mu[g], kind="solve", scale=3)
    close(covariance[5], problem.sigma[g], kind="solve", scale=3)


def summed(problem):
    """The reference's sums over items that stay where they are."""
    still = dataclasses.replace(problem)
    n_models, dims = problem.ability.shape
    n_groups, n_components, size = problem.mu.shape
    out = reference.Pass(
        problem.mean,
        problem.covariance,
        problem.share,
        0.0,
        np.zeros((n_models, dims)),
        np.zeros((n_models, dims, dims)),
        np.zeros((n_groups, n_models)),
        np.zeros((n_groups, n_models)),
        np.zeros((n_groups, dims, n_models)),
        np.zeros((n_groups, n_components)),
        np.zeros((n_groups, n_components, size)),
        np.zeros((n_groups, n_components, size, size)),
        np.zeros((n_groups, n_components, 4)),
    )
    for j in range(problem.response.shape[1]):
        for c in range(n_components):
            cells = still.cells(j, problem.mean[j, c], problem.covariance[j, c])
            reference._add_item(out, still, j, c, cells)
    return out


@pytest.mark.oracle
def test_models_are_placed_at_the_fixed_point_of_their_joint_step(problem):
    placed = Placed(problem, items_per_block=8)
    with jax.set_mesh(placed.mesh):
        found = place_models(
            placed.blocks,
            placed.posteriors,
            outer_of(placed),
            is_free=problem.is_free,
            n_nodes=problem.n_nodes,
        )
    dims = problem.ability.shape[1]
    problem.ability = np.zeros_like(problem.ability)
    problem.effect = None if problem.effect is None else np.zeros_like(problem.effect)
    for _ in range(60):
        result = summed(problem)
        new = reference.newton_models(problem.ability, problem.effect, TAU_SQUARED, result)
        problem.ability, problem.effect = new
        problem.ability_covariance = np.linalg.inv(result.information + np.eye(dims))
        if problem.effect is not None:
            problem.effect_spread = 1 / (result.effect_information.T + 1 / TAU_SQUARED)
    close(found.ability, problem.ability, kind="solve", scale=3)
    close(found.ability_covariance, problem.ability_covariance, kind="solve", scale=3)
    if problem.effect is None:
        assert found.effect is None
    else:
        close(found.effect, problem.effect, kind="solve", scale=3)
        close(found.effect_spread, problem.effect_spread, kind="solve", scale=3)
    # Nothing known of model 4: its prior.
    np.testing.assert_allclose(found.ability[4], 0, atol=1e-6)
    np.testing.assert_allclose(found.ability_covariance[4], np.eye(dims), atol=1e-6)

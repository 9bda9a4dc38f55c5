"""A fit that starts where another ended is the fit that starts anew."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from irtjax.data.splits import holdout
from irtjax.fit.driver import Look, Status, drive
from irtjax.fit.routes import choose_route
from irtjax.fit.settings import FitSettings
from irtjax.fit.warm_start import refit
from irtjax.model.priors import Priors
from tests.fit.fitting import KINDS, assert_same_bits, placed_blocks, simulated

WITHIN = 1e-4


@functools.cache
def arena(kind):
    """Estimator, mesh, blocks of a part of the data, and the last state of the fit of all."""
    spec, settings = KINDS[kind]
    data = simulated(kind).data
    estimator = choose_route(
        data, spec, Priors(), FitSettings(group=settings.get("group"), estimator="marginal-items")
    )[0].estimator
    blocks, _, mesh = placed_blocks(data)
    part, _, _ = placed_blocks(holdout(data, 0.1, seed=0)[0])
    with jax.set_mesh(mesh):
        full = converged(estimator, blocks, spec)
    return estimator, mesh, part, full


def converged(estimator, blocks, spec):
    start = estimator.init(blocks, spec, Priors(), jax.random.key(0))
    return drive(estimator, blocks, start, look=Look())[0]


@pytest.mark.parametrize("kind", ["1pl", "2pl", "2pl-2d"])
def test_a_warm_start_ends_where_a_cold_one_does(kind):
    estimator, mesh, part, full = arena(kind)
    with jax.set_mesh(mesh):
        warm, status, n_steps = refit(estimator, part, full, max_steps=1000)
        cold = converged(estimator, part, KINDS[kind][0])
        one, other = (estimator.finish(part, state) for state in (warm, cold))
    assert status is Status.converged
    assert n_steps > 4
    np.testing.assert_allclose(one.ability, other.ability, atol=WITHIN)
    np.testing.assert_allclose(one.expected_score, other.expected_score, atol=WITHIN)
    # The parts differ: the fit of all is further away.
    assert np.max(np.abs(full.outer.ability - warm.outer.ability)) > 10 * WITHIN


def test_a_warm_start_takes_nothing_from_the_items_of_the_other_fit():
    estimator, mesh, part, full = arena("2pl")
    spoiled = dataclasses.replace(full, items=jax.tree.map(lambda a: a * jnp.nan, full.items))
    with jax.set_mesh(mesh):
        one, *_ = refit(estimator, part, full, max_steps=1000)
        other, *_ = refit(estimator, part, spoiled, max_steps=1000)
    assert_same_bits(one, other)


def test_at_the_step_limit_it_says_so():
    estimator, mesh, part, full = arena("2pl")
    for most in (3, 22):
        with jax.set_mesh(mesh):
            _, status, n_steps = refit(estimator, part, full, max_steps=most)
        assert (status, n_steps) == (Status.max_steps, most)


def test_a_model_left_out_starts_at_its_prior():
    estimator, mesh, part, full = arena("2pl")
    without = dataclasses.replace(part, response=part.response.at[:, 3].set(-1))
    with jax.set_mesh(mesh):
        state, status, _ = refit(estimator, without, full, max_steps=1000)
    assert status is Status.converged
    assert not state.is_scored[3]
    np.testing.assert_allclose(state.outer.ability[3], 0, atol=1e-6)
    np.testing.assert_allclose(state.outer.ability_covariance[3], np.eye(1), atol=1e-6)

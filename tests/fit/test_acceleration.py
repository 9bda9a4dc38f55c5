"""Anderson's extrapolation on iterations whose end is known."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from irtjax.fit.acceleration import empty_history, extrapolate
from irtjax.fit.hyperparameters import ItemDistribution
from irtjax.fit.outer import OuterParameters, vector_form
from irtjax.model.response import Asymptotes

SIZE, DEPTH = 6, 5


def _iterate(step, start, n_steps, depth=DEPTH):
    """Distances to 0 along the accelerated iteration, and what was extrapolated."""
    x, history = jnp.asarray(start), empty_history(len(start), depth, jnp.asarray(start).dtype)
    away, used = [], []
    move = jax.jit(extrapolate)
    for _ in range(n_steps):
        x, was_extrapolated, history = move(history, x, step(x))
        away.append(float(jnp.linalg.norm(x)))
        used.append(bool(was_extrapolated))
    return np.array(away), used


def _linear(rates):
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.normal(size=(len(rates),) * 2))[0]
    matrix = jnp.asarray(basis @ np.diag(rates) @ basis.T)
    return lambda x: matrix @ x


def test_a_slow_linear_iteration_is_solved_in_a_few_steps():
    # The slowest direction forgets 3% a step: 12 plain steps leave .69 of the way.
    step = _linear([0.97, 0.9, 0.5])
    away, used = _iterate(step, np.ones(3), 12)
    plain = np.ones(3)
    for _ in range(12):
        plain = step(plain)
    assert away[-1] < 0.01 * np.linalg.norm(plain)
    assert any(used)


def test_the_first_steps_are_plain():
    step = _linear([0.9, 0.8, 0.5])
    x, history = jnp.ones(3), empty_history(3, DEPTH, jnp.ones(3).dtype)
    for _ in range(3):
        new, was_extrapolated, history = extrapolate(history, x, step(x))
        np.testing.assert_array_equal(new, step(x))
        assert not bool(was_extrapolated)
        x = new


def test_at_the_fixed_point_nothing_moves():
    away, _ = _iterate(lambda x: x * 0, np.zeros(SIZE), 8)
    assert np.all(away == 0)


def test_a_step_that_is_not_finite_is_not_extrapolated_from():
    history = empty_history(3, DEPTH, jnp.ones(3).dtype)
    x = jnp.ones(3)
    for _ in range(6):
        new, was_extrapolated, history = extrapolate(history, x, x * jnp.asarray([0.9, 0.8, 0.7]))
        x = new
    bad = jnp.asarray([1.0, jnp.nan, 1.0])
    new, was_extrapolated, _ = extrapolate(history, x, bad)
    assert not bool(was_extrapolated)
    np.testing.assert_array_equal(new, bad)


@pytest.mark.parametrize("has_effects", [True, False])
def test_the_vector_of_parameters_comes_back_and_every_vector_is_valid(has_effects):
    rng = np.random.default_rng(1)
    root = rng.normal(size=(2, 1, 3, 3))
    covariance = root @ root.swapaxes(-1, -2) + 0.1 * np.eye(3)
    outer = OuterParameters(
        ability=jnp.asarray(rng.normal(size=(4, 2))),
        ability_covariance=jnp.broadcast_to(0.1 * jnp.eye(2), (4, 2, 2)),
        effect=jnp.asarray(rng.normal(size=(4, 2))) if has_effects else None,
        effect_spread=jnp.full((4, 2), 0.1) if has_effects else None,
        effect_variance=jnp.asarray(0.3),
        distribution=ItemDistribution(
            jnp.asarray(rng.normal(size=(2, 1, 3))), jnp.asarray(covariance), jnp.zeros((2, 1))
        ),
        asymptotes=Asymptotes(jnp.asarray([-1.0, -jnp.inf]), jnp.asarray([jnp.inf, 2.0])),
    )
    vector, back = vector_form(outer, (True, True, True))
    assert np.isfinite(vector).all()
    again = back(vector)
    assert jax.tree.structure(again) == jax.tree.structure(outer)
    for a, b in zip(jax.tree.leaves(again), jax.tree.leaves(outer), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    wild = back(vector + jnp.asarray(rng.normal(size=len(vector)), vector.dtype))
    assert np.linalg.eigvalsh(np.asarray(wild.distribution.covariance)).min() > 0
    assert float(wild.effect_variance) > 0
    assert np.isneginf(wild.asymptotes.lower[1])
    assert np.isposinf(wild.asymptotes.upper[0])
    np.testing.assert_allclose(np.exp(wild.distribution.log_weight).sum(axis=1), 1, rtol=1e-5)

"""Acceleration that never lets the objective fall."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from irtjax.fit.guarded import advance_guarded, start_guarded

SIZE, DEPTH, DROP = 6, 4, 1e-6
TARGET = np.linspace(-1, 2, SIZE)
RATE = np.linspace(0.3, 0.97, SIZE)


def objective(vector):
    return -jnp.sum((1 - RATE) * (vector - TARGET) ** 2)


def plain_step(vector):
    """Slow linear convergence, coordinate by coordinate."""
    return TARGET + RATE * (vector - TARGET)


def run(n_steps, value=objective, step=plain_step, depth=DEPTH):
    def once(guarded, _):
        evaluated = value(guarded.current)
        moved, fell = advance_guarded(guarded, evaluated, step(guarded.current), DROP)
        return moved, (evaluated, fell, guarded.current)

    start = start_guarded(jnp.zeros(SIZE), depth)
    return jax.jit(lambda start: jax.lax.scan(once, start, None, n_steps))(start)


@pytest.mark.oracle
def test_it_is_faster_than_plain_steps():
    guarded, _ = run(25)
    plain = np.zeros(SIZE)
    for _ in range(25):
        plain = np.asarray(plain_step(plain))
    assert np.abs(guarded.plain - TARGET).max() < 1e-3 * np.abs(plain - TARGET).max()


@pytest.mark.oracle
def test_what_is_kept_never_falls():
    _, (values, fell, _) = run(40)
    kept = np.asarray(values)[~np.asarray(fell)]
    assert np.all(np.diff(kept) >= -DROP * np.abs(kept[1:]) - 1e-12)


def test_an_extrapolation_that_falls_is_given_up_for_the_plain_step():
    """The objective has a cliff that only extrapolations reach."""
    cliff = 1.5

    def value(vector):
        return objective(vector) - jnp.where(jnp.max(vector) > cliff, 100.0, 0.0)

    def step(vector):
        return jnp.minimum(plain_step(vector), cliff)

    guarded, (values, fell, currents) = run(60, value, step)
    fell, values = np.asarray(fell), np.asarray(values)
    assert fell.any()
    after = np.flatnonzero(fell[:-1]) + 1
    assert np.all(values[after] > values[after - 1])
    assert np.all(np.asarray(currents)[after] <= cliff)
    assert float(guarded.objective) == pytest.approx(values[~fell].max(), abs=1e-5)


def test_a_plain_step_that_falls_is_halved():
    start = start_guarded(jnp.zeros(SIZE), DEPTH)
    first, fell = advance_guarded(start, jnp.asarray(-1.0), jnp.full(SIZE, 8.0), DROP)
    assert not fell
    np.testing.assert_array_equal(first.current, np.full(SIZE, 8.0))
    back, fell = advance_guarded(first, jnp.asarray(-2.0), jnp.full(SIZE, 9.0), DROP)
    assert fell
    np.testing.assert_array_equal(back.current, np.full(SIZE, 4.0))
    assert float(back.objective) == -1.0

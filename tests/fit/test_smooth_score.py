"""The interpolant: exact for polynomials, and its error shows where it is not enough."""

import jax.numpy as jnp
import numpy as np
import pytest

from irtjax.fit.smooth_score import Seen, interpolant, points_for
from tests.tolerances import close


def models(n_models, dims, n_effects=0):
    rng = np.random.default_rng(0)
    ability = rng.normal(size=(n_models, dims)) * 1.5
    effect = jnp.asarray(rng.normal(size=(n_models, n_effects))) if n_effects else None
    design = np.concatenate([ability, np.ones((n_models, 1))], axis=1)
    return Seen(jnp.asarray(design), effect)


def interpolated(seen, function):
    """The function of `Seen` (groups x models) at the models, through its values at the points."""
    points = points_for(seen)
    found = interpolant(points, function(points.seen))
    return found.at_models(points), float(found.error)


def _of_two_dims(seen):
    x, y = seen.design[:, 0] / 6, seen.design[:, 1] / 6
    return (x**5 - 2 * x * y**3 + y)[None]


def _of_effects(seen):
    x, effect = seen.design[:, :1] / 6, seen.effect / 5
    scale = jnp.asarray([1.0, -2.0, 0.5], effect.dtype)
    return (scale * x**3 * effect**2 + effect).T


@pytest.mark.oracle
@pytest.mark.parametrize(
    "seen, function",
    [
        (models(600, 1), lambda seen: (seen.design[:, 0] ** 3)[None] / 200),
        (models(4_100, 2), _of_two_dims),
        (models(2_100, 1, 3), _of_effects),
    ],
    ids=["one dim", "two dims", "effects"],
)
def test_polynomials_are_interpolated_exactly(seen, function):
    found, error = interpolated(seen, function)
    close(found, jnp.sum(function(seen), axis=0), kind="reduction")
    assert error < 1e-6


def test_the_last_coefficients_tell_what_is_left_out():
    seen = models(4_100, 2)
    for slope, is_enough in ((1.0, True), (4.0, False), (40.0, False)):

        def curve(seen, slope=slope):
            return (1 / (1 + jnp.exp(-slope * (seen.design[:, 0] - seen.design[:, 1]))))[None]

        found, error = interpolated(seen, curve)
        off = float(jnp.sqrt(jnp.mean((found - curve(seen)[0]) ** 2)))
        assert (error < 3e-6) == is_enough
        assert off < max(2 * error, 1e-6)


@pytest.mark.parametrize(
    "seen",
    [models(500, 1), models(4_000, 2), models(600, 1, 3), models(9_000, 2, 2), models(9_000, 3)],
    ids=["few", "few of two dims", "few with effects", "two dims and effects", "three dims"],
)
def test_few_models_or_many_coordinates_have_no_interpolant(seen):
    assert points_for(seen) is None


def test_models_that_are_all_the_same_have_one_value():
    seen = Seen(jnp.ones((600, 2)), None)
    found, _ = interpolated(seen, lambda seen: jnp.sin(seen.design[:, :1]).T)
    np.testing.assert_allclose(found, np.sin(1.0), atol=1e-5)

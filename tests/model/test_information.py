"""Information of a response about its logit: finite differences, expectations, limits."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from irtjax.model.information import logit_information, logit_slope
from irtjax.model.response import Asymptotes, log_likelihood
from tests.tolerances import close

ASYMPTOTES = {"2pl": (0.0, 1.0), "3pl": (0.2, 1.0), "4pl": (0.15, 0.9)}


def _curve(logit, c, d):
    return c + (d - c) / (1 + np.exp(-logit))


@pytest.mark.oracle
@pytest.mark.parametrize("family", list(ASYMPTOTES))
def test_it_is_the_squared_slope_over_the_variance(family):
    c, d = ASYMPTOTES[family]
    logit = np.linspace(-8, 8, 33)
    # In extended precision: differences of doubles are right to eight digits.
    wide, step = logit.astype(np.longdouble), np.longdouble(1e-6)
    slope = (_curve(wide + step, c, d) - _curve(wide - step, c, d)) / (2 * step)
    slope, p = slope.astype(float), _curve(logit, c, d)
    close(logit_slope(jnp.asarray(logit), c, d), slope, kind="reduction")
    close(logit_information(jnp.asarray(logit), c, d), slope**2 / (p * (1 - p)), kind="reduction")


@pytest.mark.oracle
@pytest.mark.parametrize("family", list(ASYMPTOTES))
def test_it_is_the_mean_of_the_observed_information(family):
    c, d = ASYMPTOTES[family]
    asymptotes = None if family == "2pl" else Asymptotes.from_natural(c, d)
    logit = jnp.linspace(-5, 5, 21)

    def of(response):
        curved = jax.grad(jax.grad(lambda z: log_likelihood(z, response, asymptotes)))
        return -jax.vmap(curved)(logit)

    p = _curve(np.asarray(logit), c, d)
    expected = p * np.asarray(of(1.0)) + (1 - p) * np.asarray(of(0.0))
    close(logit_information(logit, c, d), expected, kind="solve")


def test_it_tends_to_0_at_both_ends_and_stays_finite():
    for c, d in ASYMPTOTES.values():
        found = np.asarray(logit_information(jnp.asarray([-1e4, -90.0, 90.0, 1e4]), c, d))
        assert np.isfinite(found).all()
        assert np.all(found < 1e-15)

"""Gauss-Hermite expectations against adaptive quadrature."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit, factorial2
from scipy.stats import norm

from irtjax.model.quadrature import gauss_hermite, normal_expectation
from irtjax.model.response import Asymptotes, cell_derivatives, log_likelihood
from tests.tolerances import close, tolerance

CELLS = ((0.0, 0.3, 1.0), (1.2, 1.0, 0.0), (-2.5, 2.0, 1.0), (0.7, 1.0, 0.25))
GUESSING, FEASIBILITY = 0.2, 0.9


@pytest.mark.parametrize("n_nodes", [1, 2, 5, 9, 15])
def test_nodes_integrate_polynomials_exactly(n_nodes):
    nodes, weights = gauss_hermite(n_nodes)
    for power in range(2 * n_nodes):
        moment = 0 if power % 2 else factorial2(power - 1) if power else 1
        scale = np.sum(weights * np.abs(nodes) ** power)
        assert np.sum(weights * nodes**power) == pytest.approx(moment, abs=1e-12 * max(scale, 1))


def _expectation(function, mean, sd):
    """By adaptive quadrature, over 12 standard deviations each way."""
    value, _ = quad(
        lambda z: function(z) * norm.pdf(z, mean, sd),
        mean - 12 * sd,
        mean + 12 * sd,
        epsabs=1e-13,
        epsrel=1e-13,
        limit=200,
    )
    return value


def _cell(z, y, c, d):
    """l, l' and -l'' of a cell from the probability and its derivatives."""
    s = expit(z)
    p = c + (d - c) * s
    q = 1 - p
    slope = (d - c) * s * (1 - s)
    bend = slope * (1 - 2 * s)
    value = y * np.log(p) + (1 - y) * np.log(q)
    first = y * slope / p - (1 - y) * slope / q
    second = y * (bend / p - (slope / p) ** 2) - (1 - y) * (bend / q + (slope / q) ** 2)
    return value, first, -second


@pytest.mark.oracle
@pytest.mark.parametrize("has_asymptotes", [False, True])
@pytest.mark.parametrize("mean, sd, response", CELLS)
def test_expected_cells_are_integrals(has_asymptotes, mean, sd, response):
    c, d = (GUESSING, FEASIBILITY) if has_asymptotes else (0.0, 1.0)
    asymptotes = Asymptotes.from_natural(jnp.asarray(c), jnp.asarray(d)) if has_asymptotes else None
    expected = [
        _expectation(lambda z, k=k: _cell(z, response, c, d)[k], mean, sd) for k in range(3)
    ]

    def function(logit):
        cells = cell_derivatives(logit, jnp.asarray(response), asymptotes)
        value = log_likelihood(logit, jnp.asarray(response), asymptotes)
        return value, cells.first, cells.negative_second

    arguments = (jnp.asarray(mean), jnp.asarray(sd**2))
    fine = normal_expectation(function, *arguments, 61)
    # 61 nodes leave at most 1e-7 at a standard deviation of 2: the poles at +-pi i are then near.
    for actual, each in zip(fine, expected, strict=True):
        assert float(actual) == pytest.approx(each, abs=max(10 * tolerance(), 1e-7))
    # What the estimator uses: 9 nodes below 50 models, where posteriors are wide.
    coarse = normal_expectation(function, *arguments, 9)
    for actual, each in zip(coarse, expected, strict=True):
        assert float(actual) == pytest.approx(each, abs=5e-3 if sd > 1 else 2e-4)


def test_leaves_of_a_tree_are_integrated_one_by_one():
    mean, variance = jnp.array([0.5, -1.0]), jnp.array([0.4, 2.0])
    moments = normal_expectation(lambda z: {"one": z, "two": z**2}, mean, variance, 5)
    close(moments["one"], mean)
    close(moments["two"], mean**2 + variance, scale=3)


def test_no_variance_is_the_value_at_the_mean():
    mean = jnp.array([-2.0, 0.3])
    close(normal_expectation(jnp.tanh, mean, jnp.zeros(2), 9), np.tanh([-2.0, 0.3]))

"""The response function, its logarithms and its derivatives against 50-digit decimal arithmetic."""

import itertools
from decimal import Decimal, localcontext

import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from scipy.special import expit

from irtjax.model.response import (
    Asymptotes,
    cell_derivatives,
    linear_predictor,
    log_likelihood,
    log_probabilities,
    probability,
    response_probabilities,
    response_probability,
)
from tests.tolerances import close, tolerance

LOGITS = (-1e4, -200.0, -30.0, -3.7, -0.4, 0.0, 1.3, 6.0, 25.0, 90.0, 1e4)
RESPONSES = (0.0, 0.25, 2 / 3, 1.0)
# Guessing and feasibility of the 1PL and 2PL, the 3PL, an upper asymptote alone, the 4PL.
ASYMPTOTES = {"2pl": (0, 1), "3pl": (0.2, 1), "upper": (0, 0.9), "4pl": (0.25, 0.8)}
CASES = tuple(itertools.product(ASYMPTOTES, RESPONSES))


def _asymptotes(name, dtype=None):
    return Asymptotes.from_natural(*(jnp.asarray(v, dtype or float) for v in ASYMPTOTES[name]))


def _natural(asymptotes):
    """Guessing and feasibility in 50 digits, from the transformed values as they are stored."""

    def sigmoid(value):
        if np.isinf(value):
            return Decimal(1 if value > 0 else 0)
        return 1 / (1 + (-Decimal(value)).exp())

    c = sigmoid(float(asymptotes.lower))
    return c, c + (1 - c) * sigmoid(float(asymptotes.upper))


def _exact(logit, response, c, d):
    """P, 1 - P, l, l' and l'' of one cell from their textbook definitions."""
    z, y = Decimal(float(logit)), Decimal(float(response))
    s, not_s = 1 / (1 + (-z).exp()), 1 / (1 + z.exp())
    p, q = c + (d - c) * s, (1 - d) + (d - c) * not_s
    slope = (d - c) * s * not_s
    bend = slope * (not_s - s)
    value = (y * p.ln() if y else 0) + ((1 - y) * q.ln() if y < 1 else 0)
    first = y * slope / p - (1 - y) * slope / q
    second = y * (bend / p - (slope / p) ** 2) - (1 - y) * (bend / q + (slope / q) ** 2)
    return tuple(float(v) for v in (p, q, value, first, second))


@pytest.fixture(scope="module")
def exact():
    """For each family and response, the five exact numbers at every logit."""
    table = {}
    with localcontext() as context:
        context.prec = 50
        context.Emin, context.Emax = -(10**9), 10**9
        for name, response in CASES:
            c, d = _natural(_asymptotes(name))
            stored = float(jnp.asarray(response))
            table[name, response] = np.array(
                [_exact(float(jnp.asarray(z)), stored, c, d) for z in LOGITS]
            ).T
    return table


@pytest.mark.oracle
@pytest.mark.parametrize("name", ASYMPTOTES)
def test_probabilities_and_their_logarithms(exact, name):
    logit, asymptotes = jnp.asarray(LOGITS), _asymptotes(name)
    p, not_p, value_right, _, _ = exact[name, 1.0]
    value_wrong = exact[name, 0.0][2]
    log_p, log_not_p = log_probabilities(logit, asymptotes)
    close(log_p, value_right)
    close(log_not_p, value_wrong)
    close(response_probability(logit, asymptotes), p)
    right, wrong = response_probabilities(logit, asymptotes)
    # Each of P and 1 - P to full relative precision, as far as the float type reaches down.
    reachable = np.minimum(p, not_p) > 1e3 * np.finfo(right.dtype).tiny
    np.testing.assert_allclose(right[reachable], p[reachable], rtol=tolerance())
    np.testing.assert_allclose(wrong[reachable], not_p[reachable], rtol=tolerance())


@pytest.mark.oracle
@pytest.mark.parametrize("name, response", CASES)
def test_log_likelihood_and_its_derivatives(exact, name, response):
    logit, asymptotes = jnp.asarray(LOGITS), _asymptotes(name)
    _, _, value, first, second = exact[name, response]
    close(log_likelihood(logit, jnp.asarray(response), asymptotes), value)
    cells = cell_derivatives(logit, jnp.asarray(response), asymptotes)
    close(cells.first, first)
    close(cells.negative_second, -second)


@pytest.mark.oracle
@pytest.mark.parametrize("name, response", CASES)
def test_expected_counts_of_knowing_are_posterior_probabilities(name, response):
    # Knowing is a latent coin with probability s; a right answer has P = d s + c (1 - s).
    c, d = ASYMPTOTES[name]
    z = np.array([-6.0, -1.0, 0.5, 3.0])
    s = expit(z)
    known_right = response * d * s / (c + (d - c) * s)
    known_wrong = (1 - response) * (1 - d) * s / (1 - c - (d - c) * s)
    cells = cell_derivatives(jnp.asarray(z), jnp.asarray(response), _asymptotes(name))
    close(cells.known_right, known_right)
    close(cells.known_wrong, known_wrong)
    close(cells.first, known_right + known_wrong - s)


@pytest.mark.oracle
@pytest.mark.parametrize("name, response", CASES)
def test_derivatives_are_central_differences(name, response):
    # In float64 whatever the pass: a difference quotient needs the digits.
    with jax.enable_x64(True):
        asymptotes = _asymptotes(name, np.float64)
        z, h = np.linspace(-8, 8, 33), 1e-4

        def value(logit):
            return np.asarray(log_likelihood(jnp.asarray(logit), response, asymptotes))

        def first(logit):
            return np.asarray(cell_derivatives(jnp.asarray(logit), response, asymptotes).first)

        cells = cell_derivatives(jnp.asarray(z), response, asymptotes)
        # The error of a central difference is h^2 / 6 times a third derivative (below 1): 2e-9.
        np.testing.assert_allclose(cells.first, (value(z + h) - value(z - h)) / (2 * h), atol=1e-8)
        np.testing.assert_allclose(
            -cells.negative_second, (first(z + h) - first(z - h)) / (2 * h), atol=1e-8
        )


@pytest.mark.oracle
@pytest.mark.parametrize("response", RESPONSES)
def test_without_asymptotes_is_the_4pl_with_guessing_0_and_feasibility_1(response):
    logit, fixed = jnp.asarray(LOGITS), Asymptotes(jnp.asarray(-jnp.inf), jnp.asarray(jnp.inf))
    assert float(fixed.guessing) == 0
    assert float(fixed.feasibility) == 1
    value = jnp.asarray(response)
    close(log_likelihood(logit, value, fixed), log_likelihood(logit, value))
    for actual, expected in zip(
        log_probabilities(logit, fixed), log_probabilities(logit), strict=True
    ):
        close(actual, expected)
    plain, general = cell_derivatives(logit, value), cell_derivatives(logit, value, fixed)
    close(general.first, plain.first)
    close(general.negative_second, plain.negative_second)
    assert plain.known_right is None
    assert plain.known_wrong is None


@pytest.mark.oracle
def test_linear_predictor_and_probability_against_loops():
    rng = np.random.default_rng(3)
    ability, slope = rng.normal(size=(4, 3)), rng.normal(size=(5, 3))
    intercept, effect = rng.normal(size=5), rng.normal(size=(4, 5))
    guessing, feasibility = rng.uniform(0, 0.3, 5), rng.uniform(0.7, 1, 5)
    logit, p = np.empty((4, 5)), np.empty((4, 5))
    for i, j in np.ndindex(4, 5):
        logit[i, j] = sum(ability[i, k] * slope[j, k] for k in range(3)) + intercept[j]
        s = expit(logit[i, j] + effect[i, j])
        p[i, j] = guessing[j] + (feasibility[j] - guessing[j]) * s
    arrays = [jnp.asarray(v) for v in (ability, slope, intercept)]
    close(linear_predictor(*arrays), logit, scale=5)
    more = [jnp.asarray(v) for v in (guessing, feasibility, effect)]
    close(probability(*arrays, *more), p, scale=5)


@pytest.mark.parametrize("name", ASYMPTOTES)
def test_asymptotes_round_trip(name):
    c, d = ASYMPTOTES[name]
    asymptotes = _asymptotes(name)
    close(asymptotes.guessing, c)
    close(asymptotes.feasibility, d)


def test_case_2_a_guess_of_a_fifth_at_theta_0_is_below_1():
    # py-irt 54: guessing .2 and theta 0 gave a probability above 1.
    p = probability(jnp.zeros((1, 1)), jnp.ones((1, 1)), jnp.zeros(1), 0.2)
    assert float(p[0, 0]) == pytest.approx(0.6, rel=1e-6)


@given(
    logit=st.floats(-1e4, 1e4, width=32),
    guessing=st.floats(0, 0.875, width=32),
    room=st.floats(0.0078125, 1, width=32),
)
def test_case_2_probability_lies_between_guessing_and_feasibility(logit, guessing, room):
    feasibility = np.float32(guessing) + np.float32(room) * (1 - np.float32(guessing))
    feasibility = min(feasibility, np.float32(1))
    c, d = np.float32(guessing), np.float32(feasibility)
    one = np.ones((1, 1), np.float32)
    p = np.float32(probability(one, one * 0, np.full(1, logit, np.float32), c, d)[0, 0])
    # One rounding of the sum is all that is forgiven; beyond 0 and 1 nothing is.
    assert np.nextafter(c, np.float32(-1)) <= p <= np.nextafter(d, np.float32(2))
    assert 0 <= p <= 1


@pytest.mark.parametrize("name", ASYMPTOTES)
def test_case_2_training_and_prediction_share_one_function(name):
    asymptotes, logit = _asymptotes(name), jnp.linspace(-9, 9, 37)
    log_p, log_not_p = log_probabilities(logit, asymptotes)
    p = response_probability(logit, asymptotes)
    right, wrong = response_probabilities(logit, asymptotes)
    published = probability(
        logit[:, None],
        jnp.ones((1, 1)),
        jnp.zeros(1),
        asymptotes.guessing[None],
        asymptotes.feasibility[None],
    )
    for other in (right, published[:, 0], jnp.exp(log_p), 1 - wrong, 1 - jnp.exp(log_not_p)):
        close(other, p)


@pytest.mark.parametrize("name", ASYMPTOTES)
@pytest.mark.parametrize("logit", [1e4, -1e4])
@pytest.mark.parametrize("response", RESPONSES)
def test_case_17_extreme_logits_have_a_finite_value_and_gradient(name, logit, response):
    asymptotes = _asymptotes(name)
    value, gradient = jax.value_and_grad(log_likelihood)(jnp.asarray(logit), response, asymptotes)
    assert np.isfinite(value)
    assert np.isfinite(gradient)
    cells = cell_derivatives(jnp.asarray(logit), jnp.asarray(response), asymptotes)
    assert all(np.isfinite(leaf) for leaf in jax.tree.leaves(cells))
    close(gradient, cells.first)
    without = None if name != "2pl" else jax.grad(log_likelihood)(jnp.asarray(logit), response)
    if without is not None:
        close(without, gradient)


def test_the_gradient_is_the_first_derivative_everywhere():
    # The automatic derivative of the stable form, against the formula that the estimators use.
    logit = jnp.linspace(-40, 40, 161)
    for name, response in CASES:
        asymptotes = _asymptotes(name)
        gradient = jax.vmap(jax.grad(log_likelihood), (0, None, None))(logit, response, asymptotes)
        close(gradient, cell_derivatives(logit, jnp.asarray(response), asymptotes).first)

"""Information of responses, items and tests: finite differences, expectations, limits."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from irtjax.model import information
from irtjax.model.curves import item_curves, padded_curves
from irtjax.model.information import logit_information, logit_slope
from irtjax.model.response import Asymptotes, log_likelihood, log_probabilities
from tests.tolerances import close

ASYMPTOTES = {"2pl": (0.0, 1.0), "3pl": (0.2, 1.0), "4pl": (0.15, 0.9)}
FAMILIES = ("1pl", "2pl", "3pl", "4pl")
N_ITEMS, N_POINTS = 12, 5


def _curve(logit, c, d):
    return c + (d - c) / (1 + np.exp(-logit))


def _drawn(family, dims, seed=0):
    """Items of a family with their parameters in float64, and abilities."""
    rng = np.random.default_rng((seed, dims))
    slope = rng.normal(1, 0.6, (N_ITEMS, dims)) if family != "1pl" else np.ones((N_ITEMS, dims))
    intercept = rng.normal(0, 1, N_ITEMS)
    guessing = rng.beta(5, 17, N_ITEMS) if family in ("3pl", "4pl") else np.zeros(N_ITEMS)
    feasibility = 1 - rng.beta(2, 18, N_ITEMS) if family == "4pl" else np.ones(N_ITEMS)
    parameters = (slope, intercept, guessing, feasibility)
    return item_curves(*parameters), parameters, rng.normal(size=(N_POINTS, dims))


@jax.jit
def _hessian(curves, points, response):
    """Minus the second derivatives of every item's log-likelihood at every point."""

    def likelihood(theta, item):
        logit = item.logit(theta[None])[0, 0]
        log_p, log_not_p = log_probabilities(logit, jax.tree.map(lambda x: x[0], item.asymptotes))
        return response * log_p + (1 - response) * log_not_p

    each = jax.tree.map(lambda leaf: leaf[:, None], curves)
    return -jax.vmap(jax.vmap(jax.hessian(likelihood), (None, 0)), (0, None))(points, each)


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


def test_a_3pl_items_information_has_one_peak_above_its_difficulty():
    curves = item_curves(np.array([[1.5]]), np.array([0.0]), 0.25)
    ability = np.linspace(-30, 30, 6001)[:, None]
    found = np.asarray(information.item_information(curves, jnp.asarray(ability, jnp.float32)))
    assert found[0, 0] < 1e-12
    assert found[-1, 0] < 1e-12
    # Lord (1980), eq. 10-4: the peak lies log((1 + sqrt(1 + 8 c)) / 2) / a above the difficulty.
    peak = np.log((1 + np.sqrt(1 + 8 * 0.25)) / 2) / 1.5
    assert abs(ability[np.argmax(found[:, 0]), 0] - peak) < 0.02
    assert np.count_nonzero(np.diff(np.sign(np.diff(found[:, 0]))) < 0) >= 1


@pytest.mark.oracle
@pytest.mark.parametrize("dims", [1, 2, 3, 4])
@pytest.mark.parametrize("family", FAMILIES)
def test_matrices_are_squared_finite_differences_over_the_variance(family, dims):
    curves, (slope, intercept, c, d), ability = _drawn(family, dims)
    step = np.longdouble(1e-7)
    gradient = np.empty((N_POINTS, N_ITEMS, dims))
    for k in range(dims):
        move = np.zeros(dims, np.longdouble)
        move[k] = step
        ends = [
            _curve((ability + sign * move) @ slope.T.astype(np.longdouble) + intercept, c, d)
            for sign in (1, -1)
        ]
        gradient[..., k] = (ends[0] - ends[1]) / (2 * step)
    p = _curve(ability @ slope.T + intercept, c, d)
    expected = gradient[..., :, None] * gradient[..., None, :] / (p * (1 - p))[..., None, None]
    points = jnp.asarray(ability)
    loose = {"kind": "reduction", "scale": 10.0}
    found = information.information_matrices(curves, points)
    close(found, expected, **loose)
    if jax.config.jax_enable_x64:
        assert np.abs(np.asarray(found) - expected).max() < 1e-8
    trace = np.trace(expected, axis1=2, axis2=3)
    close(information.item_information(curves, points), trace, **loose)
    direction = np.full(dims, dims**-0.5)
    along = np.einsum("k,pjkl,l->pj", direction, expected, direction)
    toward = jnp.asarray(direction, points.dtype)
    close(information.item_information(curves, points, toward), along, **loose)
    close(information.item_slope(curves, points, toward), gradient @ direction, **loose)
    close(information.total_information(curves, points), expected.sum(axis=1), **loose)
    weight = np.arange(1, N_POINTS + 1) / np.sum(np.arange(1, N_POINTS + 1))
    weights = jnp.asarray(weight, points.dtype)
    close(information.mean_information(curves, points, weights), weight @ trace, **loose)
    close(
        information.mean_slope(curves, points, weights, toward),
        weight @ (gradient @ direction),
        **loose,
    )


@pytest.mark.oracle
@pytest.mark.parametrize("dims", [1, 2, 3, 4])
@pytest.mark.parametrize("family", FAMILIES)
def test_matrices_are_the_mean_over_responses_of_second_derivatives(family, dims):
    curves, (slope, intercept, c, d), ability = _drawn(family, dims, seed=1)
    points = jnp.asarray(ability)

    right, wrong = (np.asarray(_hessian(curves, points, response)) for response in (1.0, 0.0))
    p = _curve(ability @ slope.T + intercept, c, d)[..., None, None]
    found = information.information_matrices(curves, points)
    close(found, p * right + (1 - p) * wrong, kind="solve")
    ones = jnp.ones((N_POINTS, N_ITEMS))
    close(information.observed_information_matrices(curves, points, ones), right, kind="solve")
    close(
        information.observed_information(curves, points, 0 * ones),
        np.trace(wrong, axis1=2, axis2=3),
        kind="solve",
    )
    if jax.config.jax_enable_x64:
        assert np.abs(np.asarray(found) - (p * right + (1 - p) * wrong)).max() < 1e-8


@pytest.mark.oracle
@pytest.mark.parametrize("family", FAMILIES)
def test_one_dim_is_the_published_formula(family):
    """`a^2 (P - c)^2 (d - P)^2 / ((d - c)^2 P (1 - P))`: Magis (2013), eq. 3; catsim's."""
    curves, (slope, intercept, c, d), ability = _drawn(family, 1)
    p = _curve(ability @ slope.T + intercept, c, d)
    expected = slope[:, 0] ** 2 * (p - c) ** 2 * (d - p) ** 2 / ((d - c) ** 2 * p * (1 - p))
    close(information.item_information(curves, jnp.asarray(ability)), expected, kind="reduction")


# What `catsim.irt.inf(theta, a, b, c, d)` of catsim 0.21.0 says at theta -2, 0 and 1.5.
CATSIM = {
    (1.0, 0.5, 0.0, 1.0): (0.07010371654510816, 0.23500371220159447, 0.1966119332414818),
    (1.7, -0.4, 0.0, 1.0): (0.16757317570382874, 0.6450180566300217, 0.10578635059949834),
    (1.3, 0.8, 0.22, 1.0): (0.003502908408787155, 0.1567697423333303, 0.24780044298022327),
    (0.9, -1.1, 0.18, 0.93): (0.08547101479552784, 0.08952499199146466, 0.024921261128865856),
}


@pytest.mark.oracle
def test_one_dim_is_catsims():
    slope, difficulty, guessing, feasibility = np.array(list(CATSIM)).T
    curves = item_curves(slope[:, None], -slope * difficulty, guessing, feasibility)
    points = jnp.asarray([[-2.0], [0.0], [1.5]])
    found = information.item_information(curves, points)
    close(found, np.array(list(CATSIM.values())).T, kind="reduction")


def test_blocks_of_items_and_flat_items_at_the_end_change_nothing(monkeypatch):
    monkeypatch.setattr(information, "_ITEMS_AT_A_TIME", 100)
    rng = np.random.default_rng(3)
    n = 217
    curves = item_curves(rng.normal(1, 0.5, (n, 2)), rng.normal(size=n), 0.2)
    points = jnp.asarray(rng.normal(size=(3, 2)), jnp.float32)
    weight = jnp.full(3, 1 / 3)
    each = np.asarray(information.item_information(curves, points), np.float64)
    np.testing.assert_allclose(
        information.mean_information(curves, points, weight), each.mean(axis=0), rtol=1e-5
    )
    total = information.total_information(curves, points)
    np.testing.assert_allclose(np.trace(total, axis1=1, axis2=2), each.sum(axis=1), rtol=1e-5)
    more = information.total_information(padded_curves(curves, n + 50), points)
    np.testing.assert_allclose(more, total, rtol=1e-5)


def test_information_does_not_depend_on_the_frame():
    curves, _, ability = _drawn("4pl", 2)
    turn = np.linalg.qr(np.random.default_rng(5).normal(size=(2, 2)))[0].astype(np.float32)
    turned = item_curves(curves.slope @ turn, curves.intercept, curves.guessing, curves.feasibility)
    points = jnp.asarray(ability, jnp.float32)
    found = information.total_information(turned, points @ turn)
    expected = turn.T @ np.asarray(information.total_information(curves, points)) @ turn
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)

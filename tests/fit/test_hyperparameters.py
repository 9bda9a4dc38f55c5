"""The M-steps outside the pass: each maximises what it says it does."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from irtjax.fit.hyperparameters import (
    GroupMoments,
    ItemDistribution,
    packed_precision,
    update_asymptotes,
    update_distribution,
    update_effect_variance,
)
from irtjax.model.priors import Priors
from irtjax.model.response import Asymptotes
from tests.fit.bridge import packed, unpacked
from tests.tolerances import close


@pytest.mark.oracle
@pytest.mark.parametrize("is_free", [(True, True, True), (False, False, True)])
def test_precisions_are_inverses_over_the_free_coordinates(is_free):
    root = np.random.default_rng(0).normal(size=(4, 2, 3, 3))
    covariance = root @ root.swapaxes(-1, -2) + 0.4 * np.eye(3)
    free = np.flatnonzero(is_free)
    pick = np.ix_(range(4), range(2), free, free)
    precision, log_determinant = packed_precision(jnp.asarray(covariance), is_free)
    expected = np.zeros_like(covariance)
    expected[pick] = np.linalg.inv(covariance[pick])
    close(unpacked(precision), expected, kind="solve", scale=10)
    close(log_determinant, np.linalg.slogdet(covariance[pick])[1], kind="solve", scale=10)


@pytest.mark.parametrize("penalty", [0.0, 0.005, 1.0])
def test_the_variance_of_one_group_maximises_the_penalised_likelihood(penalty):
    # One group, one coordinate: -n/2 (log S + C / S + penalty S), C the mean of the squares, of
    # which two items' worth are 1.
    count, squares = 50.0, 90.0
    moments = GroupMoments(
        jnp.full((1, 1), count), jnp.zeros((1, 1, 1)), jnp.full((1, 1, 1), squares), None
    )
    start = ItemDistribution(jnp.zeros((1, 1, 1)), jnp.ones((1, 1, 1, 1)), jnp.zeros((1, 1)))
    priors = Priors(trace_penalty=penalty, covariance_floor=0.0)
    renewed = update_distribution(start, moments, priors, (True,))
    best = minimize_scalar(
        lambda s: np.log(s) + (squares + 2) / (count + 2) / s + penalty * s,
        bounds=(0.01, 10),
        method="bounded",
    )
    assert float(renewed.covariance[0, 0, 0, 0]) == pytest.approx(best.x, abs=1e-4)


def _three_groups():
    """Groups of 100, 1 and 0 items around different means."""
    count = jnp.asarray([[100.0], [1.0], [0.0]])
    deviation = count[..., None] * jnp.asarray([[[0.5, -0.2]], [[3.0, 2.0]], [[0.0, 0.0]]])
    spread = count[..., None, None] * np.array([[1.0, 0.3], [0.3, 0.8]])
    away = np.asarray(deviation)[..., None] * np.asarray(deviation)[..., None, :]
    squares = np.asarray(spread) + away / np.maximum(np.asarray(count)[..., None, None], 1)
    return GroupMoments(count, deviation, jnp.asarray(packed(squares)), None)


def test_small_groups_are_shrunk_to_the_pooled_distribution():
    start = ItemDistribution(
        jnp.zeros((3, 1, 2)), jnp.broadcast_to(jnp.eye(2), (3, 1, 2, 2)), jnp.zeros((3, 1))
    )
    renewed = update_distribution(start, _three_groups(), Priors(), (True, True))
    mean, covariance = np.asarray(renewed.mean[:, 0]), np.asarray(renewed.covariance[:, 0])
    pooled = (100 * np.array([0.5, -0.2]) + np.array([3.0, 2.0])) / 101
    # 100 items hardly move; one item is worth as much as the prior; no items, all prior.
    np.testing.assert_allclose(mean[0], [0.5, -0.2], atol=0.01)
    np.testing.assert_allclose(mean[1], (pooled + [3.0, 2.0]) / 2, rtol=1e-5)
    np.testing.assert_allclose(mean[2], pooled, rtol=1e-5)
    np.testing.assert_allclose(covariance[2], covariance[0], rtol=0.05)
    assert np.all(np.linalg.eigvalsh(covariance) > 0)


def test_one_item_does_not_make_a_distribution_that_is_a_point():
    start = ItemDistribution(jnp.zeros((1, 1, 2)), jnp.eye(2)[None, None], jnp.zeros((1, 1)))
    # An item whose posterior is as good as known.
    known = GroupMoments(
        jnp.ones((1, 1)),
        jnp.asarray([[[0.5, -1.0]]]),
        jnp.asarray([[[0.25, -0.5, 1.0]]]) + 1e-6,
        None,
    )
    renewed = update_distribution(start, known, Priors(trace_penalty=0.0), (True, True))
    np.testing.assert_allclose(renewed.mean[0, 0], [0.5, -1.0], rtol=1e-5)
    np.testing.assert_allclose(renewed.covariance[0, 0], 2 / 3 * np.diag([0.25, 1.0]), atol=2e-3)


def test_no_items_at_all_leave_something_finite():
    start = ItemDistribution(
        jnp.zeros((1, 2, 2)), jnp.broadcast_to(jnp.eye(2), (1, 2, 2, 2)), jnp.zeros((1, 2))
    )
    nothing = GroupMoments(
        jnp.zeros((1, 2)), jnp.zeros((1, 2, 2)), jnp.zeros((1, 2, 3)), jnp.zeros((1, 2, 4))
    )
    renewed = update_distribution(start, nothing, Priors(), (True, True))
    assert all(np.isfinite(leaf).all() for leaf in (renewed.mean, renewed.covariance))
    np.testing.assert_allclose(np.exp(renewed.log_weight), 0.5, rtol=1e-6)
    precision, log_determinant = packed_precision(renewed.covariance, (True, True))
    assert np.isfinite(precision).all()
    assert np.isfinite(log_determinant).all()


@pytest.mark.oracle
def test_the_variance_of_effects_is_their_mean_square_with_a_prior_pair():
    rng = np.random.default_rng(2)
    effect, spread = rng.normal(size=(5, 3)), rng.uniform(0.1, 0.4, (5, 3))
    seen = rng.random((5, 3)) < 0.7
    expected = ((effect**2 + spread)[seen].sum() + 0.4) / (seen.sum() + 1)
    arrays = [jnp.asarray(v) for v in (effect, spread, seen)]
    close(update_effect_variance(*arrays, Priors(effect_variance=0.4)), expected, kind="reduction")
    # Nobody seen: the prior.
    nobody = update_effect_variance(*arrays[:2], jnp.zeros((5, 3), bool), Priors())
    close(nobody, 0.25)


def _counts(*four):
    """Answers of one group: right by knowing, wrong in spite of it, right, wrong."""
    answers = jnp.asarray(four, float).reshape(1, 1, 4)
    empty = jnp.zeros((1, 1))
    return GroupMoments(empty, empty[..., None], empty[..., None], answers)


def test_asymptotes_stay_apart_and_fixed_ones_fixed():
    current = Asymptotes.from_natural(jnp.asarray([0.2]), jnp.asarray([0.9]))
    # Everyone who knows fails, everyone who does not is right: the estimates would cross.
    crossed = update_asymptotes(current, _counts(0, 1000, 1000, 1000).answers[:, 0], Priors())
    c, d = float(crossed.guessing[0]), float(crossed.feasibility[0])
    assert 0 < c < d < 1
    for fixed, name, value in (
        (dataclasses.replace(current, lower=jnp.asarray([-jnp.inf])), "guessing", 0.0),
        (dataclasses.replace(current, upper=jnp.asarray([jnp.inf])), "feasibility", 1.0),
    ):
        renewed = update_asymptotes(fixed, _counts(50, 5, 70, 40).answers[:, 0], Priors())
        assert float(getattr(renewed, name)[0]) == value
        assert all(not np.isnan(leaf).any() for leaf in (renewed.lower, renewed.upper))


def test_without_answers_the_asymptotes_are_their_priors_modes():
    current = Asymptotes.from_natural(jnp.asarray([0.2]), jnp.asarray([0.9]))
    renewed = update_asymptotes(current, _counts(0, 0, 0, 0).answers[:, 0], Priors())
    close(renewed.guessing[0], 4 / 20, kind="reduction")
    close(renewed.feasibility[0], 1 - 1 / 18, kind="reduction")

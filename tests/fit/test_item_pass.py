"""One full pass over the items, at a real size, against the oracle's loops; then its M-steps."""

import jax
import numpy as np
import pytest

from irtjax.fit.hyperparameters import update_asymptotes, update_distribution
from irtjax.fit.models_step import ability_covariances, effect_spreads, step_models
from irtjax.model.priors import Priors
from tests.fit import reference
from tests.fit.bridge import Placed, unpacked
from tests.tolerances import close

# 100 x 3,000 is where jaxlib 0.10.2 is wrong and small shapes are right. The items are cut in
# blocks that end within groups, and the last block is not full.
ITEMS_PER_BLOCK = 256
SIZE = {"n_models": 100, "n_items": 3000, "n_groups": 7}
KINDS = {
    "2pl": {"dims": 2, "is_uncertain": True},
    "everything": {
        "dims": 2,
        "n_components": 2,
        "has_asymptotes": True,
        "is_fractional": True,
        "is_weighted": True,
        "is_uncertain": True,
    },
    "1pl": {"dims": 1, "has_effects": False, "is_free": (False, True), "n_nodes": 5},
}


@pytest.fixture(scope="module", params=list(KINDS))
def passed(request):
    """The problem, what the oracle says, and what the estimator computed."""
    problem = reference.random_problem(np.random.default_rng(7), **SIZE, **KINDS[request.param])
    placed = Placed(problem, ITEMS_PER_BLOCK)
    return placed, reference.renew(problem), *placed.renew()


@pytest.mark.oracle
def test_posteriors_and_shares(passed):
    placed, expected, _, renewed = passed
    mean, covariance, share = placed.items_first(renewed)
    # With asymptotes the information of some items is barely positive definite: a covariance
    # beyond 5 is the inverse of a difference, and float32 does not have its digits.
    clear = np.max(np.abs(expected.covariance), axis=(1, 2, 3)) < 5
    assert clear.mean() > 0.95
    close(mean[clear], expected.mean[clear], kind="solve")
    close(covariance[clear], expected.covariance[clear], kind="solve")
    # A share is a difference of bounds of about 60 nats each.
    close(share, expected.share, kind="solve", scale=10)


@pytest.mark.oracle
def test_bound(passed):
    _, expected, result, _ = passed
    close(result.bound, expected.bound, kind="reduction")


@pytest.mark.oracle
def test_statistics_of_the_models(passed):
    _, expected, result, _ = passed
    # A score is a difference of sums of 2,400 terms.
    close(result.models.score, expected.score, kind="solve", scale=100)
    close(unpacked(result.models.information), expected.information, kind="solve", scale=100)


@pytest.mark.oracle
def test_statistics_of_the_effects(passed):
    placed, expected, result, _ = passed
    if placed.effect is None:
        assert result.effects is None
        return
    close(result.effects.score, expected.effect_score, kind="solve", scale=30)
    close(result.effects.information, expected.effect_information, kind="solve", scale=30)
    close(result.effects.cross, expected.effect_cross, kind="solve", scale=30)


@pytest.mark.oracle
def test_moments_of_the_groups(passed):
    placed, expected, result, _ = passed
    moments = result.moments
    close(moments.count, expected.count, kind="solve", scale=100)
    close(moments.deviation, expected.deviation, kind="solve", scale=100)
    close(unpacked(moments.squares), expected.squares, kind="solve", scale=100)
    if placed.asymptotes is None:
        assert moments.answers is None
    else:
        close(moments.answers, expected.answers, kind="solve", scale=1000)


@pytest.mark.oracle
def test_the_models_step_is_a_dense_joint_newton_step(passed):
    placed, expected, result, _ = passed
    ability, effect = jax.jit(step_models)(
        placed.ability, placed.effect, np.asarray(0.3, placed.ability.dtype), result
    )
    problem = placed.problem
    truth = reference.newton_models(problem.ability, problem.effect, 0.3, expected)
    close(ability, truth[0], kind="solve")
    if effect is not None:
        close(effect, truth[1], kind="solve")


@pytest.mark.oracle
def test_posterior_variances_of_models_are_inverse_informations(passed):
    placed, expected, result, _ = passed
    dims, tau_squared = placed.problem.ability.shape[1], 0.3
    is_scored = np.arange(SIZE["n_models"]) != 4
    covariance = jax.jit(ability_covariances)(result, is_scored)
    truth = np.linalg.inv(expected.information + np.eye(dims))
    truth[4] = np.eye(dims)  # nothing known of it but the prior
    close(covariance, truth, kind="solve", scale=0.1)
    spread = jax.jit(effect_spreads)(result, np.asarray(tau_squared, placed.ability.dtype))
    if placed.effect is None:
        assert spread is None
    else:
        close(spread, 1 / (expected.effect_information.T + 1 / tau_squared), kind="solve")


@pytest.mark.oracle
def test_the_distribution_is_renewed_as_its_formula_says(passed):
    placed, expected, result, _ = passed
    priors = Priors(mean_weight=2.0, covariance_weight=7.0, share_weight=3.0, trace_penalty=0.05)
    renewed = jax.jit(update_distribution, static_argnums=(2, 3))(
        placed.distribution, result.moments, priors, placed.problem.is_free
    )
    mean, covariance, weight = _renewed_distribution(placed.problem, expected, priors)
    close(renewed.mean, mean, kind="solve")
    close(renewed.covariance, covariance, kind="solve")
    close(renewed.log_weight, np.log(weight), kind="solve")


def _renewed_distribution(problem, expected, priors):
    n_groups, n_components, size = problem.mu.shape
    free = np.array(problem.is_free)
    mean, covariance = problem.mu.copy(), np.zeros_like(problem.sigma)
    weight = np.empty((n_groups, n_components))
    for c in range(n_components):
        total = expected.count[:, c].sum()
        pooled_mean = sum(
            expected.deviation[g, c] + expected.count[g, c] * problem.mu[g, c]
            for g in range(n_groups)
        )
        pooled_mean /= total
        within = []
        for g in range(n_groups):
            n, mu, mw = expected.count[g, c], problem.mu[g, c], priors.mean_weight
            new = (expected.deviation[g, c] + n * mu + mw * pooled_mean) / (n + mw)
            mean[g, c] = np.where(free, new, mu)
            s = new - mu
            d = expected.deviation[g, c]
            within.append(
                expected.squares[g, c] - np.outer(d, s) - np.outer(s, d) + n * np.outer(s, s)
            )
        # Two items' worth of fixed variances, in equal parts.
        fixed = np.diag([0.25] * (size - 1) + [1.0])
        within = [each + 2 / n_groups * fixed for each in within]
        pooled = sum(within) / (total + 2)
        for g in range(n_groups):
            n, w = expected.count[g, c] + 2 / n_groups, priors.covariance_weight
            raw = (within[g] + w * pooled) / (n + w)
            value, vector = np.linalg.eigh(raw)
            # The root of `penalty l^2 + l = value`.
            p = priors.trace_penalty
            shrunk = (np.sqrt(1 + 4 * p * value) - 1) / (2 * p)
            new = vector @ np.diag(shrunk) @ vector.T + priors.covariance_floor * np.eye(size)
            covariance[g, c] = np.where(free[:, None] & free, new, 0)
    share = expected.count.sum(axis=0) / expected.count.sum()
    for g in range(n_groups):
        counts = expected.count[g] + priors.share_weight * share + 0.5
        weight[g] = counts / counts.sum()
    return mean, covariance, weight


@pytest.mark.oracle
def test_shared_asymptotes_are_renewed_by_their_expected_counts(passed):
    placed, expected, result, _ = passed
    if placed.asymptotes is None:
        return
    priors = Priors(guessing=(3.0, 9.0), infeasibility=(2.0, 11.0))
    renewed = jax.jit(update_asymptotes, static_argnums=2)(
        placed.asymptotes, result.moments.answers.sum(axis=1), priors
    )
    for g, counts in enumerate(expected.answers.sum(axis=1)):
        known_right, known_wrong, right, wrong = counts
        guessed, missed = right - known_right, wrong - known_wrong
        c = (guessed + 2) / (guessed + missed + 10)
        d = 1 - (known_wrong + 1) / (known_right + known_wrong + 11)
        close(renewed.guessing[g], c, kind="solve")
        close(renewed.feasibility[g], d, kind="solve")

"""The prior of benchmark effects, and abilities with effects integrated out: dense grids."""

import numpy as np
import pytest
from scipy.special import logsumexp

from irtjax.score.bank import item_bank
from irtjax.score.effects import EffectPrior, effects_like, fitted_effect_prior
from irtjax.score.known import known_cells
from irtjax.score.left_out import effect_prior
from irtjax.score.models import latent_scores
from tests.fit.fitting import fitted
from tests.score.fits import N_ITEMS, answers, given


def _prior(loading):
    group = (np.arange(N_ITEMS) % 2).astype(np.int32)
    return EffectPrior(group, ["x", "y"], np.asarray(loading, float), np.array([0.5, 1.0]))


@pytest.mark.oracle
@pytest.mark.parametrize("loading", [(0.0, 0.0), (0.8, 0.4)])
def test_effects_are_integrated_out_as_on_a_dense_grid(loading):
    known, prior = given(1, "2pl", 0.0), _prior(loading)
    rng = np.random.default_rng(2)
    patterns = rng.integers(0, 2, (4, N_ITEMS)).astype(float)
    patterns[3] = 1
    data = answers(patterns)
    cells = known_cells(known.fit, data, "test")
    bank = item_bank(known.fit, prior, is_uncertain=False)
    ability, covariance = latent_scores(bank, cells, 4, "eap", 1)
    theta, common, effect = (np.linspace(-w, w, n) for w, n in ((6, 121), (6, 61), (5, 81)))
    for row, pattern in enumerate(patterns):
        log = np.zeros((len(theta), len(common)))
        for g in range(2):
            inside = prior.group == g
            slope, intercept = known.oracle.mean[inside].T
            shift = prior.loading[g] * common[:, None] + effect
            logit = slope * theta[:, None, None, None] + intercept + shift[..., None]
            signed = np.where(pattern[inside] == 1, 1, -1) * logit
            each = -np.logaddexp(0, -signed).sum(axis=-1)
            log += logsumexp(each - 0.5 * effect**2 / prior.variance[g], axis=2)
        log -= 0.5 * theta[:, None] ** 2 + 0.5 * common**2
        weight = np.exp(logsumexp(log, axis=1))
        weight /= weight.sum()
        mean = weight @ theta
        sd = np.sqrt(weight @ (theta - mean) ** 2)
        np.testing.assert_allclose(ability[row, 0], mean, rtol=0, atol=4e-3)
        np.testing.assert_allclose(np.sqrt(covariance[row, 0, 0]), sd, rtol=0, atol=4e-3)


def test_what_effects_have_in_common_is_found():
    rng = np.random.default_rng(0)
    loading, own = np.array([1.0, 0.5, 1.5, 1.0]), np.array([0.3, 0.3, 0.3, 0.3])
    effect = rng.normal(size=(400, 1)) * loading + rng.normal(size=(400, 4)) * np.sqrt(own)
    found = effects_like(effect, np.arange(4), list("wxyz"))
    np.testing.assert_allclose(found.loading, loading, atol=0.2)
    np.testing.assert_allclose(found.variance, own, atol=0.12)


def test_a_fit_without_effects_has_none_and_its_residuals_tell_their_spread():
    fit = fitted("2pl")
    assert fitted_effect_prior(fit) is None
    found = effect_prior(fit, "benchmark")
    assert len(found.names) == 4
    # Simulated without effects: what is left is sampling noise of 54 answers a benchmark.
    assert np.sqrt(found.variance + found.loading**2).max() < 0.6
    assert effect_prior(fitted("2pl-2d"), "benchmark").variance.shape == (4,)

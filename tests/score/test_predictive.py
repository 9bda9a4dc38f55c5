"""The posterior predictive with effects of unknown scale, against a dense grid."""

import numpy as np
import pytest
from scipy.special import expit, logsumexp

from irtjax.score.bank import item_bank
from irtjax.score.effects import EffectPrior
from irtjax.score.known import known_cells
from irtjax.score.predictive import Known, posterior_predictive
from tests.score.fits import N_ITEMS, answers, given

SCALES = ((1.0, 0.8), (2.0, 0.15), (4.0, 0.05))
GROUP = (np.arange(N_ITEMS) % 2).astype(np.int32)
THETA, COMMON, EFFECT = (np.linspace(-w, w, n) for w, n in ((5, 61), (5, 41), (6, 121)))


def _of_scale(known, pattern, loading, sd, scale=1.0):
    """Log-weights over abilities and common parts; mean and variance of the sum of the rest."""
    loading, sd = scale * loading, scale * sd
    log = np.zeros((len(THETA), len(COMMON)))
    mean = np.zeros_like(log)
    variance = np.zeros_like(log)
    for g in range(2):
        slope, intercept = known.oracle.mean[GROUP == g].T
        here = pattern[GROUP == g]
        shift = loading[g] * COMMON[:, None] + sd[g] * EFFECT
        logit = slope * scale * THETA[:, None, None, None] + intercept + shift[..., None]
        p = expit(logit)
        prior = -0.5 * EFFECT**2 - logsumexp(-0.5 * EFFECT**2)
        signed = np.where(here == 1, 1, -1) * logit
        seen = -np.logaddexp(0, -signed)[..., ~np.isnan(here)].sum(axis=-1)
        total = logsumexp(seen + prior, axis=2)
        weight = np.exp(seen + prior - total[..., None])
        rest = p[..., np.isnan(here)]
        sums = rest.sum(axis=-1)
        given_both = np.sum(weight * sums, axis=2)
        noise = np.sum(weight * (rest * (1 - rest)).sum(axis=-1), axis=2)
        spread = np.sum(weight * (sums - given_both[..., None]) ** 2, axis=2)
        log, mean, variance = log + total, mean + given_both, variance + noise + spread
    prior = -0.5 * THETA[:, None] ** 2 - 0.5 * COMMON**2
    return log + prior - logsumexp(prior), mean, variance


@pytest.mark.oracle
def test_scores_are_those_of_a_dense_grid_over_scales_too():
    known = given()
    loading, variance = np.array([0.4, -0.3]), np.array([0.1, 0.2])
    prior = EffectPrior(GROUP, ["x", "y"], loading, variance)
    patterns = np.full((3, N_ITEMS), np.nan)
    patterns[0, :8] = [1, 0, 1, 0, 1, 0, 1, 0]
    patterns[1, :6] = [1, 1, 0, 1, 1, 0]
    data = answers(patterns)
    cells = known_cells(known.fit, data, "test")
    bank = item_bank(known.fit, prior, is_uncertain=False)
    found = posterior_predictive(bank, cells, Known.of(cells, 3, bank, 2), 1)
    for row, pattern in enumerate(patterns):
        parts = [
            (*_of_scale(known, pattern, loading, np.sqrt(variance), scale), share)
            for scale, share in SCALES
        ]
        log = np.stack([part[0] + np.log(part[3]) for part in parts])
        weight = np.exp(log - logsumexp(log))
        mean, spread = (np.stack([part[k] for part in parts]) for k in (1, 2))
        expected = np.sum(weight * mean)
        sd = np.sqrt(np.sum(weight * (spread + (mean - expected) ** 2)))
        assert found.mean[row, -1] == pytest.approx(
            (np.nansum(pattern) + expected) / N_ITEMS, abs=2e-3
        )
        assert found.sd[row, -1] == pytest.approx(sd / N_ITEMS, abs=2e-3)

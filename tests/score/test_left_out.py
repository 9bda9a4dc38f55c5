"""What items would be without one model's answers: a NumPy oracle, refits, strata."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import expit

from irtjax.fit.refits import refit_without
from irtjax.score.bank import item_bank, population_frame
from irtjax.score.cells import Answers
from irtjax.score.left_out import _items, _shifts, _without, stratum_prior
from irtjax.score.models import score_models
from tests.fit.fitting import fitted
from tests.score.fits import N_ITEMS, given
from tests.score.oracle import CURVE_NODES, CURVE_WEIGHTS
from tests.tolerances import close


def _averaged(slope_and_intercept, covariance, x):
    """Mean over an item's logit of P and of P (1 - P), by the quadrature that the package takes."""
    sd = np.sqrt(x @ covariance @ x)
    p = expit(slope_and_intercept @ x + sd * CURVE_NODES)
    return CURVE_WEIGHTS @ p, CURVE_WEIGHTS @ (p * (1 - p))


@pytest.mark.oracle
@pytest.mark.parametrize("dims", [1, 2])
def test_an_answer_is_taken_out_as_by_inverting_precisions(dims):
    known = given(dims, "2pl", 0.7)
    bank = item_bank(known.fit, None, is_uncertain=True)
    items = _items(bank, np.arange(N_ITEMS))
    response = np.arange(N_ITEMS) % 2 * 1.0
    weight = np.where(np.arange(N_ITEMS) < 9, 1.0, 0.0)
    latent = np.linspace(-0.5, 1, dims)
    dtype = np.asarray(bank.mean).dtype
    answers = Answers(jnp.asarray(response, dtype)[None], jnp.asarray(weight, dtype)[None])
    found = _without(items, answers, jnp.asarray(latent, dtype)[None])
    x = np.append(latent, 1.0)
    rows, columns = np.tril_indices(dims + 1)
    for j in range(N_ITEMS):
        mean, covariance = known.oracle.mean[j], known.oracle.covariance[j]
        p, information = _averaged(mean, covariance, x)
        precision = np.linalg.inv(covariance) - weight[j] * information * np.outer(x, x)
        without = np.linalg.inv(precision)
        moved = mean - without @ x * weight[j] * (response[j] - p)
        close(found.mean[0, 0, j], moved, kind="solve")
        close(found.covariance[0, 0, j], without[rows, columns], kind="solve")


def _curves(fit, theta):
    bank = item_bank(fit, None, is_uncertain=True)
    frame = population_frame(fit)
    x = np.array([(theta - frame[0, 1]) / frame[0, 0], 1.0])
    both = zip(np.asarray(bank.mean)[:, 0], np.asarray(bank.covariance)[:, 0], strict=True)
    # Packed lower triangles of two coordinates.
    return np.array([_averaged(mean, v[[[0, 1], [1, 2]]], x)[0] for mean, v in both])


def test_shifts_are_those_after_a_refit_without_the_model():
    fit = fitted("2pl")
    group, names = fit.data.groups("benchmark")
    shifts = _shifts(fit, group, len(names))
    dense = fit.data.to_dense()
    for row in (0, 7):
        without = refit_without(fit, models=np.arange(fit.data.n_models) == row)
        new = fit.data.replace(dense=np.where(np.arange(len(dense))[:, None] == row, dense, -1))
        p = _curves(without, score_models(without, new, method="map").dim1_ability[row])
        seen = dense[row] >= 0
        excess = np.bincount(group, seen * (dense[row] - p), len(names))
        expected = excess / np.bincount(group, seen * p * (1 - p), len(names))
        # A refit learns all abilities anew: a sixth of a shift's own noise (.37).
        np.testing.assert_allclose(shifts[row], expected, rtol=0, atol=0.06)


def test_strata_are_those_of_the_other_models():
    fit = fitted("2pl")
    found = _shifts(fit, None, 6)
    dense = fit.data.to_dense().astype(float)
    dense[dense < 0] = np.nan
    for row in (0, 7):
        share = np.nanmean(np.delete(dense, row, axis=0), axis=0)
        rank = np.argsort(np.argsort(share, kind="stable"), kind="stable")
        strata = (rank * 6 // len(rank)).astype(np.int32)
        close(found[row], _shifts(fit, strata, 6)[row])
    assert np.bincount(stratum_prior(fit).group).tolist() == [fit.data.n_items // 6] * 6

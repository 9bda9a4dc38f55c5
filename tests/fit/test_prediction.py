"""Probabilities of single cells: exact in the tails, whatever their number and order."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import expit

from irtjax.fit.prediction import PredictionParameters, cell_probabilities
from irtjax.model.metrics import log_loss
from irtjax.model.response import Asymptotes
from tests.fit.fitting import N_ITEMS, N_MODELS, fitted


def _parameters(ability, intercept, variance=0.0, asymptotes=None):
    """Items of slope 1 with a known (or uncertain) intercept."""
    n = len(intercept)
    covariance = np.zeros((n, 1, 3), np.float32)
    covariance[:, :, 2] = variance
    mean = np.stack([np.ones(n), intercept], axis=1)[:, None]
    return PredictionParameters(
        jnp.asarray(ability, jnp.float32)[:, None],
        None,
        jnp.zeros(n, jnp.int32),
        jnp.asarray(mean, jnp.float32),
        jnp.asarray(covariance),
        jnp.ones((n, 1), jnp.float32),
        asymptotes,
    )


def test_neither_p_nor_1_minus_p_rounds_to_0():
    intercept = np.array([-40.0, -20.0, 0.0, 20.0, 30.0])
    parameters = _parameters([0.0], intercept)
    p = cell_probabilities(parameters, np.zeros(5, int), np.arange(5))
    np.testing.assert_allclose(p, expit(intercept), rtol=1e-5)
    np.testing.assert_allclose(1 - p[3:], expit(-intercept[3:]), rtol=1e-3)
    # A confident prediction that is wrong costs its logit, not infinity.
    assert log_loss(p[3:4], [0]) == pytest.approx(20, rel=1e-4)
    assert log_loss(p[1:2], [1]) == pytest.approx(20, rel=1e-4)


def test_extreme_abilities_and_asymptotes_stay_between_the_asymptotes():
    asymptotes = Asymptotes.from_natural(jnp.asarray([0.2]), jnp.asarray([0.9]))
    parameters = _parameters([-1e4, 1e4], np.zeros(1), 4.0, asymptotes)
    p = cell_probabilities(parameters, np.arange(2), np.zeros(2, int))
    np.testing.assert_allclose(p, [0.2, 0.9], rtol=1e-6)


def test_uncertain_items_pull_predictions_to_one_half():
    certain = cell_probabilities(_parameters([0.0], [2.0]), np.zeros(1, int), np.zeros(1, int))
    wide = cell_probabilities(_parameters([0.0], [2.0], 4.0), np.zeros(1, int), np.zeros(1, int))
    assert 0.5 < wide[0] < certain[0]


def test_more_cells_than_fit_a_call_in_any_order():
    fit = fitted("2pl-2d")
    rng = np.random.default_rng(0)
    models, items = rng.integers(0, N_MODELS, 70_001), rng.integers(0, N_ITEMS, 70_001)
    p = fit.predict_cells(models, items)
    order = rng.permutation(len(p))
    np.testing.assert_array_equal(fit.predict_cells(models[order], items[order]), p[order])
    few = fit.predict_cells(models[-3:], items[-3:])
    np.testing.assert_array_equal(few, p[-3:])
    assert fit.predict_cells(np.zeros(0, int), np.zeros(0, int)).shape == (0,)

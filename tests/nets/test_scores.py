"""Stopping scores on the device against scikit-learn."""

import jax.numpy as jnp
import numpy as np
import pytest
from sklearn import metrics

from irtjax.nets.scores import stopping_score


@pytest.fixture(scope="module")
def cells():
    rng = np.random.default_rng(3)
    p = np.round(rng.uniform(0.01, 0.99, 400), 2)  # with ties
    y = (rng.uniform(size=400) < p).astype(float)
    weight = rng.integers(0, 3, 400).astype(float)
    return p, y, weight


def _score(by, cells):
    p, y, weight = cells
    likelihood = y * np.log(p) + (1 - y) * np.log(1 - p)
    return float(stopping_score(by, *(jnp.asarray(v) for v in (p, likelihood, y, weight))))


def test_log_loss(cells):
    expected = -metrics.log_loss(cells[1], cells[0], sample_weight=cells[2])
    assert _score("log_loss", cells) == pytest.approx(expected, rel=1e-5)


def test_f1(cells):
    expected = metrics.f1_score(cells[1], cells[0] >= 0.5, sample_weight=cells[2])
    assert _score("f1", cells) == pytest.approx(expected, rel=1e-5)


def test_auc_with_ties(cells):
    expected = metrics.roc_auc_score(cells[1], cells[0], sample_weight=cells[2])
    assert _score("auc", cells) == pytest.approx(expected, rel=1e-5)

"""What `marginal-items` says of data that it is not for."""

import numpy as np
import pytest

from irtjax.data.responses import ResponseMatrix
from irtjax.fit.items_route import FEWEST_ITEMS
from tests.fit.fitting import quiet_fit


def answers(n_models, n_items):
    """Coin flips, half of them leaning on the model."""
    rng = np.random.default_rng(0)
    leaning = rng.random((n_models, 1)) + np.zeros(n_items)
    return ResponseMatrix.from_dense(rng.random(leaning.shape) < (0.5 + leaning) / 2)


@pytest.mark.parametrize("shape", [(2, 2), (2, 6), (20, 1), (6, FEWEST_ITEMS - 1)])
def test_a_few_items_have_their_models_integrated_out(shape):
    report = quiet_fit(answers(*shape)).report
    assert report["estimator"] == "marginal-models"
    assert "auto" in report["estimator_reason"]


def test_as_many_items_as_have_a_distribution_are_integrated_out():
    assert quiet_fit(answers(6, FEWEST_ITEMS)).report["estimator"] == "marginal-items"


@pytest.mark.parametrize("distribution", ["normal", "empirical"])
def test_errors_from_a_few_items_are_warned_of(distribution):
    settings = {"estimator": "marginal-items", "item_distribution": distribution}
    warned = quiet_fit(answers(20, FEWEST_ITEMS - 1), **settings).report["warnings"]
    assert any("from 9: they are too small; use estimator marg" in each for each in warned)
    warned = quiet_fit(answers(20, FEWEST_ITEMS), **settings).report["warnings"]
    assert not any("too small" in each for each in warned)

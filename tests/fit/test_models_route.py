"""How `marginal-models` chooses its nodes, by answers, and what it says where they are few."""

import functools

import numpy as np
import pytest
from scipy.special import expit

from irtjax.data.responses import ResponseMatrix
from irtjax.errors import IrtjaxWarning
from irtjax.fit.api import fit
from irtjax.model.spec import ModelSpec
from tests.fit.fitting import quiet_fit

N_MODELS, N_ITEMS = 40, 15
# Nodes a dim, .2 standard deviations apart.
FIXED, DISTANCE = 61, 0.2


@functools.cache
def counts(n_answers):
    """Shares of right answers among so many a cell."""
    rng = np.random.default_rng(0)
    ability, difficulty = rng.normal(size=N_MODELS), rng.normal(size=N_ITEMS)
    right = rng.binomial(n_answers, expit(ability[:, None] - difficulty))
    weight = np.full(right.shape, float(n_answers))
    return ResponseMatrix.from_dense(right / n_answers, weight=weight)


@functools.cache
def automatic(n_answers):
    return quiet_fit(counts(n_answers))


@pytest.mark.parametrize("n_answers, is_adaptive", [(10, False), (50, True), (200, True)])
def test_nodes_are_chosen_by_the_number_of_answers(n_answers, is_adaptive):
    fitted = automatic(n_answers)
    assert fitted.report["estimator"] == "marginal-models"
    assert (fitted.report["settings"]["n_nodes"] != FIXED) == is_adaptive
    assert not any("nodes" in each for each in fitted.report["warnings"])


@pytest.mark.parametrize("n_answers", [50, 200])
def test_abilities_from_counts_are_distinct_and_have_the_errors_of_all_answers(n_answers):
    fitted = automatic(n_answers)
    models, items = fitted.abilities(), fitted.item_parameters()
    ability, slope = models.dim1_ability.to_numpy(), items.dim1_slope.to_numpy()
    assert len(np.unique(ability.round(3))) >= N_MODELS - 2
    p = expit(np.outer(ability, slope) + items.intercept.to_numpy())
    information = 1 + n_answers * np.sum(slope**2 * p * (1 - p), axis=1)
    # With what the errors of the items add, an eighth.
    ratio = models.dim1_ability_se * np.sqrt(information)
    assert ratio.min() > 0.98
    assert ratio.max() < 1.25


def test_fixed_nodes_too_far_apart_are_warned_of_and_leave_their_distance_open():
    with pytest.warns(IrtjaxWarning, match=r"of 40 models are known more closely .* adaptive"):
        fitted = fit(counts(200), estimator="marginal-models", quadrature="fixed")
    error = fitted.abilities().dim1_ability_se
    assert np.isfinite(error).all()
    # A uniform place between two halves of the distance.
    assert error.min() >= DISTANCE / np.sqrt(12) - 1e-6


def test_an_empirical_ability_distribution_is_told_of_more_nodes():
    with pytest.warns(IrtjaxWarning, match="more nodes"):
        fit(counts(200), ModelSpec("2pl"), ability_distribution="empirical", nodes=21)

"""Quality of predictions and recovered parameters, against plain loops."""

import math

import numpy as np
import pytest

from benchmarks.large_problems import sparse_problem
from benchmarks.problems import reference_problem_w3
from benchmarks.quality import heldout_quality, recovery
from irtjax.data.truth import Truth


@pytest.fixture(scope="module")
def truth() -> Truth:
    found = reference_problem_w3("4pl").truth
    assert found is not None
    return found


def parameters(truth: Truth) -> dict[str, np.ndarray]:
    slope = truth.slope[:, 0]
    return {
        "slope": slope,
        "difficulty": -truth.intercept / slope,
        "guessing": truth.guessing,
        "feasibility": truth.feasibility,
    }


def test_true_parameters_have_no_error(truth: Truth):
    assert max(recovery(truth, parameters(truth)).values()) < 1e-12


def test_curve_error_is_the_normal_integral_of_the_squared_gap(truth: Truth):
    wrong = parameters(truth)
    wrong["difficulty"] = wrong["difficulty"] + 0.3
    wrong["feasibility"] = np.ones(truth.n_items)
    found = recovery(truth, wrong)
    assert found["difficulty_rmse"] == pytest.approx(0.3)
    grid = np.linspace(-8, 8, 4001)
    total = 0.0
    for j in range(truth.n_items):
        slope, shift = truth.slope[j, 0], truth.intercept[j]
        low, high = truth.guessing[j], truth.feasibility[j]
        true = low + (high - low) / (1 + np.exp(-(slope * grid + shift)))
        moved = low + (1 - low) / (1 + np.exp(-(slope * (grid - 0.3) + shift)))
        density = np.exp(-(grid**2) / 2) / math.sqrt(2 * math.pi)
        total += np.sum((true - moved) ** 2 * density) * (grid[1] - grid[0])
    assert found["icc_rmse"] == pytest.approx(math.sqrt(total / truth.n_items), rel=1e-6)


def test_absent_asymptotes_are_zero_and_one(truth: Truth):
    given = parameters(truth)
    del given["guessing"], given["feasibility"]
    found = recovery(truth, given)
    assert found["guessing_rmse"] == pytest.approx(np.sqrt(np.mean(truth.guessing**2)))


def test_three_parameter_truth_reports_no_feasibility():
    truth = reference_problem_w3("3pl").truth
    assert truth is not None
    assert set(recovery(truth, parameters(truth))) == {
        "slope_rmse",
        "difficulty_rmse",
        "guessing_rmse",
        "icc_rmse",
    }


def test_heldout_quality_survives_certain_predictions_and_refuses_nan():
    problem = sparse_problem(n_models=50, n_items=400, density=0.2)
    certain = 1 - problem.test.response
    found = heldout_quality(problem, certain)
    assert found["accuracy"] == 0
    assert math.isfinite(found["log_loss"])
    assert heldout_quality(problem, np.full(len(certain), np.nan)) == {}

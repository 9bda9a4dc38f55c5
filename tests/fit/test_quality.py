"""The numbers that a fit must reach on W1 (real) and W2 (simulated): REFERENCES of the project."""

import numpy as np
import pytest

from benchmarks.problems import problem_w1
from irtjax.model.metrics import all_metrics
from irtjax.model.spec import ModelSpec
from tests.fit.fitting import quiet_fit, w2


def _metrics(result, test):
    p = result.predict_cells(test.model_index, test.item_index)
    return all_metrics(p, test.response, test.weight)


def _correlations_with_accuracy(result):
    """Of the first ability and of the expected score with the share of right answers."""
    models = result.abilities()
    return [
        np.corrcoef(models[name], models.p_correct)[0, 1]
        for name in ("dim1_ability", "expected_score")
    ]


@pytest.fixture(scope="module")
def w1(shared_dir):
    """PSN-IRT's own split: 12 models x 41,871 items."""
    return problem_w1(shared_dir)


@pytest.mark.shared
def test_w1_one_dim_equals_exact_quadrature(w1):
    result = quiet_fit(w1.train, ModelSpec("2pl"))
    assert result.status == "converged"
    # Exact quadrature: .4304.
    assert _metrics(result, w1.test)["log_loss"] <= 0.431
    ability, expected_score = _correlations_with_accuracy(result)
    assert abs(ability) >= 0.99
    assert expected_score >= 0.99


@pytest.mark.shared
def test_w1_one_dim_with_benchmark_effects(w1):
    result = quiet_fit(w1.train, ModelSpec("2pl"), group="benchmark")
    assert result.status == "converged"
    assert _metrics(result, w1.test)["log_loss"] <= 0.4005
    # The ability is what the benchmarks share once their effects are off: it does not rank.
    assert _correlations_with_accuracy(result)[1] >= 0.99
    # Effects are residuals: in no benchmark do they follow the ability or have a mean.
    effect, ability = result.parameters.effect, result.parameters.ability[:, 0]
    np.testing.assert_allclose(effect.mean(axis=0), 0, atol=1e-3)
    np.testing.assert_allclose(effect.T @ ability / len(ability), 0, atol=1e-3)


@pytest.mark.shared
@pytest.mark.slow
def test_w1_three_dims_with_benchmark_effects(w1):
    result = quiet_fit(w1.train, ModelSpec("2pl", 3), group="benchmark")
    assert result.status == "converged"
    metrics = _metrics(result, w1.test)
    assert metrics["accuracy"] >= 0.828
    assert metrics["f1"] >= 0.871
    assert metrics["auc"] >= 0.892
    assert metrics["log_loss"] <= 0.387
    assert _correlations_with_accuracy(result)[1] >= 0.99
    # Without the block that two models share (a copy leaks train into test): the prototype .401.
    kept = ~w1.is_copied
    assert kept.sum() == 94_608
    p = result.predict_cells(w1.test.model_index[kept], w1.test.item_index[kept])
    outside = all_metrics(p, w1.test.response[kept])
    assert outside["accuracy"] >= 0.7941
    assert outside["log_loss"] <= 0.402


def test_w2_two_dims():
    problem, result = w2()
    assert result.status == "converged"
    metrics = _metrics(result, problem.test)
    assert metrics["log_loss"] <= 0.4740
    assert metrics["calibration_error"] < 0.01
    r = np.corrcoef(result.parameters.ability.T, problem.truth.theta.T)[:2, 2:]
    assert np.diag(r).min() >= 0.999


@pytest.mark.slow
def test_w2_five_dims_are_safe():
    problem, two_dims = w2()
    result = quiet_fit(problem.train, ModelSpec("2pl", 5))
    for name, value in vars(result.parameters).items():
        if value is not None and "clustered" not in name:
            assert np.isfinite(value).all(), name
    assert result.status in ("converged", "stalled")
    two, five = (_metrics(fit, problem.test)["log_loss"] for fit in (two_dims, result))
    assert five <= two + 0.003

"""Metrics against scikit-learn, against duplication, and on the published predictions."""

import warnings
from pathlib import Path

import numpy as np
import pytest
import sklearn.metrics
from hypothesis import given, settings
from hypothesis import strategies as st

from irtjax.errors import InputError
from irtjax.model import metrics


def _cells(seed, n=500, tied=False):
    rng = np.random.default_rng(seed)
    probability = rng.integers(0, 11, n) / 10 if tied else rng.random(n)
    return probability, (rng.random(n) < probability).astype(float), rng.gamma(2, 1, n)


@pytest.mark.oracle
@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_agrees_with_scikit_learn(seed, weighted, tied):
    probability, response, weight = _cells(seed, tied=tied)
    weight = weight if weighted else None
    predicted = (probability >= 0.5).astype(float)
    got = metrics.all_metrics(probability, response, weight)
    options = {"sample_weight": weight}
    expected = {
        "accuracy": sklearn.metrics.accuracy_score(response, predicted, **options),
        "f1": sklearn.metrics.f1_score(response, predicted, **options),
        "auc": sklearn.metrics.roc_auc_score(response, probability, **options),
        "brier": sklearn.metrics.brier_score_loss(response, probability, **options),
    }
    if not tied:  # scikit-learn clips the certain predictions, we do not
        expected["log_loss"] = sklearn.metrics.log_loss(response, probability, **options)
    for name, value in expected.items():
        assert got[name] == pytest.approx(value, rel=1e-12), name


def test_each_function_is_its_entry_of_all_metrics():
    cells = _cells(4)
    together = metrics.all_metrics(*cells)
    for name in metrics.METRICS:
        assert getattr(metrics, name)(*cells) == together[name]
    assert set(together) == {*metrics.METRICS, "n"}
    assert together["n"] == 500
    assert isinstance(together["n"], int)


@pytest.mark.parametrize("name", metrics.METRICS)
def test_fraction_is_the_same_as_its_answers_one_by_one(name):
    rng = np.random.default_rng(5)
    trials = 4
    rights = rng.integers(0, trials + 1, 200)
    probability = np.round(rng.uniform(0.05, 0.95, 200), 2)
    one_by_one = (np.arange(trials) < rights[:, None]).astype(float)
    measure = getattr(metrics, name)
    expected = measure(np.repeat(probability, trials), one_by_one.ravel())
    assert measure(probability, rights / trials) == pytest.approx(expected, rel=1e-12)
    weight = np.full(200, float(trials))
    assert measure(probability, rights / trials, weight) == pytest.approx(expected, rel=1e-12)


def test_calibration_error_agrees_with_a_loop_over_bins():
    probability, response, weight = _cells(6)
    probability[:4] = 0, 1, 1 / 15, 2 / 15
    expected = 0.0
    for b in range(15):
        inside = (probability > b / 15) & (probability <= (b + 1) / 15)
        if b == 0:
            inside |= probability == 0
        if inside.any():
            gap = np.average(response[inside], weights=weight[inside]) - np.average(
                probability[inside], weights=weight[inside]
            )
            expected += weight[inside].sum() / weight.sum() * abs(gap)
    got = metrics.calibration_error(probability, response, weight)
    assert got == pytest.approx(expected, rel=1e-12)


def test_certain_predictions_are_not_clipped():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert metrics.log_loss([1.0, 0.5], [0, 1]) == np.inf
        assert metrics.log_loss([0.0, 0.5], [1, 1]) == np.inf
        assert metrics.log_loss([1.0, 0.0], [1, 0]) == 0.0
        assert metrics.log_loss([1.0, 0.5], [0, 1], [0, 1]) == pytest.approx(np.log(2))


def test_float32_probabilities_near_one_keep_their_tail():
    tiny = np.float32(1e-30)
    assert metrics.log_loss(np.array([tiny]), [1]) == pytest.approx(-np.log(1e-30), rel=1e-6)


@pytest.mark.parametrize("response", [[1, 1], [0, 0]])
def test_auc_of_one_class_is_nan(response):
    assert np.isnan(metrics.auc([0.2, 0.4], response))


def test_f1_without_any_right_is_nan():
    assert np.isnan(metrics.f1([0.2, 0.4], [0, 0]))


def test_no_cells_give_nan_and_zero():
    got = metrics.all_metrics([], [])
    assert got.pop("n") == 0
    assert all(np.isnan(value) for value in got.values())


@pytest.mark.parametrize(
    "arguments, message",
    [
        (([np.nan], [1]), "probability nan of cell 0"),
        (([0.5, 1.5], [1, 0]), "probability 1.5 of cell 1"),
        (([0.5], [-1]), "response -1.0 of cell 0"),
        (([0.5], [1, 0]), "shapes"),
        (([0.5], [1], [-1]), "weight -1.0 of cell 0"),
    ],
)
def test_refuses(arguments, message):
    with pytest.raises(InputError, match=message):
        metrics.all_metrics(*arguments)


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_order_of_cells_does_not_matter(seed, tied):
    probability, response, weight = _cells(seed, n=60, tied=tied)
    order = np.random.default_rng(seed).permutation(60)
    before = metrics.all_metrics(probability, response, weight)
    after = metrics.all_metrics(probability[order], response[order], weight[order])
    for name in before:
        assert after[name] == pytest.approx(before[name], rel=1e-9, nan_ok=True), name


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1))
def test_auc_of_the_opposite_is_the_complement(seed):
    probability, response, weight = _cells(seed, n=60, tied=True)
    here = metrics.auc(probability, response, weight)
    there = metrics.auc(1 - probability, response, weight)
    assert here + there == pytest.approx(1, abs=1e-12, nan_ok=True)


@pytest.mark.shared
def test_published_predictions_of_psn_irt(shared_dir: Path):
    """The numbers of REFERENCES.md, W1: PSN-IRT and Deep-IRT as published."""
    published = np.load(shared_dir / "data" / "psn_irt_test_pred.npz")
    psn = metrics.all_metrics(published["p_psn"], published["truth"])
    assert psn["n"] == 100_240
    for name, value in {
        "accuracy": 0.799791,
        "f1": 0.853796,
        "auc": 0.848491,
        "log_loss": 0.453735,
    }.items():
        assert psn[name] == pytest.approx(value, abs=6e-7), name
    deep = metrics.all_metrics(published["p_deep"], published["truth"])
    for name, value in {
        "accuracy": 0.7974,
        "f1": 0.8516,
        "auc": 0.8519,
        "log_loss": 0.4519,
    }.items():
        assert deep[name] == pytest.approx(value, abs=6e-5), name

"""Metrics of folds against hand-worked numbers and plain loops."""

import itertools

import numpy as np
import pandas as pd
import pytest

from irtjax.data.cells import Cells
from irtjax.evaluate.fold_metrics import (
    FOLD_METRICS,
    ModelSums,
    fold_metrics,
    mean_absolute_error,
    one_standard_error,
    rank_correlations,
    summary,
)


def test_the_one_standard_error_rule_by_hand():
    # The lowest is .400 at 4 dims with standard error .010: .410 at 2 dims is just within, .4101
    # is not, and the error of any other number of dims plays no part.
    loss = {1: 0.450, 2: 0.410, 3: 0.402, 4: 0.400, 5: 0.401}
    error = {1: 0.100, 2: 0.001, 3: 0.001, 4: 0.010, 5: 0.001}
    assert one_standard_error(loss, error) == 2
    assert one_standard_error(loss | {2: 0.4101}, error) == 3
    assert one_standard_error(loss, error | {4: 0.0}) == 4
    assert one_standard_error({3: 0.5}, {3: 0.1}) == 3


def test_the_rule_does_not_depend_on_the_order_of_dims():
    loss = {1: 0.5, 2: 0.42, 3: 0.41, 4: 0.40}
    error = dict.fromkeys(loss, 0.015)
    for order in itertools.permutations(loss):
        assert one_standard_error({k: loss[k] for k in order}, error) == 3


def test_mean_absolute_error_of_answers_and_fractions():
    assert mean_absolute_error([0.9, 0.2], [1, 1]) == pytest.approx(0.45)
    one = mean_absolute_error([0.7], [0.25], [4])
    assert one == pytest.approx(mean_absolute_error([0.7] * 4, [1, 0, 0, 0]))
    assert np.isnan(mean_absolute_error([], []))


def test_rank_correlations_against_loops():
    rng = np.random.default_rng(0)
    x = rng.normal(size=12)
    y = x + rng.normal(size=12)
    ranks = [np.argsort(np.argsort(v)) for v in (x, y)]
    pairs = list(itertools.combinations(range(12), 2))
    tau = np.mean([np.sign((x[i] - x[j]) * (y[i] - y[j])) for i, j in pairs])
    expected = np.corrcoef(*ranks)[0, 1], tau
    np.testing.assert_allclose(rank_correlations(x, y), expected, rtol=1e-12)


@pytest.mark.parametrize("x, y", [([1, 2], [1, 2]), ([1, 1, 1], [1, 2, 3]), ([], [])])
def test_without_an_order_there_is_no_rank_correlation(x, y):
    assert np.isnan(rank_correlations(np.array(x, float), np.array(y, float))).all()


def test_metrics_of_a_fold():
    cells = Cells(
        np.array([0, 1, 2, 0, 1], np.int32),
        np.array([0, 0, 0, 1, 1], np.int32),
        np.array([1, 0, 1, 1, 0], np.float32),
        np.array([1, 2, 1, 1, 1], np.float32),
    )
    p = np.array([0.9, 0.4, 0.6, 0.8, 0.3])
    sums = ModelSums.of(p, cells, 4)
    np.testing.assert_allclose(sums.weight, [2, 3, 1, 0])
    np.testing.assert_allclose(sums.predicted, [1.7, 1.1, 0.6, 0])
    np.testing.assert_allclose(sums.observed, [2, 0, 1, 0])
    found = fold_metrics(p, cells, sums)
    loss = -np.log([0.9, 0.6, 0.6, 0.6, 0.8, 0.7]).mean()
    expected = {"accuracy": 1.0, "mae": (0.1 + 0.8 + 0.4 + 0.2 + 0.3) / 6, "log_loss": loss, "n": 5}
    assert {name: found[name] for name in expected} == pytest.approx(expected)
    # Means .85, .367, .6 against 1, 0, 1: a tie in the observed ones.
    assert found["spearman"] == pytest.approx(np.sqrt(3) / 2)
    assert found["kendall"] == pytest.approx(2 / np.sqrt(6))
    both = sums + sums
    np.testing.assert_allclose(both.rank_correlations(), sums.rank_correlations())


def test_means_and_standard_errors_over_folds():
    rows = [
        {"dims": d, "predictor": name, "fold": k, "n": 10}
        | dict.fromkeys(FOLD_METRICS, value)
        | {"kendall": kendall}
        for d, name, values in ((2, "fit", (1.0, 2.0, 6.0)), (None, "1pl", (1.0, 1.0, 1.0)))
        for k, (value, kendall) in enumerate(zip(values, (0.5, float("nan"), 0.7), strict=True))
    ]
    table = summary(pd.DataFrame(rows).astype({"dims": "Int64"}), ("dims", "predictor"))
    assert table["predictor"].tolist() == ["fit", "1pl"]
    assert table["dims"].isna().tolist() == [False, True]
    assert table["n"].tolist() == [30, 30]
    np.testing.assert_allclose(table["log_loss"], [3, 1])
    np.testing.assert_allclose(table["log_loss_se"], [np.sqrt(7 / 3), 0])
    # The fold without one is left out: sd of .5 and .7 over the root of 2.
    np.testing.assert_allclose(table["kendall"], [0.6, 0.6])
    np.testing.assert_allclose(table["kendall_se"], [0.1, 0.1])

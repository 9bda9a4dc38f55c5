"""The benchmarks of selection: signs of pairs, tau and its interval, the row of picks."""

import numpy as np
import pytest
from scipy.stats import kendalltau

from benchmarks.large_problems import selection_items
from benchmarks.selection_honest import _signs, _summary, table
from benchmarks.selection_speed import measured_picks


def test_tau_is_the_mean_of_the_signs_of_pairs():
    rng = np.random.default_rng(0)
    answers = rng.integers(-1, 2, (6, 397)).astype(np.float32)
    weight = np.ones((1, 397), np.float32)
    pairs = [(i, k) for i in range(6) for k in range(i + 1, 6)]
    signs = np.array([_signs(answers[[i, k]], weight) for i, k in pairs])
    mean = np.ma.masked_less(answers, 0).mean(axis=1)
    expected = kendalltau(-np.arange(6), mean).statistic
    assert len(np.unique(mean)) == 6
    assert _summary("all", np.repeat(signs, 3, axis=1))["tau_all"] == pytest.approx(expected)


def test_a_bootstrap_weight_counts_an_answer_so_often():
    answers = np.array([[1, 0, 0, 1], [0, 1, 0, -1]], np.float32)
    weight = np.array([[1, 1, 1, 1], [0, 5, 0, 1], [0, 1, 1, 0]], np.float32)
    repeated = [np.repeat(np.arange(4), count.astype(int)) for count in weight]
    means = [np.ma.masked_less(answers[:, rows], 0).mean(axis=1) for rows in repeated]
    np.testing.assert_array_equal(_signs(answers, weight), np.sign([a - b for a, b in means]))


def test_an_interval_holds_most_samples_and_is_shown():
    signs = np.sign(np.random.default_rng(1).normal(0.3, 1, (21, 401)))
    row = {"items": "some", "n_items": 100} | _summary("with_weak", signs)
    tau = signs[:, 1:].mean(axis=0)
    inside = (tau >= row["low_with_weak"]) & (tau <= row["high_with_weak"])
    assert inside.mean() >= 0.95
    assert table({"rows": [row]}).row_count == 1


def test_picks_are_counted_and_timed():
    row = measured_picks(selection_items(n_items=50), 5)
    assert row["n_picks"] == 5
    assert row["ms_per_pick"] == pytest.approx(200 * row["cpu_seconds"])

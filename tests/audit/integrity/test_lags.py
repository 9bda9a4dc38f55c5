"""Best lags against a loop over lags, and the bound of copies against exact probabilities."""

import numpy as np
import pytest
from scipy.stats import binom

from irtjax.audit.integrity.accusations import z_of
from irtjax.audit.integrity.blocks import Columns
from irtjax.audit.integrity.filled import Run, expectations, longest_runs, run_log_p
from irtjax.audit.integrity.lags import Lag, Shift, best_lag, lag_agreement, shift_of
from irtjax.audit.integrity.shifts import Moved, undone
from irtjax.audit.integrity.testing import chernoff_log_p
from irtjax.data.responses import ResponseMatrix


def test_the_best_lag_is_the_best_of_a_loop():
    rng = np.random.default_rng(0)
    reference = rng.normal(size=3000)
    row = rng.normal(size=3000)
    row[500:900] += reference[537:937]
    found = best_lag(row, reference, slice(500, 900), 1)
    assert found.lag == 37
    loop = max(range(-400, 2000), key=lambda lag: row[500:900] @ reference[500 + lag : 900 + lag])
    assert found.lag == loop
    correlation, z = lag_agreement(row, reference, slice(500, 900), 37)
    assert correlation == pytest.approx(
        row[500:900]
        @ reference[537:937]
        / np.sqrt(np.sum(row[500:900] ** 2) * np.sum(reference[537:937] ** 2))
    )
    assert found.z == pytest.approx(z, rel=0.15)
    assert found.p < 1e-6


def test_noise_has_no_lag():
    rng = np.random.default_rng(1)
    p = [best_lag(*rng.normal(size=(2, 2000)), slice(100, 600), 1).p for _ in range(40)]
    assert np.mean(np.array(p) <= 0.1) < 0.25
    assert min(p) > 1e-3


def test_a_stretch_has_its_edges():
    rng = np.random.default_rng(2)
    reference = rng.normal(size=2000)
    row = 2 * reference + rng.normal(size=2000)
    row[600:1500] = 2 * reference[585:1485] + rng.normal(size=900)
    found = shift_of(row, reference, -15)
    assert abs(found.start - 600) <= 5
    assert abs(found.stop - 1500) <= 5


@pytest.mark.parametrize("lag", [3, -3])
def test_undoing_puts_cells_back(lag):
    dense = np.arange(20).reshape(2, 10) % 2
    data = ResponseMatrix.from_dense(dense.astype(np.int8))
    moved = Moved(1, Shift(lag, 4, 7, 9.0), np.arange(10), Lag(lag, 9.0, 0.0, 0.5), [])
    row = undone(Columns(data), [moved]).row(1)
    expected = dense[1].astype(float)
    expected[4:7] = -1
    # Cells outside of the stretch stand where the three belong, and keep their place.
    np.testing.assert_array_equal(row, expected)
    np.testing.assert_array_equal(undone(Columns(data), [moved]).take(np.arange(10))[0], dense[0])


def test_cells_of_a_stretch_move_within_it():
    dense = np.array([[0, 1, 1, 0, 1, 0, 0, 1, 1, 1]], np.int8)
    data = ResponseMatrix.from_dense(dense)
    moved = Moved(0, Shift(2, 3, 10, 9.0), np.arange(10), Lag(2, 9.0, 0.0, 0.5), [])
    row = undone(Columns(data), [moved]).row(0)
    assert row.tolist() == [0, 1, 1, -1, -1, 0, 1, 0, 0, 1]


@pytest.mark.parametrize("n, p", [(50, 0.3), (1000, 0.1), (200, 0.9)])
def test_chernoff_bounds_the_binomial(n, p):
    seen = np.arange(0, int(n * p))
    bound = chernoff_log_p(seen, np.full(len(seen), n * p))
    assert (bound >= binom.logcdf(seen, n, p)).all()
    assert chernoff_log_p(np.array(n * p + 1), np.array(n * p)) == 0


@pytest.mark.parametrize("z", [-1.0, -5.0, -40.0])
def test_z_of_a_log_probability(z):
    from scipy.special import log_ndtr

    assert z_of(float(log_ndtr(z))) == pytest.approx(z, rel=1e-6)


def test_runs_are_of_observed_cells():
    response = np.array([1.0] * 5 + [0.0] * 15 + [-1.0] * 4 + [0.0] * 10 + [1.0, 0.0] * 10)
    (run,) = longest_runs(response)
    assert (run.value, len(run.cells), run.n_observed) == (0, 25, 50)
    assert run.cells[[0, -1]].tolist() == [5, 33]


def test_a_run_is_as_likely_as_its_items():
    response = np.zeros(30)
    run = Run(0.0, np.arange(30), 30)
    hard, usual = np.full(30, -4.0), np.zeros(30)
    none = np.zeros(0)
    unlikely = run_log_p(run, response, usual, none, 0.0, 1.0, 0.0)
    assert unlikely < run_log_p(run, response, hard, none, 0.0, 1.0, 0.0) < 0
    # E[sigmoid(-e)^30], e normal(0, 1), by brute force.
    draws = np.random.default_rng(0).normal(size=400_000)
    assert unlikely == pytest.approx(np.log(np.mean((1 + np.exp(draws)) ** -30.0)), abs=0.1)


def test_expectations_leave_the_block_itself_out():
    n = np.full((41, 4), 100.0)
    total = 100 / (1 + np.exp(-np.linspace(-1, 1, 41)[:, None] - np.linspace(-1, 1, 4)))
    broken = total.copy()
    broken[20, 1] = 0
    expected = np.log(total[20, 1] / (100 - total[20, 1]))
    assert expectations(n, broken).mean[20, 1] == pytest.approx(expected, abs=0.15)

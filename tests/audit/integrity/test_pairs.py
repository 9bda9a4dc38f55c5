"""Pairs of models against loops over their cells, float64."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

from irtjax.audit.integrity import blocks
from irtjax.audit.integrity.blocks import Columns, benchmarks_of, without_trend
from irtjax.audit.integrity.pairs import Pairs, compare_models
from irtjax.data.responses import ResponseMatrix
from tests.audit.integrity.cases import clean, with_rows


def loops(y):
    """Correlations of rows without trend, and squared differences, over common cells."""
    seen = ~np.isnan(y)
    x = (y - np.nanmean(y, 1, keepdims=True)) / np.nanstd(y, axis=1, keepdims=True)
    half = int(np.ceil(10 / seen.mean()))
    flat = np.full_like(x, np.nan)
    for i, j in zip(*np.nonzero(seen), strict=True):
        near = [k for k in range(max(j - half, 0), min(j + half + 1, y.shape[1])) if k != j]
        near = [x[i, k] for k in near if seen[i, k]]
        flat[i, j] = x[i, j] - sum(near) / (len(near) + 1)
    n = len(y)
    correlation, difference = np.zeros((n, n)), np.zeros((n, n))
    scale = np.sqrt(np.nanmean(flat**2, axis=1))
    for i in range(n):
        for k in range(n):
            both = seen[i] & seen[k]
            difference[i, k] = np.sum((y[i, both] - y[k, both]) ** 2)
            if i != k:
                correlation[i, k] = np.mean(flat[i, both] * flat[k, both]) / scale[i] / scale[k]
    return correlation, difference


@pytest.mark.oracle
@pytest.mark.parametrize("kind", ["complete", "missing", "fractions", "sparse"])
def test_pairs_are_loops_over_cells(kind):
    data = clean(3, n_models=6, sizes=(90,))
    rng = np.random.default_rng(0)
    dense = data.dense.astype(np.float32)
    if kind == "fractions":
        dense = rng.integers(0, 5, dense.shape).astype(np.float32) / 4
    if kind != "complete":
        dense[rng.random(dense.shape) < 0.3] = -1
    matrix = with_rows(data, dense)
    if kind == "sparse":
        cells = matrix.cells()
        wide = np.full((60, 90), -1, np.float32)  # so thin that it is kept as cells
        wide[:6] = dense
        matrix = ResponseMatrix.from_cells(
            cells.model_index,
            cells.item_index,
            cells.response,
            model_ids=[f"m{k}" for k in range(60)],
            item_ids=[f"i{k}" for k in range(90)],
        )
        assert matrix.sparse is not None
    (benchmark,) = benchmarks_of(matrix, None)
    pairs = compare_models(Columns(matrix), benchmark)
    correlation, difference = loops(np.where(dense < 0, np.nan, dense).astype(np.float64))
    assert pairs.model.tolist() == list(range(6))
    np.testing.assert_allclose(pairs.difference, difference, atol=1e-3)
    np.testing.assert_allclose(pairs.correlation, correlation, atol=1e-5)


def test_chunks_change_correlations_at_their_edges_only(monkeypatch):
    data = clean(4, n_models=6, sizes=(2000,))
    (benchmark,) = benchmarks_of(data, None)
    whole = compare_models(Columns(data), benchmark)
    monkeypatch.setattr(blocks, "_CHUNK_CELLS", 1)
    parts = compare_models(Columns(data), benchmark)
    np.testing.assert_array_equal(parts.difference, whole.difference)
    np.testing.assert_allclose(parts.correlation, whole.correlation, atol=0.005)


def test_a_trend_of_subjects_is_no_agreement():
    rng = np.random.default_rng(1)
    subject = np.repeat(rng.normal(0, 2, 40), 100)
    rows = np.sign(subject + rng.normal(size=(2, 4000)))
    seen = np.ones(rows.shape, bool)
    assert np.corrcoef(rows)[0, 1] > 0.3
    assert abs(np.corrcoef(without_trend(rows, seen))[0, 1]) < 0.05


def test_steepness_is_the_slope_of_correlation_in_latent_correlation():
    # Two responses 1[z > t] of bivariate normal z, guessed right at a rate c where they fail.
    latent, floor = 0.02, 0.2
    for first, second in [(-1.5, 0.3), (0.0, 1.2), (0.7, 0.9)]:
        both = multivariate_normal([0, 0], [[1, latent], [latent, 1]]).cdf([first, second])
        known = norm.cdf([first, second])
        share = floor + (1 - floor) * known
        spread = np.sqrt(share * (1 - share))
        correlation = (1 - floor) ** 2 * (both - known.prod()) / spread.prod()
        empty = np.zeros((2, 2))
        pairs = Pairs(None, np.arange(2), np.full(2, 100.0), share, spread, empty, empty, empty)
        np.testing.assert_allclose(pairs.steepness(floor).prod() * latent, correlation, rtol=0.05)

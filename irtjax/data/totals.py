"""Number of responses and mean response of each model or item."""

import numpy as np
from jaxtyping import Float, Int

from irtjax.data.cells import Cells, read_only

__all__ = ["Totals", "totals_of_cells", "totals_of_matrix"]

Totals = tuple[Int[np.ndarray, " size"], Float[np.ndarray, " size"]]


def totals_of_matrix(matrix: np.ndarray, along: int) -> Totals:
    """Over an axis of a matrix with -1 where missing and without weights.

    Returns:
        int64 counts and float64 mean responses, NaN where nothing was observed.
    """
    count = np.count_nonzero(matrix >= 0, axis=along).astype(np.int64)
    if matrix.dtype == np.int8:
        right = np.count_nonzero(matrix == 1, axis=along).astype(np.float64)
    else:
        right = np.sum(matrix, axis=along, where=matrix >= 0, dtype=np.float64)
    return _totals(count, right, count)


def totals_of_cells(cells: Cells, index: np.ndarray, size: int) -> Totals:
    """Of each of `size` models or items, `index` being that of each cell.

    Returns:
        int64 counts and float64 weighted mean responses, NaN where nothing was observed.
    """
    count = np.bincount(index, minlength=size).astype(np.int64)
    if np.all(cells.weight == 1):
        right = np.bincount(index, cells.response, minlength=size)
        return _totals(count, right, count)
    answers = cells.weight * cells.response.astype(np.float64)
    right = np.bincount(index, answers, minlength=size)
    return _totals(count, right, np.bincount(index, cells.weight, minlength=size))


def _totals(count: np.ndarray, right: np.ndarray, total: np.ndarray) -> Totals:
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(total > 0, right / total.astype(np.float64), np.nan)
    return read_only(count), read_only(mean)

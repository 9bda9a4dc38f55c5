"""How responses are held: a matrix with a place for every cell, or the observed cells only."""

from typing import NamedTuple

import numpy as np

from irtjax.data.cells import Cells, observed_cells
from irtjax.data.checks import MISSING

__all__ = ["DENSE_FROM", "Layout", "dense_matrix", "layout_of_cells", "layout_of_matrix"]

# From this share of observed cells on, responses are held as a matrix. It has a byte a cell, the
# list of cells 16 an observed one: at 20% three times as much, at 6% as much. In which form they go
# to the device is decided by speed, by each estimator (`irtjax.fit.items_route`).
DENSE_FROM = 0.20


class Layout(NamedTuple):
    """The fields of these names of a `ResponseMatrix`: either `dense` or `sparse` is None."""

    dense: np.ndarray | None
    dense_weight: np.ndarray | None
    sparse: Cells | None

    def transposed(self) -> "Layout":
        """Models as items and items as models."""
        return Layout(
            None if self.dense is None else self.dense.T,
            None if self.dense_weight is None else self.dense_weight.T,
            None if self.sparse is None else self.sparse.transposed(),
        )


def layout_of_matrix(matrix: np.ndarray, weight: np.ndarray | None) -> Layout:
    """The layout for the density of a models x items matrix with -1 where missing.

    Args:
        matrix: int8 or float32.
        weight: float32 models x items, or None when every weight is 1.
    """
    if np.count_nonzero(matrix >= 0) >= _fewest(matrix.shape):
        return Layout(matrix, weight, None)
    return Layout(None, None, observed_cells(matrix, weight))


def layout_of_cells(cells: Cells, shape: tuple[int, int]) -> Layout:
    """The layout for the density of the observed cells of a models x items matrix."""
    if len(cells) < _fewest(shape):
        return Layout(None, None, cells)
    if np.all(cells.weight == 1):
        return Layout(dense_matrix(cells, shape), None, None)
    weight = np.ones(shape, np.float32)
    weight[cells.model_index, cells.item_index] = cells.weight
    return Layout(dense_matrix(cells, shape), weight, None)


def dense_matrix(cells: Cells, shape: tuple[int, int]) -> np.ndarray:
    """Models x items, int8 (or float32 with fractions), -1 where missing."""
    dense = np.full(shape, MISSING, np.int8 if cells.is_binary else np.float32)
    dense[cells.model_index, cells.item_index] = cells.response
    return dense


def _fewest(shape: tuple[int, ...]) -> float:
    """Fewest observed cells from which on a matrix is dense."""
    return DENSE_FROM * max(shape[0] * shape[1], 1)

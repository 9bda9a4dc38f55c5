"""Into how many parts that share no model and no item the responses fall."""

from collections.abc import Iterator

import numpy as np

from irtjax.data.cells import Cells
from irtjax.data.responses import ResponseMatrix

__all__ = ["n_parts"]

_CELLS_AT_ONCE = 1 << 22  # bounds the copies of a dense matrix
# Below this many cells the graph's components are found at once, however many there are.
_FEW_CELLS = 1 << 20
# Sweeps from one model through the items it shares to others and back. Three reach everything in
# data with some overlap, at a tenth of the cost of the graph's components.
_SWEEPS = 4


def n_parts(data: ResponseMatrix) -> int:
    """Connected parts of the graph of models and items, those without responses left out.

    >>> n_parts(ResponseMatrix.from_dense([[1, 0, -1], [0, 1, -1], [-1, -1, 1]]))
    2
    """
    if data.sparse is not None:
        if _is_connected(data.sparse, data.n_models, data.n_items):
            return min(len(data.sparse), 1)
        return _n_components(data.sparse.model_index, data.sparse.item_index)
    assert data.dense is not None
    return _n_parts_of_matrix(data.dense)


def _n_parts_of_matrix(matrix: np.ndarray) -> int:
    """Part by part: from the model with most responses to the items it has, to their models, ...

    A model that answered all items is the end of it. Others are looked at until they are reached,
    and once more for their items. In data with some overlap one item in common reaches all models:
    two looks at the matrix in all.
    """
    count = np.concatenate(
        [np.count_nonzero(is_seen, axis=1) for is_seen in _seen(matrix, np.arange(len(matrix)))]
    )
    left = np.flatnonzero(count)
    found = 0
    # The first in any case: mostly there is no other.
    while len(left) and (found == 0 or count[left].sum() > _FEW_CELLS):
        left = _without_part(matrix, left, left[np.argmax(count[left])])
        found += 1
    rest = np.nonzero(matrix[left] >= 0)
    return found + (_n_components(*rest) if len(left) else 0)


def _without_part(matrix: np.ndarray, left: np.ndarray, first: np.intp) -> np.ndarray:
    """The models (of those left) that are not in the part of the first one."""
    is_reached = left == first
    if np.all(matrix[first] >= 0):
        return left[:0]
    new = left[is_reached]
    has_item = np.zeros(matrix.shape[1], bool)
    while len(new) and not is_reached.all():
        for is_seen in _seen(matrix, new):
            has_item |= is_seen.any(axis=0)
        others = np.flatnonzero(~is_reached)
        shares = np.concatenate([np.any(s & has_item, axis=1) for s in _seen(matrix, left[others])])
        is_reached[others[shares]] = True
        new = left[others[shares]]
    return left[~is_reached]


def _seen(matrix: np.ndarray, rows: np.ndarray) -> Iterator[np.ndarray]:
    """Which cells of some rows are observed, a chunk of rows at a time."""
    step = max(_CELLS_AT_ONCE // max(matrix.shape[1], 1), 1)
    return (matrix[rows[k : k + step]] >= 0 for k in range(0, len(rows), step))


def _n_components(model: np.ndarray, item: np.ndarray) -> int:
    """Connected components of the graph with an edge for each cell."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    models, model = np.unique(model, return_inverse=True)
    items, item = np.unique(item, return_inverse=True)
    n = len(models) + len(items)
    edges = (np.ones(len(model), np.int8), (model, item + len(models)))
    return int(connected_components(coo_matrix(edges, shape=(n, n)), directed=False)[0])


def _is_connected(cells: Cells, n_models: int, n_items: int) -> bool:
    """Whether a few sweeps from the model with the most responses reach every cell."""
    is_reached = np.zeros(n_models, bool)
    is_reached[np.argmax(np.bincount(cells.model_index, minlength=n_models))] = True
    for _ in range(_SWEEPS):
        has_item = np.zeros(n_items, bool)
        has_item[cells.item_index[is_reached[cells.model_index]]] = True
        is_cell = has_item[cells.item_index]
        if is_cell.all():
            return True
        is_reached[cells.model_index[is_cell]] = True
    return False

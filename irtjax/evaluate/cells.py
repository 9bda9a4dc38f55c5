"""Responses of a test file as cells of the training matrix."""

import warnings

import numpy as np
import pandas as pd

from irtjax.data.cells import Cells
from irtjax.data.responses import ResponseMatrix
from irtjax.errors import InputError, IrtjaxWarning

__all__ = ["cells_of_test"]


def cells_of_test(train: ResponseMatrix, test: ResponseMatrix) -> Cells:
    """Find the test responses in the matrix that a model is fitted to.

    Args:
        train: the responses of the fit.
        test: other responses of the same models to the same items, in any order.

    Returns:
        The test responses by index into `train`, sorted by item and then by model. Warns
        (`IrtjaxWarning`) when some of them are also in `train`: what a fit has seen is no test.

    Raises:
        InputError: no test response, a model or an item that `train` does not have.

    >>> train = ResponseMatrix.from_dense([[1, -1], [0, 1]])
    >>> test = ResponseMatrix.from_dense([[0]], model_ids=["model-0"], item_ids=["item-1"])
    >>> cells_of_test(train, test).item_index.tolist()
    [1]
    """
    found = test.cells()
    if not len(found):
        raise InputError("the test data have no response; every cell is missing")
    model = _positions(train.model_ids, test.model_ids, found.model_index, "model")[
        found.model_index
    ]
    item = _positions(train.item_ids, test.item_ids, found.item_index, "item")[found.item_index]
    order = np.lexsort((model, item))
    cells = Cells(
        model[order].astype(np.int32),
        item[order].astype(np.int32),
        found.response[order],
        found.weight[order],
    )
    _warn_of_leaks(train, cells)
    return cells


def _positions(known: np.ndarray, ids: np.ndarray, used: np.ndarray, kind: str) -> np.ndarray:
    """Where each id stands among the known ones; only ids with responses must be known."""
    positions = pd.Index(known).get_indexer(pd.Index(ids))
    is_unknown = positions < 0
    is_unknown &= np.bincount(used, minlength=len(ids)) > 0
    count = int(np.count_nonzero(is_unknown))
    if count:
        first = ids[int(np.argmax(is_unknown))]
        noun, verb = (kind, "is") if count == 1 else (f"{kind}s", "are")
        raise InputError(
            f"{count:,} {noun} of the test data {verb} not in the training data (first: {first!r}):"
            f" nothing is estimated for them; drop their test responses"
        )
    return positions


def _warn_of_leaks(train: ResponseMatrix, cells: Cells) -> None:
    is_seen = _is_observed(train, cells)
    count = int(np.count_nonzero(is_seen))
    if count:
        k = int(np.argmax(is_seen))
        model, item = train.model_ids[cells.model_index[k]], train.item_ids[cells.item_index[k]]
        warnings.warn(
            f"{count:,} of {len(cells):,} test responses are of a model and an item that the "
            f"training data have too (first: model {model!r}, item {item!r}): held-out metrics "
            "look better than they are",
            IrtjaxWarning,
            stacklevel=3,
        )


def _is_observed(data: ResponseMatrix, cells: Cells) -> np.ndarray:
    if data.dense is not None:
        return np.asarray(data.dense[cells.model_index, cells.item_index] >= 0)
    assert data.sparse is not None
    size = np.int64(data.n_models)
    return np.isin(
        cells.item_index * size + cells.model_index,
        data.sparse.item_index * size + data.sparse.model_index,
    )

"""Which cells a fold leaves out, which of those place its items or models, and which are scored."""

import dataclasses

import numpy as np

from irtjax.checks import check_whole, shown
from irtjax.data.cells import Cells, cells_at
from irtjax.data.checks import MISSING
from irtjax.data.responses import ResponseMatrix
from irtjax.errors import InputError

__all__ = ["OVER", "Folds", "check_folds", "make_folds"]

OVER = ("cells", "items", "models")

_FEWEST_FOLDS = 2


@dataclasses.dataclass(frozen=True, eq=False)
class Folds:
    """A partition of the observed cells.

    Attributes:
        data: the responses.
        over: `cells`, `items` or `models`: what is dealt out.
        n_folds: number of folds.
        code: the data with `2 fold + 1` in place of each response that is scored, and `2 fold`
            in place of each that places its item or model.
        fold_of: fold of each item or model; of nothing over cells.
        n_unscored: items (models) of which nothing is left to score: fewer than two responses.
    """

    data: ResponseMatrix
    over: str
    n_folds: int
    code: ResponseMatrix
    fold_of: np.ndarray
    n_unscored: int

    def scored(self, fold: int) -> Cells:
        """The cells a fold's predictions are compared with, sorted by item and then by model."""
        scored = 2 * fold + 1
        if self.data.sparse is not None and self.code.sparse is not None:
            return self.data.sparse.taken(self.code.sparse.response == scored)
        assert self.data.dense is not None
        assert self.code.dense is not None
        # Flat indices of a contiguous copy: nonzero of a transposed view takes 9 times as long.
        chosen = np.flatnonzero(np.ascontiguousarray((self.code.dense == scored).T))
        item, model = np.divmod(chosen, self.data.n_models)
        return cells_at(self.data.dense, self.data.dense_weight, model, item)

    def unscored(self, fold: int) -> ResponseMatrix:
        """All responses but the scored ones of a fold: what baselines may learn from."""
        return self._without((2 * fold + 1,))

    def fitted(self, fold: int) -> ResponseMatrix:
        """All responses but those a fold leaves out: what it is fitted to."""
        return self._without((2 * fold, 2 * fold + 1))

    def placing(self, fold: int) -> ResponseMatrix:
        """The items that a fold over items leaves out, with the responses that place them."""
        left_out = np.flatnonzero(self.fold_of == fold)
        dense = sparse = None
        if self.data.sparse is not None and self.code.sparse is not None:
            sparse = self.data.sparse.taken(self.code.sparse.response == 2 * fold)
            index = np.searchsorted(left_out, sparse.item_index).astype(np.int32)
            sparse = dataclasses.replace(sparse, item_index=index)
        else:
            assert self.data.dense is not None
            assert self.code.dense is not None
            dense = self.data.dense[:, left_out]
            dense[self.code.dense[:, left_out] != 2 * fold] = MISSING
        weight = self.data.dense_weight
        return self.data.replace(
            item_ids=self.data.item_ids[left_out],
            item_metadata=self.data.item_metadata.iloc[left_out],
            dense=dense,
            dense_weight=None if weight is None else weight[:, left_out],
            sparse=sparse,
        )

    def _without(self, codes: tuple[int, ...]) -> ResponseMatrix:
        # The metadata are shared, not copied.
        if self.data.sparse is not None and self.code.sparse is not None:
            is_kept = ~np.isin(self.code.sparse.response, codes)
            return self.data.replace(sparse=self.data.sparse.taken(is_kept))
        assert self.data.dense is not None
        dense = self.data.dense.copy()
        assert self.code.dense is not None
        dense[np.isin(self.code.dense, codes)] = MISSING
        return self.data.replace(dense=dense)


def make_folds(data: ResponseMatrix, over: str, n_folds: int, seed: int) -> Folds:
    """Deal cells, items or models out to folds of equal size (to one), at random.

    Over cells, every observed cell is left out and scored in exactly one fold. Over items (models)
    a random half of the cells of each places it in its fold, and the rest, never more than half,
    is scored; of an item with one response nothing is left to score.

    Args:
        data: the responses.
        over: `cells`, `items` or `models`.
        n_folds: number of folds, at least 2.
        seed: of NumPy's default generator. The folds depend on the seed and on which cells are
            observed, not on whether they are kept dense or sparse.

    Raises:
        InputError: an unknown `over`, fewer than two folds, more folds than there is to deal out,
            nothing to score.

    >>> data = ResponseMatrix.from_dense([[1, 0, 1, 1], [0, 0, 1, 0]])
    >>> folds = make_folds(data, "cells", 4, 0)
    >>> [len(folds.scored(fold)) for fold in range(4)]
    [2, 2, 2, 2]
    """
    check_folds(over, n_folds)
    size = _size(data, over, n_folds)
    rng = np.random.default_rng(seed)
    fold_of = _dealt(rng, size, n_folds)
    item, model = _observed(data)
    if over == "cells":
        return Folds(data, over, n_folds, _coded(data, item, model, 2 * fold_of + 1), fold_of, 0)
    unit = item if over == "items" else model
    is_scored = _half(rng, unit, size)
    if not is_scored.any():
        raise InputError(
            f"no {over[:-1]} has two responses, one to place it and one to score; use --over cells"
        )
    n_unscored = size - len(np.unique(unit[is_scored]))
    code = 2 * fold_of[unit] + is_scored.astype(fold_of.dtype)
    return Folds(data, over, n_folds, _coded(data, item, model, code), fold_of, n_unscored)


def check_folds(over: str, n_folds: int) -> None:
    """Refuse folds of no kind, or fewer than two.

    Raises:
        InputError: one line says which and what is allowed.
    """
    if over not in OVER:
        raise InputError(f"folds are over one of {', '.join(OVER)}, not {shown(over)}")
    check_whole("folds", n_folds, _FEWEST_FOLDS)


def _size(data: ResponseMatrix, over: str, n_folds: int) -> int:
    """How many cells, items or models there are to deal out; at least one a fold."""
    size = {"cells": data.n_responses, "items": data.n_items, "models": data.n_models}[over]
    if n_folds > size:
        raise InputError(
            f"{n_folds:,} folds over {over} need at least {n_folds:,} {over}; there are {size:,}; "
            "use fewer folds"
        )
    return size


def _dealt(rng: np.random.Generator, size: int, n_folds: int) -> np.ndarray:
    """Fold of each of `size` units; the sizes of two folds differ by at most 1."""
    largest_code = 2 * n_folds
    dtype = next(t for t in (np.int8, np.int16, np.int32) if largest_code <= np.iinfo(t).max)
    fold = np.resize(np.arange(n_folds, dtype=dtype), size)
    rng.shuffle(fold)
    return fold


def _observed(data: ResponseMatrix) -> tuple[np.ndarray, np.ndarray]:
    """Item and model of the observed cells, sorted by item and then by model."""
    if data.sparse is not None:
        return data.sparse.item_index, data.sparse.model_index
    assert data.dense is not None
    flat = np.flatnonzero(np.ascontiguousarray((data.dense >= 0).T))
    item, model = np.divmod(flat, data.n_models)
    return item, model


def _half(rng: np.random.Generator, unit: np.ndarray, n_units: int) -> np.ndarray:
    """A random half (rounded down) of the cells of each unit."""
    # One key to sort by takes a third of the time of two.
    key = (unit.astype(np.uint64) << np.uint64(32)) | rng.integers(
        0, 1 << 32, len(unit), np.uint32
    ).astype(np.uint64)
    order = np.argsort(key, kind="stable")
    count = np.bincount(unit, minlength=n_units)
    first = np.cumsum(count) - count
    rank = np.empty(len(unit), np.int64)
    rank[order] = np.arange(len(unit)) - first[unit[order]]
    return rank < count[unit] // 2


def _coded(
    data: ResponseMatrix, item: np.ndarray, model: np.ndarray, code: np.ndarray
) -> ResponseMatrix:
    """The data with a code in place of each response."""
    if data.sparse is not None:
        cells = dataclasses.replace(data.sparse, response=code.astype(np.float32))
        return data.replace(sparse=cells)
    items_first = np.full((data.n_items, data.n_models), MISSING, code.dtype)
    items_first[item, model] = code
    dense = np.ascontiguousarray(items_first.T)
    return data.replace(dense=dense, dense_weight=None)

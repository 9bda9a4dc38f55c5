"""Observed cells: the responses one by one, without a place for those that are missing."""

import dataclasses
from typing import Any

import numpy as np

from irtjax.checks import counted
from irtjax.data.checks import (
    check_weight,
    checked_index,
    checked_weight,
    number_array,
    value_error,
)
from irtjax.errors import InputError

__all__ = ["Cells", "cells_at", "checked_cells", "observed_cells", "read_only"]


@dataclasses.dataclass(frozen=True)
class Cells:
    """Observed cells, sorted by item and then by model.

    `model_index` and `item_index` are int32, `response` float32 in [0, 1], `weight` float32
    (how many answers the cell stands for, 1 unless trials were averaged).
    """

    model_index: np.ndarray
    item_index: np.ndarray
    response: np.ndarray
    weight: np.ndarray

    def __post_init__(self) -> None:
        """Read-only: see `ResponseMatrix`."""
        for field in dataclasses.fields(self):
            object.__setattr__(self, field.name, read_only(getattr(self, field.name)))

    def __len__(self) -> int:
        return len(self.response)

    @property
    def is_binary(self) -> bool:
        """Whether every response is 0 or 1."""
        return bool(np.all((self.response == 0) | (self.response == 1)))

    def taken(self, which: Any) -> "Cells":
        """Some of the cells, by mask, slice or ranks that keep their order."""
        fields = dataclasses.fields(self)
        return Cells(*(getattr(self, field.name)[which] for field in fields))

    def transposed(self) -> "Cells":
        """Models as items and items as models, sorted anew."""
        swapped = Cells(self.item_index, self.model_index, self.response, self.weight)
        return swapped.taken(np.argsort(self.model_index, kind="stable"))


def read_only(array: np.ndarray) -> np.ndarray:
    """A view that nobody can write to by mistake."""
    view = array.view()
    view.flags.writeable = False
    return view


def cells_at(
    matrix: np.ndarray, weight: np.ndarray | None, model: np.ndarray, item: np.ndarray
) -> Cells:
    """The cells of a models x items matrix at these rows and columns.

    Args:
        matrix: int8 or float32.
        weight: float32 models x items, or None when every weight is 1.
        model: row of each cell.
        item: column of each cell; sorted by it, and then by row.
    """
    return Cells(
        model.astype(np.int32),
        item.astype(np.int32),
        matrix[model, item].astype(np.float32),
        np.ones(len(item), np.float32) if weight is None else weight[model, item],
    )


def observed_cells(matrix: np.ndarray, weight: np.ndarray | None) -> Cells:
    """The cells of a models x items matrix that are not missing (-1), as `cells_at`."""
    # Eight times faster than np.nonzero of the transpose (6 against 51 ms at 100 x 34,000).
    flat = np.flatnonzero(np.ascontiguousarray((matrix >= 0).T))
    item, model = np.divmod(flat, matrix.shape[0])
    return cells_at(matrix, weight, model, item)


def checked_cells(
    model_index: Any,
    item_index: Any,
    response: Any,
    weight: Any,
    models: np.ndarray,
    items: np.ndarray,
) -> Cells:
    """Cells that a user gives by index, sorted; those whose response is NaN are left out.

    Args:
        model_index: row of each cell.
        item_index: column of each cell.
        response: value of each cell, in [0, 1] or NaN.
        weight: positive, one a cell; None for 1.
        models: ids of the models.
        items: ids of the items.

    Raises:
        InputError: a value outside [0, 1], the same cell twice, an index that is no whole number
            or without an id, columns of unequal lengths.
    """
    response = number_array("responses", response).astype(np.float32)
    if response.ndim != 1:
        raise InputError(f"responses must be one a cell, not {response.ndim}-dimensional")
    model_index = checked_index(model_index, len(models), len(response), "model")
    item_index = checked_index(item_index, len(items), len(response), "item")
    observed = ~np.isnan(response)
    if weight is None:
        weight = np.ones(len(response), np.float32)
    else:
        weight = checked_weight(weight)
        if weight.shape != response.shape:
            given = counted(weight.size, "weight")
            raise InputError(f"{given} for {counted(len(response), 'cell')}")
        check_weight(weight[observed])
    bad = observed & ~((response >= 0) & (response <= 1))
    if bad.any():
        k = int(np.flatnonzero(bad)[0])
        remedy = "leave a missing cell out, or give it NaN"
        raise value_error(response[k], models[model_index[k]], items[item_index[k]], remedy)
    cells = Cells(model_index, item_index, response, weight)
    cells = _sorted(cells if observed.all() else cells.taken(observed), len(models))
    _refuse_repeated(cells, models, items)
    return cells


def _sorted(cells: Cells, n_models: int) -> Cells:
    key = cells.item_index.astype(np.int64) * n_models + cells.model_index
    if not np.any(key[1:] < key[:-1]):
        return cells
    return cells.taken(np.argsort(key, kind="stable"))


def _refuse_repeated(cells: Cells, models: np.ndarray, items: np.ndarray) -> None:
    same = (cells.item_index[1:] == cells.item_index[:-1]) & (
        cells.model_index[1:] == cells.model_index[:-1]
    )
    if same.any():
        k = int(np.flatnonzero(same)[0])
        raise InputError(
            f"item {items[cells.item_index[k]]!r} has two responses of model "
            f"{models[cells.model_index[k]]!r}; combine them first (mean with weight, first, last)"
        )

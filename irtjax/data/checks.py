"""What a response matrix refuses: values, weights and indices that cannot be meant."""

from typing import Any

import numpy as np
import pandas as pd

from irtjax.checks import check_whole, counted, shown
from irtjax.errors import InputError

__all__ = [
    "MISSING",
    "check_seed",
    "check_weight",
    "checked_index",
    "checked_values",
    "checked_weight",
    "number_array",
    "value_error",
]

MISSING = -1
_SEEDS = 2**32


def check_seed(seed: Any) -> None:
    """Refuse seeds that NumPy or JAX cannot take.

    Raises:
        InputError: not a whole number from 0 to 2^32 - 1.
    """
    check_whole("the seed", seed, 0, _SEEDS - 1)


def number_array(what: str, values: Any) -> np.ndarray:
    """Numbers or booleans of any shape as an array, as they are; None, NaN and NA become NaN.

    Args:
        what: what they are, as the message starts.
        values: as given: nested lists, an array, a data frame.

    Raises:
        InputError: rows of unequal length, text, or anything else that is no number.
    """
    try:
        array = np.asarray(values)
    except ValueError:
        raise InputError(f"{what} must have rows of one length; some are shorter") from None
    if array.dtype == object:
        array = _from_objects(what, array)
    if array.dtype.kind not in "biuf":
        first = f", {shown(array.flat[0])}" if array.size else ""
        raise InputError(f"{what} must be numbers, not {_kind_of(array)}{first}")
    return array


def _from_objects(what: str, array: np.ndarray) -> np.ndarray:
    texts = [value for value in array.flat if isinstance(value, str | bytes)]
    if texts:
        raise InputError(f"{what} must be numbers, not text, {shown(texts[0])}")
    try:
        return np.where(pd.isna(array), np.nan, array).astype(np.float64)
    except (TypeError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{what} must be numbers: {reason}") from None


def _kind_of(array: np.ndarray) -> str:
    return "text" if array.dtype.kind in "US" else str(array.dtype)


def checked_values(matrix: np.ndarray, models: np.ndarray, items: np.ndarray) -> np.ndarray:
    """Values as int8 (0, 1) or float32 (fractions), -1 where missing.

    Raises:
        InputError: one outside [0, 1]; names the model and the item.
    """
    if matrix.dtype == bool:
        return matrix.astype(np.int8)
    is_missing = (matrix == MISSING) | (matrix != matrix)
    bad = ~is_missing & ~((matrix >= 0) & (matrix <= 1))
    if bad.any():
        i, j = (int(k[0]) for k in np.nonzero(bad))
        remedy = "missing is -1 or NaN in an array, empty in a file"
        raise value_error(matrix[i, j], models[i], items[j], remedy)
    if np.issubdtype(matrix.dtype, np.floating):
        is_binary = bool(np.all(is_missing | (matrix == 0) | (matrix == 1)))
        return np.where(is_missing, MISSING, matrix).astype(np.int8 if is_binary else np.float32)
    return matrix.astype(np.int8)


def value_error(value: Any, model: str, item: str, remedy: str) -> InputError:
    """The error for a value outside [0, 1], naming the model and the item."""
    return InputError(
        f"response {shown(value)} of model {model!r} to item {item!r} is not in [0, 1]; {remedy}"
    )


def checked_weight(weight: Any) -> np.ndarray:
    """Weights as float32; one past its largest number is infinite, which `check_weight` refuses."""
    with np.errstate(over="ignore"):
        return number_array("weights", weight).astype(np.float32)


def check_weight(weight: np.ndarray) -> None:
    """Refuse weights of observed cells that are not positive and finite."""
    if not np.all(np.isfinite(weight) & (weight > 0)):
        bad = weight[~(np.isfinite(weight) & (weight > 0))][0]
        raise InputError(f"weights must be positive and finite; found {shown(bad)}")


def checked_index(index: Any, size: int, n_cells: int, kind: str) -> np.ndarray:
    """Rows (columns) of cells as int32.

    Args:
        index: a whole number a cell.
        size: number of models (items).
        n_cells: number of cells.
        kind: `model` or `item`.

    Raises:
        InputError: the wrong number of indices, one that is no whole number or out of range.
    """
    checked = np.asarray(index)
    if checked.ndim != 1:
        raise InputError(f"{kind} indices must be one whole number a cell, not {shown(index)}")
    if len(checked) != n_cells:
        given = counted(len(checked), f"{kind} index", f"{kind} indices")
        raise InputError(f"{given} for {counted(n_cells, 'cell')}")
    if checked.dtype.kind not in "iu" and n_cells:
        raise InputError(
            f"{kind} indices must be whole numbers from 0 on, not {_kind_of(checked)} "
            f"({shown(checked[0])}, ...)"
        )
    if n_cells and not (0 <= checked.min() and checked.max() < size):
        bad = checked[(checked < 0) | (checked >= size)][0]
        raise InputError(
            f"{kind} index {bad} is not one of {counted(size, kind)}, which are numbered from 0"
        )
    return checked.astype(np.int32)

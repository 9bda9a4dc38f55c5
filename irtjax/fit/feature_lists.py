"""Columns of lists, as files of embeddings have them: a column for each number of the lists."""

import json
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float

from irtjax.errors import InputError

__all__ = ["without_lists"]

_LISTS = (list, tuple, np.ndarray)


def without_lists(table: pd.DataFrame, key: str, what: str) -> pd.DataFrame:
    """The table with columns `emb[1]`, `emb[2]`, ... in place of a column `emb` of lists.

    Args:
        table: with a column of ids, and others.
        key: name of the column of ids, which is left alone.
        what: the table, for messages.

    Raises:
        InputError: lists of different lengths, without numbers, or not in every row.
    """
    parts: list[pd.DataFrame] = []
    has_lists = False
    for place, name in enumerate(table.columns):
        column = table.iloc[:, place]
        if name == key or not _is_list(column):
            parts.append(column.to_frame())
            continue
        has_lists = True
        values = _stacked(column, f"column {str(name)!r} of {what}")
        names = [f"{name}[{k + 1}]" for k in range(values.shape[1])]
        parts.append(pd.DataFrame(values, table.index, names))
    return pd.concat(parts, axis=1) if has_lists else table


def _is_list(column: pd.Series) -> bool:
    """Whether the first value there is, is a list, or one written out."""
    if pd.api.types.is_numeric_dtype(column):
        return False
    values = (value for value in column if isinstance(value, (str, *_LISTS)))
    first = next(values, "")
    return not isinstance(first, str) or first.lstrip().startswith("[")


def _stacked(column: pd.Series, what: str) -> Float[np.ndarray, "rows numbers"]:
    try:
        lists = [json.loads(value) if isinstance(value, str) else value for value in column]
    except ValueError:
        raise InputError(f"{what} has lists that are not numbers; write [0.1, 0.2]") from None
    lengths = [len(value) if isinstance(value, _LISTS) else -1 for value in lists]
    if -1 in lengths:
        raise InputError(
            f"{what} has lists, but none in row {lengths.index(-1) + 1:,}; fill it in, or leave "
            "that row out"
        )
    if len(set(lengths)) > 1 or lengths[0] == 0:
        raise InputError(
            f"{what} has lists of {min(lengths):,} to {max(lengths):,} numbers; each row must have "
            "as many as the others, at least 1"
        )
    try:
        values = np.stack([_numbers(value) for value in lists])
    except (TypeError, ValueError):
        raise InputError(f"{what} has lists that are not numbers; write [0.1, 0.2]") from None
    if values.ndim != 2:
        raise InputError(f"{what} has lists of lists; write one list of numbers a row")
    return values


def _numbers(value: Any) -> np.ndarray:
    """A list as float64; texts that look like numbers are none here.

    Raises:
        TypeError: text or complex numbers in it.
    """
    array = np.asarray(value)
    is_object = array.dtype.kind == "O"
    if array.dtype.kind not in "biufO" or (
        is_object and any(isinstance(each, str | bytes) for each in array.ravel())
    ):
        raise TypeError
    return array.astype(np.float64)

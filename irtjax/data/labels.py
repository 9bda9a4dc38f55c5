"""Labels of the rows and columns of a matrix: ids, and metadata that must stand beside them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from irtjax.checks import counted, shown
from irtjax.errors import InputError

__all__ = ["checked_ids", "checked_metadata", "in_order_of", "labels_of"]


def checked_ids(ids: Sequence[str] | None, size: int | None, kind: str) -> np.ndarray:
    """Ids as an object array of strings, generated where none are given.

    Args:
        ids: anything that has a text; None for `model-0`, `model-1`, ...
        size: how many there must be; None when the ids are what says it.
        kind: `model` or `item`.

    Raises:
        InputError: no ids, the wrong number, an empty one, or one twice.
    """
    if ids is None and size is not None:
        return _filled([f"{kind}-{k}" for k in range(size)])
    if ids is None or isinstance(ids, str | bytes) or not hasattr(ids, "__iter__"):
        raise InputError(f"{kind}_ids must be one string {_each(kind)}, not {shown(ids)}")
    given = _filled(list(ids))
    if size is not None and len(given) != size:
        raise InputError(f"{counted(len(given), f'{kind} id')} for {counted(size, kind)}")
    checked = _filled([str(each) for each in given])
    is_empty = pd.isna(given) | (checked == "")
    if is_empty.any():
        k = int(np.flatnonzero(is_empty)[0])
        raise InputError(f"{kind} id {k} is empty ({shown(given[k])}); give {_each(kind)} an id")
    if len(set(checked)) != len(checked):
        repeated = pd.Series(checked)[pd.Series(checked).duplicated()].iloc[0]
        raise InputError(f"{kind} id {repeated!r} stands twice; ids must be unique")
    return checked


def labels_of(index: pd.Index) -> Sequence[str] | None:
    """The labels of a data frame's rows or columns as ids; None where they only count them."""
    if isinstance(index, pd.MultiIndex):
        raise InputError("ids are one label each, not a MultiIndex; join its levels to one text")
    return None if _counts(index) else list(index)


def checked_metadata(table: Any, ids: np.ndarray, kind: str) -> pd.DataFrame:
    """Metadata with one row a model or item in the order of the ids, and a plain index.

    Args:
        table: a data frame whose index is 0, 1, 2, ... (rows stand in the order of the ids) or
            holds the ids, in any order; None for no columns.
        ids: of the models (items).
        kind: `model` or `item`.

    Raises:
        InputError: no data frame, the wrong number of rows, an index that is neither, two columns
            of one name.
    """
    if table is None:
        return pd.DataFrame(index=pd.RangeIndex(len(ids)))
    if not isinstance(table, pd.DataFrame):
        raise InputError(f"{kind} metadata must be a data frame, not {type(table).__name__}")
    if len(table) != len(ids):
        rows = counted(len(table), "row")
        raise InputError(f"{kind} metadata has {rows} for {counted(len(ids), kind)}")
    names = pd.Index([str(name) for name in table.columns])
    if names.has_duplicates:
        repeated = names[names.duplicated()][0]
        raise InputError(f"{kind} metadata has two columns {repeated!r}; rename one")
    ordered = table.iloc[in_order_of(ids, table.index, f"{kind} metadata", kind)]
    return ordered.reset_index(drop=True)


def in_order_of(ids: np.ndarray, index: pd.Index, what: str, kind: str) -> np.ndarray:
    """Where each id stands in an index that has as many labels.

    Args:
        ids: of the models (items).
        index: of a data frame; one that only counts is in the order of the ids.
        what: the data frame, as the message starts.
        kind: `model` or `item`.

    Raises:
        InputError: labels that are not the ids.
    """
    if _counts(index):
        return np.arange(len(ids))
    labels = pd.Index([str(label) for label in index])
    position = np.full(len(ids), -1) if labels.has_duplicates else labels.get_indexer(pd.Index(ids))
    if (position < 0).any():
        raise InputError(
            f"the index of {what} has {shown(index[0])}, ..., which are not the {kind} ids "
            f"({shown(ids[0])}, ...); set them as its index, or take its rows in the order of the "
            "ids by reset_index(drop=True)"
        )
    return position


def _counts(index: pd.Index) -> bool:
    return len(index) == 0 or index.equals(pd.RangeIndex(len(index)))


def _filled(values: list[Any]) -> np.ndarray:
    array = np.empty(len(values), object)
    array[:] = values
    return array


def _each(kind: str) -> str:
    return f"{'an' if kind == 'item' else 'a'} {kind}"

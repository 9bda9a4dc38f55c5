"""Which columns describe an item, which a model, and which neither."""

import dataclasses

import numpy as np
import pandas as pd
import pyarrow as pa

from irtjax.errors import InputError
from irtjax.io.coded import Coded
from irtjax.io.columns import BENCHMARK, BENCHMARK_ALIASES
from irtjax.io.files import joined_places, quoted
from irtjax.io.rows import Rows

__all__ = ["OF_ITEMS", "Metadata", "split_metadata"]

_HASH = "item_hash"
# An item with two of these is two items with one id; `subject` and `category` may also name
# something else (the test taker's field, a label that changed) and are then not the benchmark.
OF_ITEMS = (BENCHMARK, "dataset", "task", _HASH)
_NULLABLE = {pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}


@dataclasses.dataclass(frozen=True)
class Metadata:
    """Metadata by item and by model, and what was left out.

    Attributes:
        item: one row an item, `benchmark` first.
        model: one row a model.
        not_kept: column to the reason why it is in neither.
        notes: warnings.
    """

    item: pd.DataFrame
    model: pd.DataFrame
    not_kept: dict[str, str]
    notes: list[str]


def split_metadata(rows: Rows) -> Metadata:
    """Assign each column to the items when it is constant within them, else to the models.

    A missing value contradicts nothing. A column constant in both belongs to the items, unless
    the file says otherwise.

    Raises:
        InputError: an item with two benchmarks, data sets, tasks or content hashes.
    """
    n_items, n_models = len(rows.item.values), len(rows.model.values)
    item: dict[str, pd.Series] = {}
    model: dict[str, pd.Series] = {}
    not_kept: dict[str, str] = {}
    for name, column in rows.columns.items():
        by_item = _constant(column.codes, rows.item.codes, n_items)
        by_model = _constant(column.codes, rows.model.codes, n_models)
        if by_item is None and name in OF_ITEMS:
            raise InputError(_two_values(rows, name))
        if by_model is not None and (by_item is None or rows.owner.get(name) == "model"):
            model[name] = _series(column, by_model)
        elif by_item is not None:
            item[name] = _series(column, by_item)
        else:
            not_kept[name] = "varies within an item and within a model"
    notes = _add_benchmark(item)
    if BENCHMARK in item:
        item = {BENCHMARK: item.pop(BENCHMARK), **item}
    return Metadata(_frame(item, n_items), _frame(model, n_models), not_kept, notes)


def _constant(codes: np.ndarray, group: np.ndarray, n_groups: int) -> np.ndarray | None:
    """The code of each group (-1 where it has none), or None when a group has two."""
    if (codes < 0).any():
        seen = codes >= 0
        codes, group = codes[seen], group[seen]
    first = np.full(n_groups, -1, np.int32)
    first[group] = codes
    return first if np.array_equal(first[group], codes) else None


def _series(column: Coded, codes: np.ndarray) -> pd.Series:
    """Values by code, missing where -1; whole numbers stay whole beside missing ones."""
    values = column.values.take(pa.array(codes, mask=codes < 0))
    if pa.types.is_string(values.type):
        return pd.Series(values.to_pylist(), dtype="str")
    nullable = _NULLABLE if values.null_count else {}
    return pd.Series(values.to_pandas(types_mapper=nullable.get))


def _frame(columns: dict[str, pd.Series], size: int) -> pd.DataFrame:
    return pd.DataFrame(columns, index=pd.RangeIndex(size))


def _add_benchmark(item: dict[str, pd.Series]) -> list[str]:
    """Name the benchmark where exactly one alias can be it; a note where several can."""
    if BENCHMARK in item:
        return []
    aliases = [name for name in item if name in BENCHMARK_ALIASES]
    if len(aliases) == 1:
        item[BENCHMARK] = item[aliases[0]]
    if len(aliases) < 2:
        return []
    shown = " and ".join(quoted(name) for name in aliases)
    return [f"columns {shown} may each be the benchmark, so none is; name one with --group"]


def _two_values(rows: Rows, name: str) -> str:
    """Name the first item with two values, both values and both places."""
    column = rows.columns[name]
    seen = np.flatnonzero(column.codes >= 0)
    frame = pd.DataFrame({"item": rows.item.codes[seen], "code": column.codes[seen]})
    first = frame.groupby("item")["code"].transform("first").to_numpy()
    second = int(seen[np.flatnonzero(first != frame["code"].to_numpy())[0]])
    same_item = seen[rows.item.codes[seen] == rows.item.codes[second]]
    one, two = int(same_item[0]), second
    what = (
        f"item {quoted(rows.item.text_at(one))} has two values of {name!r}, "
        f"{quoted(column.text_at(one))} and {quoted(column.text_at(two))} "
        f"({joined_places(rows.place(one), rows.place(two))})"
    )
    if name == _HASH:
        return f"{what}: its content changed between the runs; keep one version, or rename one"
    unique = f"{column.text_at(one)}/{rows.item.text_at(one)}"
    return f"{what}; make the ids unique (for example {quoted(unique)}), or rename the column"

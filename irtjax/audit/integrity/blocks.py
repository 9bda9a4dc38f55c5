"""Responses benchmark by benchmark: columns in order, standardised rows, local trends removed."""

import dataclasses
import warnings
from collections.abc import Iterator, Mapping
from types import MappingProxyType

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy import sparse

from irtjax.checks import counted
from irtjax.data.responses import ResponseMatrix
from irtjax.errors import IrtjaxWarning

__all__ = [
    "DEFAULT_GROUP",
    "NO_GROUP",
    "Benchmark",
    "Columns",
    "benchmarks_of",
    "chosen_group",
    "without_trend",
]

DEFAULT_GROUP = "benchmark"  # the column that names the benchmarks where none is chosen
NO_GROUP = "none"  # all items as one benchmark
_CHUNK_CELLS = 1 << 21  # 16 MiB as float64: larger arrays are mapped anew each time
_FEWEST_COLUMNS = 512
# Neighbours on either side whose mean is taken for the trend. Items stand by subject and by
# passage: two orders that agree about the subjects agree a little, cell by cell, and a shift by one
# looks half right. Against 20 neighbours an item in its place loses 5% of its own signal.
_HALF_WINDOW = 10


@dataclasses.dataclass(frozen=True)
class Benchmark:
    """A group of items, in the order of the matrix's columns."""

    name: str
    items: Int[np.ndarray, " items"]


def chosen_group(data: ResponseMatrix, group: str | None) -> str | None:
    """The column of the benchmarks: the default where none is named, None for no column at all.

    Args:
        data: the responses.
        group: a column, `none` for all items as one benchmark, None for the default column. That
            is not used, with an `IrtjaxWarning`, where it lacks a value.
    """
    if group is not None:
        return None if group == NO_GROUP else group
    if DEFAULT_GROUP not in data.item_metadata:
        return None
    is_absent = data.item_metadata[DEFAULT_GROUP].isna().to_numpy()
    if not is_absent.any():
        return DEFAULT_GROUP
    first = data.item_ids[int(np.argmax(is_absent))]
    n_absent = counted(int(is_absent.sum()), "item")
    warnings.warn(
        f"column {DEFAULT_GROUP!r} has no value for {n_absent} of {data.n_items:,} (the first is "
        f"{str(first)!r}), so it is not used and all items are one benchmark; give each a value, "
        f"or choose another column or {NO_GROUP!r} as the group",
        IrtjaxWarning,
        stacklevel=3,
    )
    return None


def benchmarks_of(data: ResponseMatrix, group: str | None) -> list[Benchmark]:
    """The benchmarks by a column of item metadata; all items are one where it is None.

    Raises:
        InputError: no such column, or an item without a value.
    """
    if group is None:
        return [Benchmark("all", np.arange(data.n_items))]
    codes, names = data.groups(group)
    order = np.argsort(codes, kind="stable")
    bounds = np.searchsorted(codes[order], np.arange(len(names) + 1))
    return [Benchmark(name, order[bounds[g] : bounds[g + 1]]) for g, name in enumerate(names)]


class Columns:
    """Chosen columns of a response matrix as a dense chunk, whatever the matrix's layout.

    Args:
        data: the responses.
        replaced: whole rows to be read in place of the matrix's, by model.
    """

    def __init__(
        self,
        data: ResponseMatrix,
        replaced: Mapping[int, Float[np.ndarray, " items"]] = MappingProxyType({}),
    ) -> None:
        self.shape = (data.n_models, data.n_items)
        self._data = data
        self._replaced = replaced
        if data.sparse is not None:
            cells = data.sparse
            # One more than the response: a wrong answer must not be taken for an absent one.
            stored = np.asarray(cells.response, np.float32) + 1
            place = (cells.model_index, cells.item_index)
            self._sparse = sparse.csc_matrix((stored, place), self.shape)
            self._by_model = self._sparse.tocsr()

    def replaced(self, rows: Mapping[int, Float[np.ndarray, " items"]]) -> "Columns":
        """The same with other rows for some models."""
        return Columns(self._data, {**self._replaced, **rows})

    def take(self, items: Int[np.ndarray, " items"]) -> Float[np.ndarray, "models items"]:
        """Responses, -1 where missing."""
        if self._data.dense is not None:
            block = np.asarray(self._data.dense[:, items], np.float32)
        else:
            block = np.asarray(self._sparse[:, items].toarray(), np.float32) - 1
        for model, row in self._replaced.items():
            block[model] = row[items]
        return block

    def row(self, model: int) -> Float[np.ndarray, " items"]:
        """One model's responses in the order of the columns, -1 where missing."""
        if model in self._replaced:
            return self._replaced[model]
        if self._data.dense is not None:
            return np.asarray(self._data.dense[model], np.float32)
        return np.asarray(self._by_model[[model]].toarray()[0], np.float32) - 1

    def chunks(
        self, items: Int[np.ndarray, " items"]
    ) -> Iterator[tuple[slice, Float[np.ndarray, "models chunk"]]]:
        """Parts of a benchmark's columns small enough to hold, each with its place among them."""
        width = max(_FEWEST_COLUMNS, _CHUNK_CELLS // max(self.shape[0], 1))
        for start in range(0, len(items), width):
            part = slice(start, min(start + width, len(items)))
            yield part, self.take(items[part])


def without_trend(
    rows: Float[np.ndarray, "models chunk"], is_observed: Bool[np.ndarray, "models chunk"]
) -> Float[np.ndarray, "models chunk"]:
    """Rows minus the mean of their observed neighbours, in the order of the columns; 0 if missing.

    Args:
        rows: standardised responses, 0 where missing.
        is_observed: where they are not missing.
    """
    density = max(float(is_observed.mean()), 1e-6) if is_observed.size else 1.0
    half = int(np.ceil(_HALF_WINDOW / density))
    low = np.maximum(np.arange(rows.shape[1]) - half, 0)
    high = np.minimum(np.arange(rows.shape[1]) + half + 1, rows.shape[1])
    sums = _windows(rows, low, high) - rows
    counts = _windows(is_observed.astype(np.float32), low, high) - is_observed
    # Without the cell itself; where few neighbours were observed, their mean is shrunk to 0.
    trend = sums / (counts + 1)
    return np.where(is_observed, rows - trend, 0).astype(np.float32)


def _windows(
    rows: Float[np.ndarray, "models chunk"], low: np.ndarray, high: np.ndarray
) -> Float[np.ndarray, "models chunk"]:
    """Sums over a window around each column."""
    total = np.zeros((rows.shape[0], rows.shape[1] + 1))
    np.cumsum(rows, axis=1, out=total[:, 1:])
    return total[:, high] - total[:, low]

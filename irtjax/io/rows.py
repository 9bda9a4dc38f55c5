"""What a reader hands over: `Rows` (one response a row) or `Grid` (a models x items matrix)."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from irtjax.errors import InputError
from irtjax.io.coded import Coded, concat_coded, encode, encode_texts
from irtjax.io.files import Place, quoted

__all__ = ["Grid", "Rows", "coded_series", "concat_rows", "explained", "rows_of_grid"]


@dataclasses.dataclass(frozen=True)
class Rows:
    """Responses of one or more files, a row each, in input order.

    Attributes:
        model: ids; a value without a row is a model without responses.
        item: ids.
        response: float64 in [0, 1], NaN where missing.
        weight: float64, or None when all are 1.
        columns: what may be metadata.
        owner: `item` or `model` for the columns that the file itself declares.
        place: where a row stands.
    """

    model: Coded
    item: Coded
    response: np.ndarray
    weight: np.ndarray | None
    columns: dict[str, Coded]
    place: Callable[[int], Place]
    owner: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.response)

    def explain(self, row: int) -> str:
        """Which model, item and place a row is, in words."""
        return explained(self.model.text_at(row), self.item.text_at(row), self.place(row))


@dataclasses.dataclass(frozen=True)
class Grid:
    """A models x items matrix as a file holds it: -1 where missing.

    Attributes:
        model_ids: one a row.
        item_ids: one a column.
        matrix: int8, or float32 when there are fractions.
        weight: float32 of the same shape, or None when all are 1.
        item_metadata: one row an item.
        model_metadata: one row a model.
        place: where the cell (row, column) stands.
    """

    model_ids: Sequence[str]
    item_ids: Sequence[str]
    matrix: np.ndarray
    weight: np.ndarray | None
    item_metadata: pd.DataFrame
    model_metadata: pd.DataFrame
    place: Callable[[int, int], Place]

    def explain(self, flat: int) -> str:
        """Which model, item and place a flat index is, in words."""
        i, j = divmod(flat, len(self.item_ids))
        return explained(self.model_ids[i], self.item_ids[j], self.place(i, j))


def explained(model: str, item: str, place: Place) -> str:
    """A response in words, for messages."""
    return f"model {quoted(model)} to item {quoted(item)} ({place})"


def rows_of_grid(grid: Grid) -> Rows:
    """The cells of a matrix as rows, missing ones included, model by model."""
    n_models, n_items = grid.matrix.shape
    model_index = np.repeat(np.arange(n_models, dtype=np.int32), n_items)
    item_index = np.tile(np.arange(n_items, dtype=np.int32), n_models)
    columns: dict[str, Coded] = {}
    owner: dict[str, str] = {}
    for kind, table, index in (
        ("item", grid.item_metadata, item_index),
        ("model", grid.model_metadata, model_index),
    ):
        for name in table.columns:
            if name in columns:
                raise InputError(
                    f"column {quoted(name)} is metadata of items and of models; rename one"
                )
            columns[name] = coded_series(table[name]).take(index)
            owner[name] = kind
    response = grid.matrix.astype(float).ravel()
    return Rows(
        encode_texts(grid.model_ids).take(model_index),
        encode_texts(grid.item_ids).take(item_index),
        np.where(response < 0, np.nan, response),
        None if grid.weight is None else grid.weight.astype(float).ravel(),
        columns,
        lambda row: grid.place(*divmod(row, n_items)),
        owner,
    )


def coded_series(series: pd.Series) -> Coded:
    """A column of a data frame as codes; missing is -1."""
    return encode(pa.chunked_array([pa.array(series, from_pandas=True)]))


def concat_rows(parts: Sequence[Rows]) -> Rows:
    """The rows of several files below each other; a column that a file lacks is missing there."""
    if len(parts) == 1:
        return parts[0]
    starts = np.cumsum([0] + [len(part) for part in parts])
    names = dict.fromkeys(name for part in parts for name in part.columns)
    weight = None
    if any(part.weight is not None for part in parts):
        weight = np.concatenate(
            [np.ones(len(part)) if part.weight is None else part.weight for part in parts]
        )

    def place(row: int) -> Place:
        k = int(np.searchsorted(starts, row, side="right")) - 1
        return parts[k].place(row - int(starts[k]))

    owner: dict[str, Any] = {}
    for part in parts:
        owner.update(part.owner)
    return Rows(
        concat_coded([part.model for part in parts]),
        concat_coded([part.item for part in parts]),
        np.concatenate([part.response for part in parts]),
        weight,
        {
            name: concat_coded([part.columns.get(name, _absent(len(part))) for part in parts])
            for name in names
        },
        place,
        owner,
    )


def _absent(n_rows: int) -> Coded:
    return Coded(np.full(n_rows, -1, np.int32), pa.array([], pa.string()))

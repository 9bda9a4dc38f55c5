"""Writer of the long table (CSV, Parquet): rows by item and model, a block of items at a time."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from irtjax.data.cells import Cells, cells_at
from irtjax.data.responses import ResponseMatrix
from irtjax.io.parquet_table import MODEL_COLUMNS
from irtjax.io.write import arrow_table, atomic_path, csv_options, texts_of

__all__ = ["write_csv", "write_parquet"]

_CELLS_AT_ONCE = 1 << 20
_COMPRESSION = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4"}
_EMPTY = Cells(
    np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0, np.float32), np.zeros(0, np.float32)
)


def write_csv(matrix: ResponseMatrix, path: Path) -> None:
    """Write a CSV file, compressed when its suffix says so."""
    compression = _COMPRESSION.get(path.suffix.lower())
    with atomic_path(path) as temporary:
        columns = _Columns(matrix)
        options = csv_options(columns.texts())
        with (
            pa.output_stream(str(temporary), compression=compression) as stream,
            pyarrow.csv.CSVWriter(stream, columns.schema, write_options=options) as writer,
        ):
            for cells in _chunks(matrix):
                writer.write_batch(columns.batch(cells))


def write_parquet(matrix: ResponseMatrix, path: Path) -> None:
    """Write a Parquet file; its metadata name the columns that describe models."""
    model_columns = json.dumps([str(name) for name in matrix.model_metadata.columns])
    with atomic_path(path) as temporary:
        columns = _Columns(matrix)
        schema = columns.schema.with_metadata({MODEL_COLUMNS: model_columns})
        with pq.ParquetWriter(temporary, schema) as writer:
            for cells in _chunks(matrix):
                writer.write_batch(columns.batch(cells).replace_schema_metadata(schema.metadata))


class _Columns:
    """The columns of a long table, made a batch of cells at a time."""

    def __init__(self, matrix: ResponseMatrix) -> None:
        self._model = self._side(matrix.model_ids, "model_id", matrix.model_metadata)
        self._item = self._side(matrix.item_ids, "item_id", matrix.item_metadata)
        self._response = pa.int8() if matrix.is_binary else pa.float32()
        self._has_weight = matrix.is_weighted
        self.schema = self.batch(_EMPTY).schema

    def texts(self) -> list[pa.Array | pa.ChunkedArray]:
        """Everything that may need quotes."""
        return [*texts_of(self._model), *texts_of(self._item)]

    def batch(self, cells: Cells) -> pa.RecordBatch:
        """The rows of some cells, NaN as an empty response."""
        model, item = self._model.take(cells.model_index), self._item.take(cells.item_index)
        missing = np.isnan(cells.response)
        response = np.where(missing, 0, cells.response).astype(self._response.to_pandas_dtype())
        arrays = {
            "model_id": model["model_id"],
            "item_id": item["item_id"],
            **{name: item[name] for name in item.column_names[1:]},
            **{name: model[name] for name in model.column_names[1:]},
            "response": pa.array(response, self._response, mask=missing),
        }
        if self._has_weight:
            arrays["weight"] = pa.array(cells.weight, pa.float32(), mask=missing)
        return pa.record_batch(
            [a.combine_chunks() if isinstance(a, pa.ChunkedArray) else a for a in arrays.values()],
            names=list(arrays),
        )

    @staticmethod
    def _side(ids: np.ndarray, name: str, metadata: pd.DataFrame) -> pa.Table:
        table = arrow_table(metadata)
        column = pa.array(list(ids), pa.string())
        return pa.table({name: column, **dict(zip(table.column_names, table.columns, strict=True))})


def _chunks(matrix: ResponseMatrix) -> Iterator[Cells]:
    """Observed cells by blocks of items, with the empty rows that keep ids and their order."""
    per_item = max(
        matrix.n_models if matrix.sparse is None else matrix.n_responses / matrix.n_items, 1
    )
    step = max(1, int(_CELLS_AT_ONCE / per_item))
    for start in range(0, matrix.n_items, step):
        stop = min(start + step, matrix.n_items)
        cells = _cells_between(matrix, start, stop)
        has_none = np.setdiff1d(np.arange(start, stop), cells.item_index)
        model, item = np.zeros(len(has_none), np.int32), has_none.astype(np.int32)
        if start == 0:
            first = cells.model_index[cells.item_index == 0]
            model = np.append(model[item > 0], np.setdiff1d(np.arange(matrix.n_models), first))
            item = np.append(item[item > 0], np.zeros(matrix.n_models - len(first), np.int32))
        yield _with_empty(cells, model.astype(np.int32), item.astype(np.int32))


def _cells_between(matrix: ResponseMatrix, start: int, stop: int) -> Cells:
    if matrix.sparse is not None:
        return matrix.sparse.taken(slice(*np.searchsorted(matrix.sparse.item_index, [start, stop])))
    assert matrix.dense is not None
    item, model = np.nonzero((matrix.dense[:, start:stop] >= 0).T)
    return cells_at(matrix.dense, matrix.dense_weight, model, item + start)


def _with_empty(cells: Cells, model: np.ndarray, item: np.ndarray) -> Cells:
    if not len(model):
        return cells
    model, item = np.append(cells.model_index, model), np.append(cells.item_index, item)
    n_empty = len(model) - len(cells)
    order = np.lexsort((model, item))
    return Cells(
        model[order],
        item[order],
        np.append(cells.response, np.full(n_empty, np.nan, np.float32))[order],
        np.append(cells.weight, np.ones(n_empty, np.float32))[order],
    )

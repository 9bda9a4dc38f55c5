"""Parquet files, a column at a time."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from irtjax.errors import InputError
from irtjax.io.columns import check_names
from irtjax.io.files import Place, one_line_errors
from irtjax.io.table import Table

__all__ = ["MODEL_COLUMNS", "PARQUET_SUFFIXES", "read_parquet_table"]

# Key of the file's own note of which columns describe models (written by `write_responses`).
MODEL_COLUMNS = b"irtjax.model_columns"
PARQUET_SUFFIXES = (".parquet", ".pq")


def read_parquet_table(path: Path) -> Table:
    """The columns of a Parquet file; each is read when asked for.

    Raises:
        InputError: truncated or not Parquet, no rows, repeated names.
    """
    with one_line_errors(path), pq.ParquetFile(path) as file:
        schema, n_rows = file.schema_arrow, file.metadata.num_rows
    names = list(schema.names)
    check_names(names, path)
    if n_rows == 0:
        raise InputError(f"{path} has columns but no rows")

    def fetch(name: str) -> pa.ChunkedArray:
        # Text comes as dictionary codes straight from the file, never as n_rows strings.
        is_text = pa.types.is_string(schema.field(name).type)
        with pq.ParquetFile(path, read_dictionary=[name] if is_text else None) as file:
            column = file.read(columns=[name])
        return column.column(0)

    declared = json.loads((schema.metadata or {}).get(MODEL_COLUMNS, b"[]"))
    owner = dict.fromkeys(declared, "model")
    return Table(path, names, n_rows, fetch, lambda row: Place("row", row + 1, str(path)), owner)

"""One way to a `Table`, whichever of CSV, Parquet or JSON Lines the file is."""

from pathlib import Path

from irtjax.io.columns import ID_NAMES
from irtjax.io.csv_table import read_csv_table
from irtjax.io.files import check_readable, plain_suffix
from irtjax.io.json_table import JSON_SUFFIXES, read_json_table
from irtjax.io.parquet_table import PARQUET_SUFFIXES, read_parquet_table
from irtjax.io.table import Table

__all__ = ["read_table"]


def read_table(path: Path, exact: frozenset[str] = frozenset()) -> Table:
    """Open a table by its suffix; anything but Parquet and JSON Lines is text.

    Args:
        path: the file.
        exact: columns, besides the usual names of ids, whose values must stay as written.
    """
    check_readable(path)
    suffix = plain_suffix(path)
    if suffix in PARQUET_SUFFIXES:
        return read_parquet_table(path)
    if suffix in JSON_SUFFIXES:
        return read_json_table(path, ID_NAMES | exact)
    return read_csv_table(path)

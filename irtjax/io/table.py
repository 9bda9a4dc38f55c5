"""`Table`: named columns of a CSV, Parquet or JSON Lines file, and where a row stands in it."""

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow as pa

from irtjax.errors import InputError
from irtjax.io.coded import Coded, encode
from irtjax.io.files import Place, one_line_errors

__all__ = ["Table"]

# More text than this in one column is no metadata but a log of prompts or outputs.
_LONGEST_TEXT = 1 << 30


@dataclasses.dataclass(frozen=True)
class Table:
    """A file as columns; Parquet columns are read when asked for.

    Attributes:
        path: the file.
        names: its columns, in order.
        n_rows: number of rows.
        fetch: the Arrow column of a name.
        locate: the place of a row, found only when a message needs it.
        owner: `model` for columns that the file itself declares to describe models.
    """

    path: Path
    names: list[str]
    n_rows: int
    fetch: Callable[[str], pa.ChunkedArray]
    locate: Callable[[int], Place]
    owner: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def column(self, name: str) -> Coded:
        """A column the reader needs.

        Raises:
            InputError: it holds lists or objects, or cannot be read.
        """
        with one_line_errors(self.path):
            column = self.fetch(name)
            if pa.types.is_nested(column.type):
                raise InputError(
                    f"column {name!r} of {self.path} holds {column.type}, not one value a row"
                )
            return encode(column)

    def metadata(self, name: str) -> Coded | str:
        """A column that may be metadata, or why it cannot be."""
        with one_line_errors(self.path):
            column = self.fetch(name)
            if pa.types.is_nested(column.type):
                return "lists or objects"
            if pa.types.is_dictionary(column.type):
                size = sum(chunk.dictionary.nbytes for chunk in column.chunks)
            else:
                size = column.nbytes
            if size > _LONGEST_TEXT:
                return "more than 1 GiB of text"
            return encode(column).blank_as_missing()

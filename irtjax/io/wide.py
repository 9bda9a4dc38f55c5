"""Reader of the wide table: a CSV file of models x items (or items x models)."""

import dataclasses
from itertools import islice
from pathlib import Path

import numpy as np
import pandas as pd

from irtjax.data.checks import MISSING
from irtjax.errors import InputError
from irtjax.io.coded import encode_texts
from irtjax.io.columns import check_names, listed, roles_found
from irtjax.io.csv_table import csv_header, csv_rows
from irtjax.io.files import Place, check_readable, quoted
from irtjax.io.grid import transposed, transposed_note
from irtjax.io.options import Options, Part
from irtjax.io.rows import Grid
from irtjax.io.values import REMEDY, numbers_of

__all__ = ["read_wide"]

_CELLS_AT_ONCE = 1 << 18


@dataclasses.dataclass(frozen=True)
class _Layout:
    names: list[str]
    id_position: int | None
    has_header: bool

    @property
    def columns(self) -> list[str]:
        return [name for k, name in enumerate(self.names) if k != self.id_position]


def read_wide(path: Path, options: Options) -> Part:
    """Read a matrix with the ids of its rows in one column and the others in the header.

    Without header (`no_header`) there is no id column, and ids are `model-0`, `item-0`, ...

    The standard library's reader takes it row by row: Arrow needed twice the time and four
    times the memory for a table of 34,000 columns, of which each is an array of its own.

    Raises:
        InputError: no item columns, a column that is not 0/1, a ragged row, an empty id.
    """
    check_readable(path)
    layout = _layout(path, options)
    ids, lines, matrix = _read_cells(path, layout)
    if layout.id_position is None:
        kind = "item" if options.items_in_rows else "model"
        ids = [f"{kind}-{k}" for k in range(len(matrix))]
    elif options.id_column is None:
        _refuse_responses_as_ids(ids, layout, path)
    grid = Grid(
        ids,
        layout.columns,
        matrix,
        None,
        pd.DataFrame(index=pd.RangeIndex(matrix.shape[1])),
        pd.DataFrame(index=pd.RangeIndex(matrix.shape[0])),
        lambda i, j: Place("line", lines[i], str(path)),
    )
    if options.items_in_rows:
        grid = transposed(grid)
    notes = transposed_note(grid.matrix.shape, options.items_in_rows, path)
    id_column = None if layout.id_position is None else layout.names[layout.id_position]
    return Part(grid, {"id_column": id_column, "items_in_rows": options.items_in_rows}, notes)


def _layout(path: Path, options: Options) -> _Layout:
    """Names and id column of a table, from its first row."""
    first = csv_header(path)
    if len(first) < 2:
        wanted = "a wide table has an id column and a column for each item, separated by commas"
        if ";" in first[0]:
            wanted = "its columns are separated by semicolons; save it with commas"
        raise InputError(f"{path} has a single column, {quoted(first[0])}; {wanted}")
    if options.no_header:
        kind = "model" if options.items_in_rows else "item"
        return _Layout([f"{kind}-{k}" for k in range(len(first))], None, False)
    _refuse_responses_as_names(first, path)
    check_names(first, path)
    position = 0
    if options.id_column is not None:
        if options.id_column not in first:
            raise InputError(
                f"{path} has no column {quoted(options.id_column)} (--id-column); "
                f"columns: {listed(first)}"
            )
        position = first.index(options.id_column)
    for number, name in enumerate(first):
        if not name and number != position:
            raise InputError(f"column {number + 1} of {path} has no name in the header; name it")
    return _Layout(first, position, True)


def _read_cells(path: Path, layout: _Layout) -> tuple[list[str], list[int], np.ndarray]:
    """Ids and lines of the rows, and the matrix as the file lays it out."""
    ids: list[str] = []
    lines: list[int] = []
    cells: list[str] = []
    parser = _Parser(path, layout)
    for line, row in islice(csv_rows(path), int(layout.has_header), None):
        if len(row) != len(layout.names):
            raise InputError(
                f"line {line} of {path} has {len(row):,} values where the first line has "
                f"{len(layout.names):,}"
            )
        if layout.id_position is not None:
            ids.append(row.pop(layout.id_position))
            if not ids[-1]:
                raise InputError(
                    f"the id is empty on line {line} of {path}, column "
                    f"{quoted(layout.names[layout.id_position])}; give each row an id"
                )
        lines.append(line)
        cells.extend(row)
        if len(cells) >= _CELLS_AT_ONCE:
            parser.add(cells, lines)
            cells.clear()
    if not lines:
        raise InputError(f"{path} has a header but no rows")
    parser.add(cells, lines)
    return ids, lines, parser.matrix()


class _Parser:
    """Cells as text to numbers, a batch of rows at a time; columns that are not 0/1 are counted."""

    def __init__(self, path: Path, layout: _Layout) -> None:
        self._path, self._layout = path, layout
        self._batches: list[np.ndarray] = []
        self._n_bad = np.zeros(len(layout.columns), np.int64)
        self._first: dict[int, tuple[str, int]] = {}

    def add(self, cells: list[str], lines: list[int]) -> None:
        """Parse the cells of the last rows, row by row."""
        coded = encode_texts(cells)
        numbers = np.append(numbers_of(coded.values), np.nan)[coded.codes]
        numbers = numbers.reshape(-1, len(self._n_bad))
        is_bad = np.isinf(numbers)
        if is_bad.any():
            self._n_bad += np.count_nonzero(is_bad, axis=0)
            for j in np.flatnonzero(is_bad.any(axis=0)).tolist():
                i = int(np.argmax(is_bad[:, j]))
                text = cells[i * len(self._n_bad) + j]
                self._first.setdefault(j, (text, lines[i - len(numbers)]))
        numbers[np.isnan(numbers) | is_bad] = MISSING
        is_binary = bool(np.all(numbers == np.rint(numbers)))
        self._batches.append(numbers.astype(np.int8 if is_binary else np.float32))

    def matrix(self) -> np.ndarray:
        """All batches; refuses the columns that are not 0/1, by name."""
        if self._first:
            raise InputError(self._bad_columns())
        return np.concatenate(self._batches)

    def _bad_columns(self) -> str:
        columns = self._layout.columns
        bad = sorted(self._first)
        text, line = self._first[bad[0]]
        n_bad = int(self._n_bad[bad[0]])
        several = f" ({n_bad:,} such values)" if n_bad > 1 else ""
        others = ""
        if len(bad) > 1:
            others = f"; the same in {listed([columns[j] for j in bad[1:]])}"
        return (
            f"column {quoted(columns[bad[0]])} of {self._path} is not 0/1: {quoted(text)} on line "
            f"{line}{several}{others}; {REMEDY}; {self._remedy(line)}"
        )

    def _remedy(self, line: int) -> str:
        if not self._layout.has_header:
            return "drop --no-header if the first line is a header" if line == 1 else "correct it"
        if roles_found([name.strip().lower() for name in self._layout.columns]):
            return (
                "if this is a long table, name its columns with --model-column, --item-column "
                "and --response-column; else drop the column"
            )
        return "drop the column, or say with --id-column that it holds the ids"


def _refuse_responses_as_names(first: list[str], path: Path) -> None:
    """A first line of 0 and 1 is data without a header (pandas writes `,0,1` above ids)."""
    is_repeated = len(set(first)) < len(first)
    begins_with_one = bool(first[0]) and _are_responses(first[:1])
    if _are_responses(first[1:]) and (is_repeated or begins_with_one):
        raise InputError(
            f"line 1 of {path} holds responses, not names; pass --no-header if there is no id "
            "column either, else add a header"
        )


def _refuse_responses_as_ids(ids: list[str], layout: _Layout, path: Path) -> None:
    """A first column of repeated 0 and 1 is an item, not the ids."""
    if len(set(ids)) < len(ids) and _are_responses(ids):
        raise InputError(
            f"the first column of {path}, {quoted(layout.names[0])}, holds responses, not ids; "
            "name the id column with --id-column, or add one"
        )


def _are_responses(texts: list[str]) -> bool:
    return not np.isinf(numbers_of(encode_texts(texts).values)).any()

"""JSON Lines files: fast through Arrow, exact through the standard library where they differ."""

import functools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.json

from irtjax.errors import InputError
from irtjax.io.files import Place, one_line_errors, open_bytes, reason_of
from irtjax.io.table import Table

__all__ = ["JSON_SUFFIXES", "json_lines", "read_json_table", "refuse_repeated_keys"]

JSON_SUFFIXES = (".jsonl", ".ndjson", ".json")
_BLOCK = 16 << 20  # bytes; a line must fit in one block
PairsHook = Callable[[list[tuple[str, Any]]], Any]


def json_lines(path: Path, pairs_hook: PairsHook | None = None) -> Iterator[tuple[int, dict]]:
    """The objects of a JSON Lines file, each with its line number, blank lines left out.

    Args:
        path: the file.
        pairs_hook: as `object_pairs_hook` of `json.loads`.

    Raises:
        InputError: not UTF-8, not JSON, or a line that is no object.
    """
    with one_line_errors(path), open_bytes(path) as stream:
        for number, raw in enumerate(stream, 1):
            text = raw.decode("utf-8-sig" if number == 1 else "utf-8")
            if not text.strip():
                continue
            try:
                value = json.loads(text, object_pairs_hook=pairs_hook)
            except (ValueError, RecursionError) as error:
                raise InputError(
                    f"cannot read line {number} of {path} as JSON: {reason_of(error)}; "
                    "write one object a line"
                ) from None
            if not isinstance(value, dict):
                raise InputError(
                    f"line {number} of {path} holds no object; write one object a line"
                )
            yield number, value


def refuse_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """For `json_lines`: the standard library would keep the last of two equal keys."""
    value = dict(pairs)
    if len(value) != len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"key {next(n for n in names if names.count(n) > 1)!r} stands twice")
    return value


def read_json_table(path: Path, exact: frozenset[str]) -> Table:
    """The keys of a JSON Lines file as columns; absent keys are missing.

    Args:
        path: the file.
        exact: columns whose numbers must stay as written (ids): Arrow reads an integer past
            64 bits, or one beside a fraction, as a float, and a date as a time stamp.

    Raises:
        InputError: empty, not JSON Lines, not UTF-8.
    """
    columns = _arrow_columns(path, exact)
    if columns is None:
        with one_line_errors(path):
            columns = _exact_columns(path)
    n_rows = len(next(iter(columns.values()))) if columns else 0
    if n_rows == 0:
        raise InputError(f"{path} has no objects with keys")
    locate = functools.partial(_line_of_row, path)
    return Table(path, list(columns), n_rows, columns.__getitem__, locate)


def _arrow_columns(path: Path, exact: frozenset[str]) -> dict[str, pa.ChunkedArray] | None:
    try:
        table = pyarrow.json.read_json(
            str(path), read_options=pyarrow.json.ReadOptions(block_size=_BLOCK)
        )
        table.validate(full=True)
    except (pa.ArrowException, OSError, ValueError):
        return None
    for field in table.schema:
        kind = field.type
        if pa.types.is_temporal(kind) or (field.name in exact and pa.types.is_floating(kind)):
            return None
    return {name: table.column(name) for name in table.column_names}


def _exact_columns(path: Path) -> dict[str, pa.ChunkedArray]:
    columns: dict[str, list[Any]] = {}
    n_rows = 0
    for _, row in json_lines(path, refuse_repeated_keys):
        for name, value in row.items():
            column = columns.setdefault(name, [])
            column.extend([None] * (n_rows - len(column)))
            column.append(value)
        n_rows += 1
    for column in columns.values():
        column.extend([None] * (n_rows - len(column)))
    return {name: _arrow_column(column) for name, column in columns.items()}


def _arrow_column(values: list[Any]) -> pa.ChunkedArray:
    """One Arrow column: of the values' own type when they share it, else of their strings."""
    kinds = {type(value) for value in values} - {type(None)}
    if kinds & {dict, list}:
        nested = pa.list_(pa.null())
        return pa.chunked_array([pa.nulls(len(values), nested)])
    if len(kinds) == 1:
        try:
            return pa.chunked_array([pa.array(values)])
        except (pa.ArrowException, OverflowError):
            pass  # an integer past 64 bits
    return pa.chunked_array(
        [pa.array([None if value is None else str(value) for value in values], pa.string())]
    )


def _line_of_row(path: Path, row: int) -> Place:
    try:
        for k, (line, _) in enumerate(json_lines(path)):
            if k == row:
                return Place("line", line, str(path))
    except InputError:
        pass
    return Place("row", row + 1, str(path))

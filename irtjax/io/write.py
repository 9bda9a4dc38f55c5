"""Plain writers: tables, JSON, and responses in the formats that `read_responses` reads."""

import contextlib
import contextvars
import json
import math
import os
import secrets
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from irtjax.io.files import PathLike, one_line_errors

__all__ = [
    "all_or_none",
    "arrow_table",
    "atomic_path",
    "csv_options",
    "texts_of",
    "write_json",
    "write_table",
]

# Within `all_or_none`: what was written, as (name, where it lies, where it goes).
_Written = list[tuple[PathLike, Path, Path]]
_waiting: contextvars.ContextVar[_Written | None] = contextvars.ContextVar("waiting", default=None)


@contextlib.contextmanager
def all_or_none() -> Iterator[None]:
    """Files that are written within the block take their places together, when all are written.

    Where one cannot be written, none is: a command's files belong together.

    Raises:
        InputError: a file cannot be written, or not be moved into place.
    """
    written: _Written = []
    token = _waiting.set(written)
    try:
        yield
        for path, temporary, target in written:
            with one_line_errors(path, "write"):
                os.replace(temporary, target)
    finally:
        _waiting.reset(token)
        for _, temporary, _ in written:
            temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def atomic_path(path: PathLike) -> Iterator[Path]:
    """A temporary path beside `path` that replaces it when the block ends without an error.

    Within `all_or_none` it does so when that ends.

    Raises:
        InputError: the folder does not exist or cannot be written.
    """
    target = Path(os.path.realpath(path))
    with one_line_errors(path, "write"):
        if target.exists() and not target.is_file() and not target.is_dir():
            yield Path(path)  # a pipe or device, like /dev/stdout, which nothing may replace
            return
        temporary = target.with_name(f".{target.name}.{secrets.token_hex(8)}.tmp")
        with contextlib.ExitStack() as undo:
            undo.callback(temporary.unlink, missing_ok=True)
            with open(temporary, "xb"):
                pass
            yield temporary
            waiting = _waiting.get()
            if waiting is None:
                os.replace(temporary, target)
            else:
                waiting.append((path, temporary, target))
                undo.pop_all()


def write_table(frame: pd.DataFrame, path: PathLike) -> None:
    """Write a data frame as CSV, without its index.

    Numbers are the shortest text that reads back to the same value (at most 9 significant
    digits for float32, 17 for float64), NaN and None are empty, and text is quoted only
    in a table where some of it needs it.

    Raises:
        InputError: the file cannot be written.

    >>> import tempfile
    >>> from pathlib import Path
    >>> file = Path(tempfile.mkdtemp()) / "t.csv"
    >>> write_table(pd.DataFrame({"item_id": ["q1"], "difficulty": [0.1]}), file)
    >>> file.read_text()
    'item_id,difficulty\\nq1,0.1\\n'
    """
    with atomic_path(path) as temporary:
        table = arrow_table(frame)
        pyarrow.csv.write_csv(table, str(temporary), csv_options(texts_of(table)))


def write_json(value: Mapping[str, Any], path: PathLike) -> None:
    """Write JSON in one step: readers see the old file or the whole new one.

    NaN and infinities, which JSON does not have, become null; NumPy numbers and arrays become
    numbers and lists.

    Raises:
        InputError: the file cannot be written, or a value has no JSON form.
    """
    with atomic_path(path) as temporary:
        text = json.dumps(_plain(value), indent=2, ensure_ascii=False, allow_nan=False)
        temporary.write_text(text + "\n", encoding="utf-8")


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(each) for each in value]
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(value, "tolist"):  # NumPy and JAX arrays and scalars
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def csv_options(texts: Iterable[pa.Array | pa.ChunkedArray]) -> pyarrow.csv.WriteOptions:
    """Quotes only where some of the texts needs them: Arrow's `needed` quotes every string."""
    special = r'[",\r\n]'
    needs = any(pc.any(pc.match_substring_regex(text, special)).as_py() for text in texts)
    style = "needed" if needs else "none"
    return pyarrow.csv.WriteOptions(quoting_style=style, quoting_header=style)


def texts_of(table: pa.Table) -> list[pa.Array | pa.ChunkedArray]:
    """The names and the text columns of a table."""
    texts = [column for column in table.columns if pa.types.is_string(column.type)]
    return [pa.array(table.column_names, pa.string()), *texts]


def arrow_table(frame: pd.DataFrame) -> pa.Table:
    """A data frame as Arrow columns; categories and mixed objects become their text."""
    columns = {}
    for name in frame.columns:
        column = frame[name]
        try:
            array = pa.array(column, from_pandas=True)
        except (pa.ArrowException, TypeError):
            array = None
        if array is None or pa.types.is_nested(array.type) or pa.types.is_dictionary(array.type):
            array = pa.array([None if pd.isna(v) else str(v) for v in column], pa.string())
        elif pa.types.is_large_string(array.type) or pa.types.is_string_view(array.type):
            array = array.cast(pa.string())
        columns[str(name)] = array
    return pa.table(columns)

"""Which format a file has: by its suffix, and by the first row where that leaves a choice."""

from pathlib import Path

from irtjax.errors import InputError
from irtjax.io.columns import listed, roles_found
from irtjax.io.csv_table import CSV_SUFFIXES, csv_header
from irtjax.io.files import check_readable, open_bytes, plain_suffix
from irtjax.io.json_table import JSON_SUFFIXES, json_lines
from irtjax.io.lm_eval_runs import is_samples_file
from irtjax.io.options import Options
from irtjax.io.parquet_table import PARQUET_SUFFIXES

__all__ = ["format_of"]


def format_of(path: Path, options: Options) -> str:
    """The format of a file or folder: the one asked for, else what it looks like.

    A text table is long when it has a column for model, item and response, and wide when it has
    a column for at most one of them. With two it is refused: a long table that lacks a column
    must not become a wide one with strange items.

    Raises:
        InputError: a table that is neither long nor wide, a suffix that is not known.
    """
    if options.format is not None:
        return options.format
    if path.is_dir() or is_samples_file(path):
        return "lm-eval"
    check_readable(path)
    suffix = plain_suffix(path)
    if suffix in (".npz", ".npy"):
        return "npz"
    if suffix in PARQUET_SUFFIXES:
        return "long"
    if suffix in JSON_SUFFIXES:
        return _json_format(path)
    if suffix in CSV_SUFFIXES:
        return _text_format(path, options)
    known = ", ".join((*CSV_SUFFIXES, *PARQUET_SUFFIXES, *JSON_SUFFIXES, ".npz", ".npy"))
    raise InputError(
        f"{path} has a suffix that is not known; rename it ({known}), or pass --format"
    )


def _json_format(path: Path) -> str:
    with open_bytes(path) as stream:
        if stream.read(64).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"["):
            raise InputError(f"{path} holds one JSON array; write one object a line (JSON Lines)")
    for _, first in json_lines(path):
        if "subject_id" in first and isinstance(first.get("responses"), dict):
            return "pyirt"
        if "doc_id" in first and "resps" in first:
            return "lm-eval"
        return "long"
    raise InputError(f"{path} has no objects")


def _text_format(path: Path, options: Options) -> str:
    if options.no_header or options.items_in_rows or options.id_column is not None:
        return "wide"
    if any(options.overrides.values()):
        return "long"
    names = csv_header(path)
    found = roles_found(names)
    if len(found) == 3:
        return "long"
    if len(found) < 2:
        return "wide"
    lacking = next(role for role in ("model", "item", "response") if role not in found)
    raise InputError(
        f"{path} looks like a long table without a column for the {lacking}; name it with "
        f"--{lacking}-column, or pass --format wide; columns: {listed(names)}"
    )

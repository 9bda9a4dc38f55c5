"""`read_item_ids`: a list of items, as `irtjax select` writes it."""

import json
from pathlib import Path
from typing import Any

from irtjax.checks import shown
from irtjax.errors import InputError
from irtjax.io.files import PathLike, plain_suffix
from irtjax.io.json_table import JSON_SUFFIXES
from irtjax.io.long import ids_of
from irtjax.io.parquet_table import PARQUET_SUFFIXES
from irtjax.io.tables import read_table

__all__ = ["read_item_ids"]

_ITEM = "item_id"
_TABLES = (".csv", ".tsv", *PARQUET_SUFFIXES, *(each for each in JSON_SUFFIXES if each != ".json"))


def read_item_ids(path: PathLike) -> list[str]:
    """Read ids of items: each once, in the file's order.

    Args:
        path: a table with a column `item_id` (.csv, .tsv, .parquet, .jsonl); .json with a list of
            ids, or document numbers by task (lm-evaluation-harness' `--samples`: ids are then
            `task/number`); anything else is text with an id a line.

    Raises:
        InputError: no item, another content, a file that cannot be read.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "short.json"
    >>> _ = file.write_text('{"gsm8k": [3, 12]}')
    >>> read_item_ids(file)
    ['gsm8k/3', 'gsm8k/12']
    """
    path = Path(path)
    suffix = plain_suffix(path)
    if suffix in _TABLES:
        table = read_table(path)
        if _ITEM not in table.names:
            raise InputError(f"{path} needs a column {_ITEM!r}; columns: {', '.join(table.names)}")
        column = ids_of(table, _ITEM, "item")
        texts = column.texts()
        ids = [str(texts[code]) for code in column.codes]
    elif suffix == ".json":
        ids = _of_json(path)
    else:
        ids = [line.strip() for line in _text(path).splitlines()]
    found = list(dict.fromkeys(each for each in ids if each))
    if not found:
        raise InputError(f"{path} names no item; write one id a line")
    return found


def _of_json(path: Path) -> list[str]:
    text = _text(path)
    try:
        given: Any = json.loads(text)
    except (ValueError, RecursionError):
        raise InputError(f"{path} is not JSON") from None
    if not isinstance(given, dict | list):
        raise InputError(f"{path} must have a list of ids, or one a task, not {shown(given)}")
    lists = given.items() if isinstance(given, dict) else [(None, given)]
    found = []
    for task, each in lists:
        for name in each if isinstance(each, list) else [each]:
            if not isinstance(name, str | int) or isinstance(name, bool):
                raise InputError(f"{path} must have ids of items, not {shown(name)}")
            found.append(str(name) if task is None else f"{task}/{name}")
    return found


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"cannot read {path}: {reason}") from None

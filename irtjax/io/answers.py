"""`read_answers`: which option each model gave, and the key."""

from pathlib import Path

import numpy as np
import pandas as pd

from irtjax.checks import counted
from irtjax.errors import InputError
from irtjax.io.coded import Coded
from irtjax.io.columns import listed, resolve_roles
from irtjax.io.files import PathLike, quoted
from irtjax.io.long import ids_of
from irtjax.io.table import Table
from irtjax.io.tables import read_table

__all__ = ["read_answers"]

_OWN = ("answer", "key")


def read_answers(
    path: PathLike, *, model_column: str | None = None, item_column: str | None = None
) -> pd.DataFrame:
    """Read the answers of a CSV, Parquet or JSON Lines file, a row a model and item.

    Args:
        path: the file; columns besides model, item, `answer` and `key` are ignored.
        model_column: the column of the model; found by its usual names without.
        item_column: the column of the item, likewise.

    Returns:
        Columns `model_id`, `item_id`, `answer`, `key`: strings as written, in input order; an
        empty answer is missing.

    Raises:
        InputError: a missing column, an empty id or key, a pair twice, two keys of an item, a file
            that cannot be read.

    >>> import tempfile
    >>> from pathlib import Path
    >>> file = Path(tempfile.mkdtemp()) / "answers.csv"
    >>> _ = file.write_text("model,item,answer,key\\ngpt,007,B,A\\n")
    >>> read_answers(file)
      model_id item_id answer key
    0      gpt     007      B   A
    """
    overrides = {"model": model_column, "item": item_column}
    exact = frozenset([*(name for name in overrides.values() if name), *_OWN])
    table = read_table(Path(path), exact)
    roles = resolve_roles(table.names, path, overrides, ("model", "item"))
    for name in _OWN:
        if name not in table.names:
            raise InputError(
                f"{path} has no column {quoted(name)}; answers need model_id, item_id, answer, "
                f"key; columns: {listed(table.names)}"
            )
    coded = {role: ids_of(table, name, role) for role, name in roles.items()}
    coded["key"] = table.column("key").blank_as_missing()
    _refuse_no_key(table, coded["key"].codes, coded["item"])
    coded["key"] = coded["key"].as_text()
    coded["answer"] = table.column("answer").blank_as_missing().as_text()
    _refuse_pair_twice(table, coded["model"].codes, coded["item"].codes)
    _refuse_two_keys(table, coded["item"].codes, coded["key"].codes)
    columns = {}
    for name, role in (("model_id", "model"), ("item_id", "item"), ("answer", "answer")):
        texts = np.array([*coded[role].texts(), None], object)
        columns[name] = texts[coded[role].codes]
    columns["key"] = np.array(coded["key"].texts(), object)[coded["key"].codes]
    return pd.DataFrame(columns, dtype="str")


def _refuse_no_key(table: Table, key: np.ndarray, item: Coded) -> None:
    missing = np.flatnonzero(key < 0)
    if len(missing):
        row = int(missing[0])
        more = f", and {counted(len(missing) - 1, 'row')} more" if len(missing) > 1 else ""
        raise InputError(
            f"the key of item {quoted(item.texts()[item.codes[row]])} is missing "
            f"({table.locate(row)}{more}); give each row its item's right option in column 'key', "
            "or leave out the items whose key is not known"
        )


def _refuse_pair_twice(table: Table, model: np.ndarray, item: np.ndarray) -> None:
    pair = model.astype(np.int64) * (int(item.max()) + 1) + item
    row, earlier = _first_repeated(pair)
    if row >= 0:
        raise InputError(
            f"two answers of one model to one item ({table.locate(earlier)} and "
            f"{table.locate(row)}); keep one of them"
        )


def _refuse_two_keys(table: Table, item: np.ndarray, key: np.ndarray) -> None:
    first = np.full(int(item.max()) + 1, -1, np.int64)
    first[item[::-1]] = np.arange(len(item))[::-1]
    differs = np.flatnonzero(key != key[first[item]])
    if len(differs):
        row = int(differs[0])
        raise InputError(
            f"two keys of one item ({table.locate(int(first[item[row]]))} and "
            f"{table.locate(row)}); give each item one"
        )


def _first_repeated(values: np.ndarray) -> tuple[int, int]:
    """A row whose value stood before, and the row where; -1 where there is none."""
    order = np.argsort(values, kind="stable")
    same = np.flatnonzero(values[order][1:] == values[order][:-1])
    if not len(same):
        return -1, -1
    k = int(same[np.argmin(order[same + 1])])
    return int(order[k + 1]), int(order[k])

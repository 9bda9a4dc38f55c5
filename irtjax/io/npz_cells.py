"""The cells of a sparse matrix in a NumPy archive."""

import numpy as np
import pandas as pd
import pyarrow as pa

from irtjax.errors import InputError
from irtjax.io.archive import Archive
from irtjax.io.coded import Coded
from irtjax.io.files import Place, quoted
from irtjax.io.rows import Rows, coded_series

__all__ = ["CELL_ARRAYS", "rows_of_cells"]

CELL_ARRAYS = ("cell_model", "cell_item", "cell_response")


def rows_of_cells(archive: Archive) -> Rows:
    """One row a cell, and one without response for each model or item that has no cell.

    Raises:
        InputError: repeated ids, an index past the ids, sizes that differ, a value that is no
            response.
    """
    ids = {kind: archive.ids(kind, None) for kind in ("model", "item")}
    index = {kind: _indices(archive, kind, ids[kind]) for kind in ids}
    response = _numbers(archive, "cell_response", len(index["item"]))
    weight = None
    if archive.get("cell_weight"):
        weight = _numbers(archive, "cell_weight", len(response))
    # A model or item without cells gets an empty row beside the first of the other side.
    lonely = {k: np.setdiff1d(np.arange(len(ids[k])), index[k]).astype(np.int32) for k in ids}
    beside = {k: np.zeros(len(lonely[k]), np.int32) for k in ids}
    codes = {
        "model": np.concatenate([index["model"], lonely["model"], beside["item"]]),
        "item": np.concatenate([index["item"], beside["model"], lonely["item"]]),
    }
    n_empty = len(codes["item"]) - len(response)
    columns, owner = _columns(archive, ids, codes)
    rows = Rows(
        Coded(codes["model"], pa.array(ids["model"], pa.string())),
        Coded(codes["item"], pa.array(ids["item"], pa.string())),
        np.append(response, np.full(n_empty, np.nan)),
        None if weight is None else np.append(weight, np.ones(n_empty)),
        columns,
        lambda row: Place("cell", row + 1, str(archive.path)),
        owner,
    )
    bad = np.flatnonzero((rows.response < 0) | (rows.response > 1))
    if len(bad):
        first = int(bad[0])
        raise InputError(
            f"response {rows.response[first]:g} of {rows.explain(first)} is not in [0, 1]"
        )
    return rows


def _indices(archive: Archive, kind: str, ids: list[str]) -> np.ndarray:
    """The index of each cell into the ids of a side."""
    if len(set(ids)) < len(ids):
        repeated = pd.Series(ids)[pd.Series(ids).duplicated()].iloc[0]
        raise InputError(f"{kind} id {quoted(repeated)} stands twice in {archive.path}")
    index = _numbers(archive, f"cell_{kind}", None)
    if len(index) and (index.min() < 0 or index.max() >= len(ids)):
        raise InputError(
            f"'cell_{kind}' of {archive.path} points outside the {len(ids):,} {kind} ids"
        )
    return index.astype(np.int32)


def _numbers(archive: Archive, name: str, size: int | None) -> np.ndarray:
    array = archive.arrays[name]
    archive.used.add(name)
    if array.ndim != 1 or array.dtype.kind not in "biuf" or len(array) != (size or len(array)):
        raise InputError(
            f"{name!r} of {archive.path} is {array.dtype} of shape {array.shape}; it must be a "
            "number for each cell"
        )
    return array.astype(float)


def _columns(
    archive: Archive, ids: dict[str, list[str]], codes: dict[str, np.ndarray]
) -> tuple[dict[str, Coded], dict[str, str]]:
    columns: dict[str, Coded] = {}
    owner: dict[str, str] = {}
    for kind in ("item", "model"):
        table = archive.metadata(kind, len(ids[kind]))
        for name in table.columns:
            if name in columns:
                raise InputError(
                    f"{archive.path} has {name!r} for items and for models; rename one"
                )
            columns[name] = coded_series(table[name]).take(codes[kind])
            owner[name] = kind
    return columns, owner

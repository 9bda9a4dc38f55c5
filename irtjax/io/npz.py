"""Reader of NumPy files: `.npz` with a `responses` array, or a bare `.npy` matrix."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np

from irtjax.data.checks import MISSING
from irtjax.errors import InputError
from irtjax.io.archive import Archive, load_archive
from irtjax.io.columns import listed
from irtjax.io.files import Place, check_readable, one_line_errors, quoted
from irtjax.io.grid import transposed_note
from irtjax.io.npz_cells import CELL_ARRAYS, rows_of_cells
from irtjax.io.options import Options, Part
from irtjax.io.rows import Grid

__all__ = ["read_npz"]


def read_npz(path: Path, options: Options) -> Part:
    """Read a matrix of responses: -1 (or NaN) is missing here, as FORMATS says.

    Arrays of an `.npz`: `responses` (models x items); optionally `model_ids` or `models`,
    `item_ids` or `items`, `weight`, and for metadata `item_<column>` and `model_<column>`, one
    value an item or model. A column of whole numbers whose plural is an array of strings indexes
    it (`item_benchmark` and `benchmarks`). In place of `responses`, the cells of a sparse matrix:
    `cell_model`, `cell_item` (indices), `cell_response`, `cell_weight`, with both id arrays.
    Other arrays are not used, and named in the provenance.

    Raises:
        InputError: not a NumPy file or a damaged one, no `responses`, sizes that do not match, a
            value that is no response.
    """
    check_readable(path)
    choices: dict[str, Any] = {"items_in_rows": options.items_in_rows}
    with one_line_errors(path):
        archive = load_archive(path)
        if all(name in archive.arrays for name in CELL_ARRAYS):
            part = Part(rows_of_cells(archive), choices)
        else:
            grid = _grid(archive, options.items_in_rows)
            note = transposed_note(grid.matrix.shape, options.items_in_rows, path)
            part = Part(grid, choices, note)
    weights = [name for name in ("weight", "weights", "cell_weight") if name in archive.used]
    if weights:
        choices["weights"] = f"array {weights[0]!r}"
    if archive.unused():
        choices["arrays_not_kept"] = archive.unused()
    return part


def _grid(archive: Archive, items_in_rows: bool) -> Grid:
    path = archive.path
    found = archive.get("responses")
    if found is None:
        raise InputError(f"{path} has no array 'responses'; arrays: {listed([*archive.arrays])}")
    raw = found[1].T if items_in_rows else found[1]
    if raw.ndim != 2 or 0 in raw.shape:
        raise InputError(
            f"'responses' of {path} has shape {found[1].shape}; it must be models x items, and "
            "not empty"
        )
    n_models, n_items = raw.shape
    grid = Grid(
        archive.ids("model", n_models),
        archive.ids("item", n_items),
        raw,
        _weight(archive, raw, items_in_rows),
        archive.metadata("item", n_items),
        archive.metadata("model", n_models),
        lambda i, j: Place("row", (j if items_in_rows else i) + 1, str(path)),
    )
    return dataclasses.replace(grid, matrix=_responses(grid, path))


def _weight(archive: Archive, raw: np.ndarray, items_in_rows: bool) -> np.ndarray | None:
    found = archive.get("weight", "weights")
    if found is None:
        return None
    name, array = found
    if items_in_rows:
        array = array.T
    if array.shape != raw.shape or array.dtype.kind not in "fiu":
        raise InputError(
            f"{name!r} of {archive.path} is {array.dtype} of shape {found[1].shape}; it must be "
            "numbers in the shape of 'responses'"
        )
    return array.astype(np.float32)


def _responses(grid: Grid, path: Path) -> np.ndarray:
    """int8, or float32 with fractions, -1 where missing; other values are refused."""
    raw = grid.matrix
    kind = raw.dtype.kind
    if kind not in "biuf":
        raise InputError(f"'responses' of {path} holds {raw.dtype}, not numbers")
    if kind == "b":
        return np.ascontiguousarray(raw.astype(np.int8))
    if kind in "iu" and raw.min() >= MISSING and raw.max() <= 1:
        return np.ascontiguousarray(raw, np.int8)  # no copies of a large matrix
    is_missing = raw == MISSING
    if kind == "f":
        is_missing |= np.isnan(raw)
    bad = ~(is_missing | ((raw >= 0) & (raw <= 1)))
    if bad.any():
        first = int(np.flatnonzero(bad)[0])
        value = quoted(raw.flat[first])
        raise InputError(
            f"response {value} of {grid.explain(first)} is not in [0, 1]; "
            f"{int(np.count_nonzero(bad)):,} such values; missing is -1 or NaN in a NumPy file"
        )
    is_binary = bool(np.all(is_missing | (raw == 0) | (raw == 1)))
    filled = np.where(is_missing, MISSING, raw)
    return np.ascontiguousarray(filled, np.int8 if is_binary else np.float32)

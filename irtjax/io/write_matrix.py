"""`write_responses`: a matrix as long CSV or Parquet, or as NPZ, that reads back the same."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from irtjax.checks import check_path
from irtjax.data.responses import ResponseMatrix, check_matrix
from irtjax.errors import InputError
from irtjax.io.columns import CANONICAL
from irtjax.io.files import PathLike, plain_suffix, quoted
from irtjax.io.metadata import OF_ITEMS
from irtjax.io.write import atomic_path
from irtjax.io.write_long import write_csv, write_parquet

__all__ = ["write_responses"]

_RESERVED = (*CANONICAL.values(), "weight", "trial")


def write_responses(
    matrix: ResponseMatrix, path: PathLike, *, arrays: Mapping[str, np.ndarray] | None = None
) -> None:
    """Write a matrix so that `read_responses` gives it back.

    The suffix says how: `.csv` (also `.csv.gz`) and `.parquet` are long tables, `.npz` holds the
    matrix. Rows are sorted by item and then by model. To keep ids without responses and the
    order of models, the first item has a row for every model and each other item at least one,
    with an empty response where there is none. Text is all that a CSV file holds: metadata that
    are numbers come back as their text, and metadata of models that are equal for all models
    come back as metadata of items. Fractions need `fractional="likelihood"` to be read again.

    Args:
        matrix: the responses.
        path: the file.
        arrays: more arrays for an `.npz`, like a mask; readers of responses ignore them.

    Raises:
        InputError: an unknown suffix, a metadata column that the format cannot hold, a file
            that cannot be written.

    >>> import tempfile
    >>> from pathlib import Path
    >>> file = Path(tempfile.mkdtemp()) / "r.csv"
    >>> write_responses(ResponseMatrix.from_dense([[1, -1]]), file)
    >>> file.read_text()
    'model_id,item_id,response\\nmodel-0,item-0,1\\nmodel-0,item-1,\\n'
    """
    check_matrix(matrix, "write_responses")
    path = check_path("the file to write", path)
    _check(matrix, path)
    if plain_suffix(path) == ".npz":
        _write_npz(matrix, path, arrays or {})
        return
    if arrays:
        raise InputError(f"{path}: only an .npz file can hold more arrays than the responses")
    if plain_suffix(path) == ".csv":
        write_csv(matrix, path)
    elif plain_suffix(path) == ".parquet":
        write_parquet(matrix, path)
    else:
        raise InputError(f"{path}: responses are written as .csv, .csv.gz, .parquet or .npz")


def _check(matrix: ResponseMatrix, path: Path) -> None:
    if not matrix.n_models or not matrix.n_items:
        raise InputError(
            f"nothing to write to {path}: {matrix.n_models} models, {matrix.n_items} items"
        )
    names = [*map(str, matrix.item_metadata.columns), *map(str, matrix.model_metadata.columns)]
    for name in matrix.model_metadata.columns:
        if name in OF_ITEMS:
            raise InputError(f"{quoted(name)} describes items, not models; rename the column")
    for name in names:
        if name in _RESERVED or not name:
            raise InputError(
                f"metadata cannot be called {quoted(name)} in a file; rename the column"
            )
        if names.count(name) > 1:
            raise InputError(f"column {quoted(name)} stands twice in the metadata; rename one")
    _check_ids("model", matrix.model_ids)
    _check_ids("item", matrix.item_ids)


def _check_ids(kind: str, ids: np.ndarray) -> None:
    """Refuse ids that a file cannot give back."""
    for each in ids:
        if not each or "\x00" in each or any("\ud800" <= letter <= "\udfff" for letter in each):
            raise InputError(
                f"{kind} id {quoted(each)} cannot be written: it is empty, or has a zero byte or "
                "half a character; rename it"
            )


def _write_npz(matrix: ResponseMatrix, path: Path, more: Mapping[str, np.ndarray]) -> None:
    arrays: dict[str, Any] = {}
    if matrix.sparse is not None:
        arrays["cell_model"] = matrix.sparse.model_index
        arrays["cell_item"] = matrix.sparse.item_index
        arrays["cell_response"] = matrix.sparse.response
        if matrix.is_weighted:
            arrays["cell_weight"] = matrix.sparse.weight
    else:
        assert matrix.dense is not None
        arrays["responses"] = matrix.dense
        if matrix.dense_weight is not None:
            arrays["weight"] = matrix.dense_weight
    arrays["model_ids"] = np.array(list(matrix.model_ids), np.str_)
    arrays["item_ids"] = np.array(list(matrix.item_ids), np.str_)
    for kind, table in (("item", matrix.item_metadata), ("model", matrix.model_metadata)):
        for name in table.columns:
            arrays[f"{kind}_{name}"] = _plain_array(table[name])
    for name, array in more.items():
        if name in arrays:
            raise InputError(f"array {quoted(name)} is one of the responses' own; rename it")
        arrays[name] = array
    with atomic_path(path) as temporary, open(temporary, "wb") as stream:
        np.savez_compressed(stream, **arrays)


def _plain_array(column: pd.Series) -> np.ndarray:
    """A metadata column as an array that needs no pickle; a missing text is empty."""
    if pd.api.types.is_bool_dtype(column) or pd.api.types.is_numeric_dtype(column):
        if not column.isna().any():
            return column.to_numpy(column.dtype.type if hasattr(column.dtype, "na_value") else None)
        if not pd.api.types.is_bool_dtype(column):
            return column.to_numpy(float, na_value=np.nan)
    return np.array(["" if pd.isna(value) else str(value) for value in column], np.str_)

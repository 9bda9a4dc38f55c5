"""Numbers that describe items or models: what networks may learn from beside the ids."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from jaxtyping import Float

from irtjax.checks import counted
from irtjax.data.responses import ResponseMatrix
from irtjax.errors import InputError
from irtjax.fit.feature_lists import without_lists
from irtjax.fit.feature_range import far_note
from irtjax.fit.feature_values import array_values, check_finite, column_values
from irtjax.io.files import check_readable, one_line_errors
from irtjax.io.tables import read_table

__all__ = ["Features", "Side", "make_features", "new_features"]

Side = Literal["item", "model"]
_NAMED = 3
# Columns of numbers below this count as constant.
_LEAST = 1e-200


@dataclasses.dataclass(frozen=True, eq=False)
class Features:
    """Standardised features of one side, in the data's order.

    Attributes:
        names: of the columns.
        values: mean 0 and sd 1 over the rows with responses; constant columns are 0.
        mean: what was taken off each column.
        scale: what it was multiplied by then (0 where it is constant).
        low: smallest value of each column, over the rows with responses.
        high: the largest.
        far: what is to be said of rows without responses that lie far outside.
        unused: what is to be said of rows of items (models) that the data do not have.
    """

    names: tuple[str, ...]
    values: Float[np.ndarray, "rows features"]
    mean: Float[np.ndarray, " features"]
    scale: Float[np.ndarray, " features"]
    low: Float[np.ndarray, " features"]
    high: Float[np.ndarray, " features"]
    far: str | None
    unused: str | None = None

    def described(self) -> dict[str, Any]:
        """Names and how they are standardised, for the report of a fit."""
        arrays = {name: getattr(self, name).tolist() for name in ("mean", "scale", "low", "high")}
        return {"names": list(self.names), **arrays}


def make_features(data: ResponseMatrix, side: Side, given: Any) -> Features:
    """The features of a fit, from what a user gives.

    Args:
        data: the responses, whose items or models are described.
        side: `item` or `model`.
        given: names of numeric metadata columns (one name or several); a data frame or a CSV,
            Parquet or JSON Lines file with `item_id` (`model_id`) and numeric columns; a `.npy`
            file or an array with a row an item (model) in the data's order.

    Raises:
        InputError: no such column or file, ids without a row or with several, values that are no
            finite numbers or too large; one line names the first.
    """
    ids = data.item_ids if side == "item" else data.model_ids
    metadata = data.item_metadata if side == "item" else data.model_metadata
    if isinstance(given, str) and given in metadata:
        given = [given]
    unused = None
    if isinstance(given, pd.DataFrame):
        names, values, unused = _of_frame(given, ids, side, f"the {side} features")
    elif isinstance(given, str | Path):
        names, values, unused = _of_file(Path(given), ids, side, metadata)
    elif isinstance(given, Sequence):
        names, values = _of_columns(metadata, given, ids, side)
    else:
        names, values = _of_array(given, len(ids), side, f"the {side} features")
    check_finite(values, names, ids, side)
    is_seen = data.totals("items" if side == "item" else "models")[0] > 0
    seen = values[is_seen] if is_seen.any() else values
    mean, scale = _standard(seen)
    low, high = seen.min(axis=0), seen.max(axis=0)
    range_of = {"names": names, "low": low, "high": high, "scale": scale}
    far = far_note(values[~is_seen], range_of, side)
    return Features(names, (values - mean) * scale, mean, scale, low, high, far, unused)


def new_features(
    given: Any, side: Side, names: Sequence[str]
) -> tuple[np.ndarray, Float[np.ndarray, "rows features"]]:
    """Ids and features, not standardised, of items or models that were not in a fit.

    Args:
        given: a data frame or a CSV, Parquet or JSON Lines file with `item_id` (`model_id`) and the
            columns of the fit's features; others are ignored.
        side: `item` or `model`.
        names: of the fit's features.

    Raises:
        InputError: no such file or column, ids twice, values that are no finite numbers.
    """
    what = f"the {side} features"
    if isinstance(given, pd.DataFrame):
        table = given
    elif isinstance(given, str | Path):
        path = Path(given)
        what = f"{what} in {path}"
        table = _read_frame(path, side, what)
    else:
        raise InputError(
            f"{what} must be a data frame or a file with {side}_id, not {type(given).__name__}"
        )
    table = without_lists(table, f"{side}_id", what)
    missing = [name for name in (f"{side}_id", *names) if name not in table]
    if missing:
        raise InputError(f"{what} need a column {missing[0]!r}, as the fit had")
    ids = _unique_ids(table, side, what).to_numpy(object)
    values = np.stack([column_values(table[name], ids, side) for name in names], axis=1)
    check_finite(values, tuple(names), ids, side)
    return ids, values


def _of_columns(
    metadata: pd.DataFrame, given: Sequence[Any], ids: np.ndarray, side: Side
) -> tuple[Any, Any]:
    for name in given:
        if name not in metadata:
            have = ", ".join(map(str, metadata.columns)) or "none"
            raise InputError(f"{side} feature {name!r} is no {side} column (columns: {have})")
    if not given:
        raise InputError(f"name at least one column of {side} features")
    values = [column_values(metadata[name], ids, side) for name in given]
    return tuple(map(str, given)), np.stack(values, axis=1)


def _of_file(
    path: Path, ids: np.ndarray, side: Side, metadata: pd.DataFrame
) -> tuple[Any, Any, str | None]:
    if not path.is_file():
        have = ", ".join(map(str, metadata.columns)) or "none"
        article = "an" if side == "item" else "a"
        raise InputError(
            f"{side} features {str(path)!r} are neither {article} {side} column (columns: "
            f"{have}) nor a file"
        )
    what = f"the {side} features in {path}"
    if path.suffix == ".npy":
        check_readable(path)
        try:
            array = np.load(path, allow_pickle=False)
        except (ValueError, OSError, EOFError):
            raise InputError(f"{path} is no readable .npy file of numbers") from None
        return *_of_array(array, len(ids), side, what), None
    return _of_frame(_read_frame(path, side, what), ids, side, what)


def _read_frame(path: Path, side: Side, what: str) -> pd.DataFrame:
    """A table with ids; other columns may be text still."""
    check_readable(path)
    if path.suffix == ".parquet":
        # Embeddings: thousands of columns of numbers, which need not pass through text.
        with one_line_errors(path):
            return pd.read_parquet(path)
    table = read_table(path, frozenset([f"{side}_id"]))
    if f"{side}_id" not in table.names:
        raise InputError(f"{what} need a column '{side}_id' beside the features")
    columns = {
        name: np.array(table.column(name).texts(), object)[table.column(name).codes]
        for name in table.names
    }
    return pd.DataFrame(columns)


def _of_frame(
    table: pd.DataFrame, ids: np.ndarray, side: Side, what: str
) -> tuple[Any, Any, str | None]:
    key = f"{side}_id"
    if key not in table:
        raise InputError(f"{what} need a column {key!r} beside the features")
    table = without_lists(table, key, what)
    names = tuple(str(name) for name in table.columns if name != key)
    if not names:
        raise InputError(f"{what} have no column beside {key!r}")
    index = _unique_ids(table, side, what)
    rows = index.get_indexer(pd.Index(ids))
    if (rows < 0).any():
        missing = ids[rows < 0]
        named = ", ".join(repr(str(each)) for each in missing[:_NAMED])
        raise InputError(
            f"{what} have no row for {counted(len(missing), side)} of the responses (first: "
            f"{named}); add what is missing, or leave these responses out"
        )
    table = table.iloc[rows]
    columns = [table.iloc[:, k] for k, name in enumerate(table.columns) if name != key]
    values = np.stack([column_values(column, ids, side) for column in columns], axis=1)
    return names, values, _unused_note(index, ids, side, what)


def _unique_ids(table: pd.DataFrame, side: Side, what: str) -> pd.Index:
    index = pd.Index(table[f"{side}_id"].astype(str))
    if index.has_duplicates:
        raise InputError(f"{what} have several rows for {index[index.duplicated()][0]!r}")
    return index


def _of_array(given: Any, n_rows: int, side: Side, what: str) -> tuple[Any, Any]:
    values = array_values(given, n_rows, side, what)
    return tuple(f"feature{k + 1}" for k in range(values.shape[1])), values


def _unused_note(index: pd.Index, ids: np.ndarray, side: Side, what: str) -> str | None:
    """A sentence about rows of what has no response and is not known otherwise."""
    unused = index[~index.isin(ids)]
    if not len(unused):
        return None
    return (
        f"{what} have rows of {counted(len(unused), side)} that the responses do not have (first: "
        f"{str(unused[0])!r}): they are not used"
    )


def _standard(seen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean of each column, and 1 over its sd (0 of a constant one), over the rows seen."""
    mean = seen.mean(axis=0)
    # Squares of numbers in any units neither overflow nor vanish.
    largest = np.maximum(np.abs(seen - mean).max(axis=0), _LEAST)
    sd = largest * ((seen - mean) / largest).std(axis=0)
    varies = sd > 1e-12 * np.maximum(np.abs(seen).max(axis=0), _LEAST)
    return mean, varies / np.where(varies, sd, 1)

"""What a column of features holds: numbers, or the line that says why it is none."""

from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float

from irtjax.checks import counted, shown
from irtjax.errors import InputError
from irtjax.io.values import MISSING_TEXTS

__all__ = ["array_values", "check_finite", "column_values"]

# Larger numbers (a mark for what is missing, as a rule) leave float32 when networks multiply them.
_LARGEST = 1e30
_WORDS = {"true": 1.0, "false": 0.0}
_TEXT_REMEDY = "write it as numbers (a column of 0 and 1 for each kind, say), or leave it out"


def column_values(column: pd.Series, ids: np.ndarray, side: str) -> Float[np.ndarray, " rows"]:
    """A column of a table as float64: numbers, also written out; True is 1 and False 0.

    Args:
        column: with a value a row, NaN where there is none.
        ids: of the rows, for messages.
        side: `item` or `model`.

    Raises:
        InputError: text, dates or complex numbers.
    """
    what = f"{side} feature {str(column.name)!r}"
    if pd.api.types.is_datetime64_any_dtype(column) or column.dtype.kind == "m":
        raise InputError(f"{what} holds dates or times; write them as numbers, or leave it out")
    found = pd.to_numeric(column, errors="coerce")
    if found.dtype.kind == "c" or any(isinstance(value, complex) for value in _objects(column)):
        raise InputError(f"{what} holds complex numbers; give their parts as two columns")
    values = found.to_numpy(np.float64, na_value=np.nan)
    if np.isnan(values).any() and any(isinstance(value, str) for value in _objects(column)):
        return _of_text(column, values, ids, what)
    return values


def _objects(column: pd.Series) -> pd.Series:
    """The values of a column that may hold anything; none of one of numbers (embeddings: many)."""
    return column.iloc[:0] if pd.api.types.is_numeric_dtype(column) else column


def _of_text(
    column: pd.Series, values: np.ndarray, ids: np.ndarray, what: str
) -> Float[np.ndarray, " rows"]:
    """True and False written out, or `values`; an empty text and its like are no value."""
    texts = column.map(lambda value: value.strip().lower() if isinstance(value, str) else value)
    is_given = (texts.notna() & ~texts.isin(MISSING_TEXTS)).to_numpy()
    words = texts.map(_WORDS).to_numpy(np.float64)
    if not np.isnan(words[is_given]).any():
        return words
    bad = np.flatnonzero(np.isnan(values) & is_given)
    if not len(bad):
        return values
    first = f"{shown(column.iloc[bad[0]])} of {shown(str(ids[bad[0]]))}"
    if len(bad) == np.count_nonzero(is_given):
        raise InputError(f"{what} is text ({first}); {_TEXT_REMEDY}")
    raise InputError(
        f"{what} is text in {counted(len(bad), 'row')} ({first}); write numbers there, or leave "
        "the column out"
    )


def array_values(
    given: Any, n_rows: int, side: str, what: str
) -> Float[np.ndarray, "rows features"]:
    """An array of features as float64.

    Raises:
        InputError: other things than real numbers, or another shape.
    """
    array = np.asarray(given)
    if array.dtype.kind == "c":
        raise InputError(f"{what} are complex numbers; give their parts as features of their own")
    try:
        values = array.astype(np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{what} are not numbers") from None
    if values.ndim == 1:
        values = values[:, None]
    if values.ndim != 2 or len(values) != n_rows or values.shape[1] == 0:
        raise InputError(f"{what} have shape {values.shape}, for {n_rows:,} {side}s x features")
    return values


def check_finite(values: np.ndarray, names: tuple[str, ...], ids: np.ndarray, side: str) -> None:
    """Refuse numbers that are missing, infinite or too large.

    Raises:
        InputError: one line names the first.
    """
    bad = np.argwhere(~np.isfinite(values))
    if len(bad):
        row, column = bad[0]
        raise InputError(
            f"{side} feature {names[column]!r} of {str(ids[row])!r} is no finite number; "
            f"{counted(len(bad), 'such value')}: fill them in, or leave the column out"
        )
    large = np.argwhere(np.abs(values) > _LARGEST)
    if len(large):
        row, column = large[0]
        raise InputError(
            f"{side} feature {names[column]!r} of {str(ids[row])!r} is {values[row, column]:.6g}; "
            f"{_LARGEST:.0e} is the most: write it in other units, or leave the column out"
        )

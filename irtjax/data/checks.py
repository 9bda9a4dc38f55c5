"""What a response matrix refuses: ids, values, weights and metadata that cannot be meant."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from irtjax.checks import check_whole
from irtjax.errors import InputError

__all__ = [
    "MISSING",
    "check_seed",
    "check_weight",
    "checked_ids",
    "checked_metadata",
    "checked_values",
    "value_error",
]

MISSING = -1
_SEEDS = 2**32


def check_seed(seed: Any) -> None:
    """Refuse seeds that NumPy or JAX cannot take.

    Raises:
        InputError: not a whole number from 0 to 2^32 - 1.
    """
    check_whole("the seed", seed, 0, _SEEDS - 1)


def checked_ids(ids: Sequence[str] | None, size: int, kind: str) -> np.ndarray:
    """Ids as an object array of strings, generated where none are given.

    Raises:
        InputError: the wrong number of ids, or one twice.
    """
    if ids is None:
        ids = [f"{kind}-{k}" for k in range(size)]
    if len(ids) != size:
        raise InputError(f"{len(ids)} {kind} ids for {size} {kind}s")
    checked = np.empty(size, object)
    checked[:] = [str(each) for each in ids]
    if len(set(checked)) != size:
        repeated = pd.Series(checked)[pd.Series(checked).duplicated()].iloc[0]
        raise InputError(f"{kind} id {repeated!r} stands twice; ids must be unique")
    return checked


def checked_values(matrix: np.ndarray, models: np.ndarray, items: np.ndarray) -> np.ndarray:
    """Values as int8 (0, 1) or float32 (fractions), -1 where missing.

    Raises:
        InputError: no numbers, or one outside [0, 1]; names the model and the item.
    """
    if matrix.dtype == bool:
        return matrix.astype(np.int8)
    if matrix.dtype == object:
        try:
            matrix = matrix.astype(np.float32)
        except (TypeError, ValueError) as error:
            raise InputError(f"responses must be numbers: {error}") from None
    if not np.issubdtype(matrix.dtype, np.number) or np.iscomplexobj(matrix):
        raise InputError(f"responses must be numbers, not {matrix.dtype}")
    is_missing = (matrix == MISSING) | (matrix != matrix)
    bad = ~is_missing & ~((matrix >= 0) & (matrix <= 1))
    if bad.any():
        i, j = (int(k[0]) for k in np.nonzero(bad))
        raise value_error(matrix[i, j], models[i], items[j])
    if np.issubdtype(matrix.dtype, np.floating):
        is_binary = bool(np.all(is_missing | (matrix == 0) | (matrix == 1)))
        return np.where(is_missing, MISSING, matrix).astype(np.int8 if is_binary else np.float32)
    return matrix.astype(np.int8)


def value_error(value: Any, model: str, item: str) -> InputError:
    """The error for a value outside [0, 1], naming the model and the item."""
    return InputError(
        f"response {value} of model {model!r} to item {item!r} is not in [0, 1]; "
        "missing is -1 or NaN in an array, empty in a file"
    )


def check_weight(weight: np.ndarray) -> None:
    """Refuse weights of observed cells that are not positive and finite."""
    if not np.all(np.isfinite(weight) & (weight > 0)):
        bad = weight[~(np.isfinite(weight) & (weight > 0))][0]
        raise InputError(f"weights must be positive and finite; found {bad}")


def checked_metadata(table: pd.DataFrame | None, size: int, kind: str) -> pd.DataFrame:
    """Metadata with one row a model or item, and a plain index; empty where none are given."""
    if table is None:
        return pd.DataFrame(index=pd.RangeIndex(size))
    if len(table) != size:
        raise InputError(f"{kind} metadata has {len(table)} rows for {size} {kind}s")
    return table.reset_index(drop=True)

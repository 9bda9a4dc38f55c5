"""Groups of items and populations of models, from a column of their metadata."""

import numpy as np
import pandas as pd
from jaxtyping import Int

from irtjax.errors import InputError

__all__ = ["group_codes"]

_AN = {"item": "an", "model": "a"}


def group_codes(
    column: str, table: pd.DataFrame, other: pd.DataFrame, ids: np.ndarray, kind: str
) -> tuple[Int[np.ndarray, " rows"], list[str]]:
    """The group of each item (model): codes and names in order of first appearance.

    Args:
        column: of the metadata.
        table: metadata of the items (models), a row each.
        other: metadata of the models (items), to tell a column that is there.
        ids: of the items (models).
        kind: `item` or `model`.

    Raises:
        InputError: no such column, or an item (model) without a value.
    """
    if column not in table and column in other:
        other_kind = "models" if kind == "item" else "items"
        raise InputError(
            f"{column!r} describes {other_kind}; {kind}s are grouped by {_AN[kind]} {kind} column"
        )
    if column not in table:
        have = ", ".join(map(str, table.columns)) or "none"
        raise InputError(f"no {kind} metadata column {column!r} to group by; columns: {have}")
    values = table[column]
    if values.isna().any():
        first = ids[int(np.flatnonzero(values.isna().to_numpy())[0])]
        raise InputError(
            f"{kind} {first!r} has no value in column {column!r}; give each {kind} a group"
        )
    codes, names = pd.factorize(values.astype(str))
    return codes.astype(np.int32), [str(name) for name in names]

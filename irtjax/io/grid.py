"""Which way a matrix lies: models in rows, unless the user says items."""

import dataclasses
from pathlib import Path

import numpy as np

from irtjax.io.rows import Grid

__all__ = ["transposed", "transposed_note"]

_TRANSPOSED = 10  # models per item from which a matrix looks transposed


def transposed(grid: Grid) -> Grid:
    """The same responses with rows and columns exchanged."""
    return dataclasses.replace(
        grid,
        model_ids=grid.item_ids,
        item_ids=grid.model_ids,
        matrix=np.ascontiguousarray(grid.matrix.T),
        weight=None if grid.weight is None else np.ascontiguousarray(grid.weight.T),
        item_metadata=grid.model_metadata,
        model_metadata=grid.item_metadata,
        place=lambda i, j: grid.place(j, i),
    )


def transposed_note(shape: tuple[int, ...], items_in_rows: bool, path: Path) -> tuple[str, ...]:
    """A warning where a models x items shape suggests that it is the other way round."""
    n_models, n_items = shape
    if n_models < _TRANSPOSED * n_items:
        return ()
    remedy = "drop --items-in-rows" if items_in_rows else "pass --items-in-rows"
    return (
        f"{path} has {n_models:,} models and {n_items:,} items, so it looks transposed; "
        f"{remedy} if it is",
    )

"""`read_pairs`: the model-item pairs to predict."""

from pathlib import Path

import numpy as np
import pandas as pd

from irtjax.io.columns import resolve_roles
from irtjax.io.files import PathLike
from irtjax.io.long import ids_of
from irtjax.io.tables import read_table

__all__ = ["read_pairs"]


def read_pairs(
    path: PathLike, *, model_column: str | None = None, item_column: str | None = None
) -> pd.DataFrame:
    """Read the pairs of a CSV, Parquet or JSON Lines file, repeated ones included.

    Args:
        path: the file; columns besides the two are ignored.
        model_column: the column of the model; found by its usual names without.
        item_column: the column of the item, likewise.

    Returns:
        Columns `model_id` and `item_id`, strings, in input order.

    Raises:
        InputError: a missing column, two candidates, an empty id, a file that cannot be read.

    >>> import tempfile
    >>> from pathlib import Path
    >>> file = Path(tempfile.mkdtemp()) / "pairs.csv"
    >>> _ = file.write_text("model,item\\ngpt,007\\n")
    >>> read_pairs(file)
      model_id item_id
    0      gpt     007
    """
    overrides = {"model": model_column, "item": item_column}
    table = read_table(Path(path), frozenset(name for name in overrides.values() if name))
    roles = resolve_roles(table.names, path, overrides, ("model", "item"))
    columns = {}
    for role, name in roles.items():
        ids = ids_of(table, name, role)
        columns[f"{role}_id"] = np.array(ids.texts(), object)[ids.codes]
    return pd.DataFrame(columns, dtype="str")

"""`read_loadings`: which items load on which dims, a row an item and a column a dim."""

import math
from pathlib import Path

import numpy as np
import pandas as pd

from irtjax.errors import InputError
from irtjax.io.coded import Coded
from irtjax.io.files import PathLike
from irtjax.io.long import ids_of
from irtjax.io.tables import read_table
from irtjax.io.values import numbers_of

__all__ = ["read_loadings"]

_ITEM = "item_id"


def read_loadings(path: PathLike) -> pd.DataFrame:
    """Read the loadings of a CSV, Parquet or JSON Lines file; what they may be is not checked.

    Returns:
        `item_id`, strings as written, and the other columns: numbers from 0 to 1, NaN where empty,
        and text where a value is neither.

    Raises:
        InputError: no column `item_id`, an empty id, a file that cannot be read.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "loadings.csv"
    >>> _ = file.write_text("item_id,verbal,number\\n007,1,0\\nNA,0,1\\n")
    >>> read_loadings(file)
      item_id verbal number
    0     007    1.0    0.0
    1      NA    0.0    1.0
    """
    table = read_table(Path(path), frozenset([_ITEM]))
    if _ITEM not in table.names:
        raise InputError(f"{path} needs a column {_ITEM!r} beside a column of 0 and 1 a dim")
    ids = ids_of(table, _ITEM, "item")
    values = {name: _values(table.column(name)) for name in table.names if name != _ITEM}
    return pd.DataFrame({_ITEM: np.array(ids.texts(), object)[ids.codes]} | values)


def _values(column: Coded) -> np.ndarray:
    pairs = zip(numbers_of(column.values).tolist(), column.texts(), strict=True)
    values = [text if math.isinf(number) else number for number, text in pairs]
    return np.array([*values, math.nan], object)[column.codes]

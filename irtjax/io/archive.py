"""The arrays of a NumPy archive: ids and metadata of either side, and which ones were used."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from irtjax.errors import InputError

__all__ = ["Archive", "load_archive"]

_MAGIC = (b"PK\x03\x04", b"PK\x05\x06", b"\x93NUMPY")
_IDS = {"model": ("model_ids", "models"), "item": ("item_ids", "items")}


def load_archive(path: Path) -> "Archive":
    """Load every array of an `.npz`, or the one of an `.npy` as `responses`; no pickles."""
    with open(path, "rb") as stream:
        head = stream.read(6)
        if not head.startswith(_MAGIC):
            raise InputError(f"{path} is not a NumPy file (.npy or .npz)")
        stream.seek(0)
        # From an open stream: NumPy leaves its own open when the archive is damaged.
        loaded: Any = np.load(stream, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return Archive(path, {"responses": loaded})
        arrays = {name: loaded[name] for name in loaded.files}  # numbers and strings only
    return Archive(path, {k: array for k, array in arrays.items() if isinstance(array, np.ndarray)})


@dataclasses.dataclass
class Archive:
    """Arrays by name.

    Attributes:
        path: the file.
        arrays: everything in it.
        used: the names that were asked for; the others go to the provenance.
    """

    path: Path
    arrays: dict[str, np.ndarray]
    used: set[str] = dataclasses.field(default_factory=set)

    def get(self, *names: str) -> tuple[str, np.ndarray] | None:
        """The first of some arrays that is there, with its name."""
        for name in names:
            if name in self.arrays:
                self.used.add(name)
                return name, self.arrays[name]
        return None

    def unused(self) -> list[str]:
        """The arrays that nothing asked for."""
        return [name for name in self.arrays if name not in self.used]

    def ids(self, kind: str, size: int | None) -> list[str]:
        """Ids as strings; `model-0`, `model-1`, ... when the file has none.

        Args:
            kind: `model` or `item`.
            size: how many there must be; None when the ids are what says it.
        """
        found = self.get(*_IDS[kind])
        if found is None:
            if size is None:
                raise InputError(f"{self.path} has cells but no array '{kind}_ids'")
            return [f"{kind}-{k}" for k in range(size)]
        name, array = found
        if size is not None and array.shape != (size,):
            raise InputError(
                f"{name!r} of {self.path} has shape {array.shape} for {size:,} {kind}s; if the "
                "rows of 'responses' are items, pass --items-in-rows"
            )
        ids = _strings(array.ravel())
        if "" in ids:
            raise InputError(f"{name!r} of {self.path} has an empty id at index {ids.index('')}")
        return ids

    def metadata(self, kind: str, size: int) -> pd.DataFrame:
        """The arrays `<kind>_<column>` as columns, `benchmark` first."""
        columns: dict[str, pd.Series] = {}
        for name, array in self.arrays.items():
            column = name.removeprefix(f"{kind}_")
            if column == name or name in _IDS[kind] or array.ndim != 1:
                continue
            if len(array) != size:
                raise InputError(
                    f"{name!r} of {self.path} has {len(array):,} values for {size:,} {kind}s"
                )
            self.used.add(name)
            columns[column] = self._series(column, array)
        if "benchmark" in columns:
            columns = {"benchmark": columns.pop("benchmark"), **columns}
        return pd.DataFrame(columns, index=pd.RangeIndex(size))

    def _series(self, column: str, array: np.ndarray) -> pd.Series:
        if array.dtype.kind in "US":
            strings = pd.Series(_strings(array), dtype="str")
            return strings.where(strings != "")
        names = self.arrays.get(f"{column}s")
        if array.dtype.kind in "iu" and names is not None and names.dtype.kind in "US":
            self.used.add(f"{column}s")
            if len(array) and int(array.max()) >= len(names):
                raise InputError(f"{column!r} of {self.path} points past the end of '{column}s'")
            strings = pd.Series(_strings(names), dtype="str").take(np.maximum(array, 0))
            return strings.reset_index(drop=True).where(array >= 0)
        return pd.Series(array)


def _strings(array: np.ndarray) -> list[str]:
    return [v.decode("utf-8") if isinstance(v, bytes) else str(v) for v in array.tolist()]

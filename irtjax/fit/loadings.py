"""Which items may load on which dims: confirmatory and bifactor models."""

import dataclasses
import hashlib
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Bool, Int

from irtjax.checks import counted, shown
from irtjax.data.responses import ResponseMatrix
from irtjax.errors import InputError
from irtjax.io.loadings import read_loadings
from irtjax.model.spec import ModelSpec

__all__ = ["Loadings", "make_loadings", "spec_with"]

_GENERAL = "general"
# As many items an error names.
_NAMED = 3


@dataclasses.dataclass(frozen=True, eq=False)
class Loadings:
    """A loading mask.

    Attributes:
        names: of the dims; `general` first where there is a general factor.
        mask: whether an item may have a slope on a dim.
        has_general: whether the first dim is a general factor, uncorrelated with the others.
    """

    names: tuple[str, ...]
    mask: Bool[np.ndarray, "items dims"]
    has_general: bool = False

    def patterns(self) -> tuple[Int[np.ndarray, " items"], Bool[np.ndarray, "patterns dims"]]:
        """Code of each item's row of the mask, and the different rows."""
        rows, codes = np.unique(self.mask, axis=0, return_inverse=True)
        return codes.ravel().astype(np.int32), rows

    def digest(self) -> str:
        """A short hash of everything: what a checkpoint must agree with."""
        text = "\x00".join((*self.names, str(self.has_general)))
        return hashlib.sha256(text.encode() + self.mask.tobytes()).hexdigest()[:16]


def make_loadings(
    data: ResponseMatrix, given: str | Path | pd.DataFrame | Any, *, has_general: bool = False
) -> Loadings:
    """The mask of a fit, from what a user gives.

    Args:
        data: the responses, whose items the mask is for.
        given: an item column (one dim a value: the items of each benchmark load on a factor of
            their own); a CSV file or data frame with `item_id` and a column of 0 and 1 a dim; or
            an items x dims array.
        has_general: put a general factor before them, on which every item loads (bifactor).

    Raises:
        InputError: no such column or file, items without a row or with several, rows for items
            that are not in the data, values other than 0 and 1, an item without loadings, fewer
            than two items on a dim, two dims with the same items or name.
    """
    if isinstance(given, pd.DataFrame):
        names, mask = _from_frame(data, given, "the loadings")
    elif not isinstance(given, str | Path):
        mask = _as_array(given)
        if mask.ndim != 2 or len(mask) != data.n_items:
            n_items = counted(data.n_items, "item")
            raise InputError(f"loadings have shape {mask.shape}, for {n_items} x dims")
        names = tuple(f"dim{k + 1}" for k in range(mask.shape[1]))
        mask = _as_mask(mask, names, data.item_ids)
    elif str(given) in data.item_metadata:
        codes, groups = data.groups(str(given))
        names, mask = tuple(groups), codes[:, None] == np.arange(len(groups))
    else:
        names, mask = _from_frame(data, _read(data, Path(given)), f"the loadings in {given}")
    if has_general:
        names = (_GENERAL, *names)
        mask = np.concatenate([np.ones((len(mask), 1), bool), mask], axis=1)
    _check(data, names, mask)
    return Loadings(names, mask, has_general)


def spec_with(spec: ModelSpec, loadings: Loadings) -> ModelSpec:
    """The spec with the mask's number of dims.

    Raises:
        InputError: the spec asks for another number, or for a 1PL with a general factor: with one
            common slope a dim all items of a dim see the same sum of the two.
    """
    if spec.has_common_slope and loadings.has_general:
        raise InputError(
            f"{spec.family} with a general factor is not identified: with one common slope a dim "
            "only its sum with each other dim shows; use family 2pl, or drop general"
        )
    dims = loadings.mask.shape[1]
    if spec.dims not in (1, dims):
        raise InputError(f"the loadings have {dims} dims, the spec {spec.dims}; leave dims out")
    return ModelSpec(spec.family, dims)


def _read(data: ResponseMatrix, path: Path) -> pd.DataFrame:
    if not path.is_file():
        have = ", ".join(map(str, data.item_metadata.columns)) or "none"
        raise InputError(
            f"loadings {str(path)!r} are neither an item column (columns: {have}) nor a file"
        )
    return read_loadings(path)


def _from_frame(
    data: ResponseMatrix, table: pd.DataFrame, what: str
) -> tuple[tuple[str, ...], np.ndarray]:
    if "item_id" not in table:
        raise InputError(f"{what} need a column 'item_id' beside a column of 0 and 1 a dim")
    position = _rows_of_items(data, table["item_id"].astype(str).to_numpy(), what)
    names = tuple(str(name) for name in table.columns if name != "item_id")
    if not names:
        raise InputError(f"{what} have no dims; add a column of 0 and 1 for each")
    values = table.drop(columns="item_id").to_numpy()[position]
    return names, _as_mask(values, names, data.item_ids)


def _rows_of_items(data: ResponseMatrix, ids: np.ndarray, what: str) -> Int[np.ndarray, " items"]:
    """The row of each item of the data; every item must have one, and every row an item."""
    rows, items = pd.Index(ids), pd.Index(data.item_ids.astype(str))
    if rows.has_duplicates:
        repeated = _counted(rows[rows.duplicated()].unique().to_numpy())
        raise InputError(f"{what} have several rows for {repeated}; give each item one row")
    position = rows.get_indexer(items)
    missing, unknown = items[position < 0].to_numpy(), ids[~rows.isin(items)]
    wrong = [f"no row for {_counted(missing)}"] if len(missing) else []
    wrong += [f"rows for {_counted(unknown)} that the data do not have"] if len(unknown) else []
    if wrong:
        raise InputError(f"{what} have {' and '.join(wrong)}; give each item of the data one row")
    return position


def _counted(ids: np.ndarray) -> str:
    """How many items, and the first of them by name."""
    first = ", ".join(repr(str(each)) for each in ids[:_NAMED])
    if len(ids) > _NAMED:
        first = f"first: {first}"
    return f"{counted(len(ids), 'item')} ({first})"


def _as_array(given: Any) -> np.ndarray:
    try:
        return np.asarray(given)
    except ValueError:
        raise InputError("loadings must have a 0 or 1 for each dim in every item's row") from None


def _as_mask(values: np.ndarray, names: tuple[str, ...], ids: np.ndarray) -> np.ndarray:
    is_known = (values == 0) | (values == 1)
    if not np.all(is_known):
        j, k = np.argwhere(~is_known)[0]
        raise InputError(
            f"loadings are 0 or 1; item {ids[j]!r} has {shown(values[j, k])} in {names[k]!r}"
        )
    return np.asarray(values == 1)


def _check(data: ResponseMatrix, names: tuple[str, ...], mask: np.ndarray) -> None:
    count = mask.sum(axis=0)
    if (count < 2).any():
        k = int(np.argmin(count))
        raise InputError(
            f"dim {names[k]!r} has {counted(count[k], 'item')}; a factor needs at least 2 that "
            "load on it"
        )
    if not mask.any(axis=1).all():
        item = data.item_ids[int(np.flatnonzero(~mask.any(axis=1))[0])]
        raise InputError(f"item {item!r} loads on no dim; let it load on one")
    for k, l in itertools.combinations(range(len(names)), 2):
        if names[k] == names[l]:
            raise InputError(f"two dims are named {names[k]!r}; rename one")
        if np.array_equal(mask[:, k], mask[:, l]):
            raise InputError(
                f"dims {names[k]!r} and {names[l]!r} have the same items: nothing tells them "
                "apart; drop one of them"
            )

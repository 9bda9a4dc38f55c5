"""Responses that arrived later, beside those that were there."""

import dataclasses
import warnings

import numpy as np
import pandas as pd

from irtjax.data.cells import Cells
from irtjax.data.responses import Provenance, ResponseMatrix
from irtjax.errors import InputError, IrtjaxWarning

__all__ = ["cells_not_in", "merged_responses", "with_cells"]


def merged_responses(
    old: ResponseMatrix, new: ResponseMatrix, *, replace: bool = False
) -> ResponseMatrix:
    """Both as one matrix: models and items of the old one first, in its order.

    A cell that both have with the same response and weight counts once. Metadata are those of the
    old matrix where it has the model or item and a value in the column; a warning says where the
    new one's differ.

    Args:
        old: responses that were there.
        new: responses that arrived.
        replace: where both have a cell with different responses, take the new one.

    Raises:
        InputError: a cell with different responses, without `replace`.
    """
    model_ids, of_models = _union(old.model_ids, new.model_ids)
    item_ids, of_items = _union(old.item_ids, new.item_ids)
    before, found = old.cells(), new.cells()
    arrived = Cells(
        of_models[found.model_index], of_items[found.item_index], found.response, found.weight
    )
    n_models = len(model_ids)
    keys, places = _keys(before, n_models), _keys(arrived, n_models)
    _, first, second = np.intersect1d(keys, places, assume_unique=True, return_indices=True)
    differs = (before.response[first] != arrived.response[second]) | (
        before.weight[first] != arrived.weight[second]
    )
    if differs.any() and not replace:
        raise InputError(_conflict(before, arrived, first, second, differs, model_ids, item_ids))
    gone = first if replace else np.zeros(0, int)
    repeated = np.zeros(0, int) if replace else second
    before = before.taken(np.delete(np.arange(len(before)), gone))
    arrived = arrived.taken(np.delete(np.arange(len(arrived)), repeated))
    joined = [
        np.concatenate([getattr(before, name), getattr(arrived, name)])
        for name in ("model_index", "item_index", "response", "weight")
    ]
    return ResponseMatrix.from_cells(
        *joined[:3],
        model_ids=list(model_ids),
        item_ids=list(item_ids),
        weight=joined[3],
        item_metadata=_metadata(
            old.item_metadata, new.item_metadata, old.item_ids, new.item_ids, item_ids, "item"
        ),
        model_metadata=_metadata(
            old.model_metadata, new.model_metadata, old.model_ids, new.model_ids, model_ids, "model"
        ),
        provenance=Provenance(
            old.provenance.files + new.provenance.files,
            new.provenance.choices,
            tuple(dict.fromkeys(old.provenance.warnings + new.provenance.warnings)),
        ),
    )


def cells_not_in(data: ResponseMatrix, cells: Cells) -> ResponseMatrix:
    """The matrix without some cells, which are given by its own indices."""
    own = data.cells()
    is_kept = ~np.isin(_keys(own, data.n_models), _keys(cells, data.n_models))
    if is_kept.all():
        return data
    return _of_cells(data, own.taken(is_kept))


def with_cells(data: ResponseMatrix, cells: Cells) -> ResponseMatrix:
    """The matrix and some cells more, given by its own indices; of a cell in both its own stays."""
    own = data.cells()
    new = cells.taken(~np.isin(_keys(cells, data.n_models), _keys(own, data.n_models)))
    if not len(new):
        return data
    fields = [field.name for field in dataclasses.fields(Cells)]
    joined = (np.concatenate([getattr(own, name), getattr(new, name)]) for name in fields)
    return _of_cells(data, Cells(*joined))


def _of_cells(data: ResponseMatrix, cells: Cells) -> ResponseMatrix:
    """The same models and items with other responses."""
    return ResponseMatrix.from_cells(
        cells.model_index,
        cells.item_index,
        cells.response,
        model_ids=list(data.model_ids),
        item_ids=list(data.item_ids),
        weight=cells.weight,
        item_metadata=data.item_metadata,
        model_metadata=data.model_metadata,
        provenance=data.provenance,
    )


def _union(old: np.ndarray, new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Old ids and then those that are new, and where each new one stands."""
    is_new = pd.Index(old).get_indexer(new) < 0
    ids = np.concatenate([old, new[is_new]])
    return ids, pd.Index(ids).get_indexer(new).astype(np.int32)


def _keys(cells: Cells, n_models: int) -> np.ndarray:
    return cells.item_index.astype(np.int64) * n_models + cells.model_index


def _conflict(
    before: Cells,
    arrived: Cells,
    first: np.ndarray,
    second: np.ndarray,
    differs: np.ndarray,
    model_ids: np.ndarray,
    item_ids: np.ndarray,
) -> str:
    at = int(np.flatnonzero(differs)[0])
    one, other = int(first[at]), int(second[at])
    count = int(np.count_nonzero(differs))
    more = f"; {count:,} cells differ" if count > 1 else ""
    return (
        f"item {item_ids[before.item_index[one]]!r} has the response {before.response[one]:g} of "
        f"model {model_ids[before.model_index[one]]!r} in the run and "
        f"{arrived.response[other]:g} in the new data{more}; pass --replace to take the new ones"
    )


def _metadata(
    old: pd.DataFrame,
    new: pd.DataFrame,
    old_ids: np.ndarray,
    new_ids: np.ndarray,
    ids: np.ndarray,
    kind: str,
) -> pd.DataFrame:
    """Columns of both, a row an id; a warning names the columns in which they differ."""
    one, other = old.set_axis(old_ids, axis=0), new.set_axis(new_ids, axis=0)
    columns, differing = {}, []
    for name in dict.fromkeys([*old.columns, *new.columns]):
        parts = [table[name].reindex(ids).astype(object) for table in (one, other) if name in table]
        values = parts[0]
        for part in parts[1:]:
            differs = values.notna() & part.notna() & (values != part)
            if differs.any():
                differing.append(_difference(str(name), values[differs], part[differs]))
            values = values.where(values.notna(), part)
        columns[name] = values.infer_objects().to_numpy()
    if differing:
        warnings.warn(
            f"the new data have other {kind} metadata than the run, whose are kept: "
            f"{'; '.join(differing)}",
            IrtjaxWarning,
            stacklevel=4,
        )
    return pd.DataFrame(columns, index=pd.RangeIndex(len(ids)))


def _difference(name: str, kept: pd.Series, given: pd.Series) -> str:
    more = f" and {len(kept) - 1:,} more" if len(kept) > 1 else ""
    return f"{name} of {str(kept.index[0])!r} is {kept.iloc[0]!r}, not {given.iloc[0]!r}{more}"

"""From rows or a matrix to the `ResponseMatrix`: fractions, duplicates, metadata."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from irtjax.data.responses import Provenance, ResponseMatrix
from irtjax.errors import InputError
from irtjax.io.files import joined_places, quoted
from irtjax.io.metadata import split_metadata
from irtjax.io.rows import Grid, Rows, concat_rows, rows_of_grid
from irtjax.io.values import FractionalPolicy, apply_fractional

__all__ = ["DUPLICATES", "combine"]

DUPLICATES = ("error", "first", "last", "mean", "any")


def combine(
    parts: Sequence[Rows | Grid], *, duplicates: str, fractional: FractionalPolicy
) -> ResponseMatrix:
    """Put what the readers found into one matrix; choices and notes go to its provenance.

    Args:
        parts: one a file, in input order.
        duplicates: `error`, `first`, `last`, `mean` (k-of-n with weight n) or `any`.
        fractional: what to do with fractions.

    Raises:
        InputError: a fraction or a duplicate that the policies do not allow.
    """
    if len(parts) == 1 and isinstance(parts[0], Grid) and _has_unique_ids(parts[0]):
        return _from_grid(parts[0], fractional)
    rows = [rows_of_grid(part) if isinstance(part, Grid) else part for part in parts]
    return _from_rows(concat_rows(rows), duplicates, fractional)


def _has_unique_ids(grid: Grid) -> bool:
    return all(len(set(ids)) == len(ids) for ids in (grid.model_ids, grid.item_ids))


def _from_grid(grid: Grid, fractional: FractionalPolicy) -> ResponseMatrix:
    matrix, n_fractions = apply_fractional(grid.matrix, grid.weight, fractional, grid.explain)
    return ResponseMatrix.from_dense(
        matrix,
        model_ids=grid.model_ids,
        item_ids=grid.item_ids,
        weight=grid.weight,
        item_metadata=grid.item_metadata,
        model_metadata=grid.model_metadata,
        provenance=Provenance(choices=_fractional_choice(fractional, n_fractions)),
    )


def _from_rows(rows: Rows, duplicates: str, fractional: FractionalPolicy) -> ResponseMatrix:
    response, n_fractions = apply_fractional(rows.response, rows.weight, fractional, rows.explain)
    metadata = split_metadata(rows)
    choices: dict[str, Any] = _fractional_choice(fractional, n_fractions)
    seen = np.flatnonzero(~np.isnan(response))
    if len(seen) < len(rows):
        choices["rows_without_response"] = len(rows) - len(seen)
    if metadata.not_kept:
        choices["columns_not_kept"] = metadata.not_kept
    model, item, value, weight, repeats = _combine_duplicates(rows, response, seen, duplicates)
    if repeats:
        choices["duplicates"] = repeats
    return ResponseMatrix.from_cells(
        model,
        item,
        value,
        model_ids=rows.model.texts(),
        item_ids=rows.item.texts(),
        weight=weight,
        item_metadata=metadata.item,
        model_metadata=metadata.model,
        provenance=Provenance(choices=choices, warnings=tuple(metadata.notes)),
    )


def _fractional_choice(policy: FractionalPolicy, count: int) -> dict[str, Any]:
    if not count:
        return {}
    text = policy.kind if policy.kind != "threshold" else f"threshold={policy.threshold:g}"
    return {"fractional": {"policy": text, "responses": count}}


def _combine_duplicates(
    rows: Rows, response: np.ndarray, seen: np.ndarray, policy: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray | None, dict[str, Any]]:
    """Observed cells, each once: model, item, response, weight, and what was combined.

    A row without a response repeats nothing: only two responses of one pair are duplicates.
    """
    everything = len(seen) == len(rows)
    model = rows.model.codes if everything else rows.model.codes[seen]
    item = rows.item.codes if everything else rows.item.codes[seen]
    value = response if everything else response[seen]
    weight = rows.weight if everything or rows.weight is None else rows.weight[seen]
    key = item.astype(np.int64) * max(len(rows.model.values), 1) + model
    ordered = np.sort(key)
    if not np.any(ordered[1:] == ordered[:-1]):
        return model, item, value, weight, {}
    order = np.argsort(key, kind="stable")
    start = np.flatnonzero(np.append(True, key[order][1:] != key[order][:-1]))
    size = np.diff(np.append(start, len(order)))
    if policy == "error":
        raise InputError(_duplicate(rows, seen, order, start, size))
    taken, value, weight = _reduced(policy, order, start, size, value, weight)
    summary = {
        "policy": policy,
        "pairs": int(np.count_nonzero(size > 1)),
        "rows": int(size[size > 1].sum()),
    }
    return model[taken], item[taken], value, weight, summary


def _reduced(
    policy: str,
    order: np.ndarray,
    start: np.ndarray,
    size: np.ndarray,
    value: np.ndarray,
    weight: np.ndarray | None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """One row, response and weight for each group of equal pairs; input order within a group."""
    first = order[start]
    if policy == "mean":
        each = np.ones(len(order)) if weight is None else weight[order]
        total = np.add.reduceat(each, start)
        return first, np.add.reduceat(each * value[order], start) / total, total
    if policy == "any":
        # The first of the best trials: one response, not a mean of several.
        best = np.lexsort((-value[order], np.repeat(np.arange(len(start)), size)))
        taken = order[best[start]]
    else:
        taken = first if policy == "first" else order[start + size - 1]
    return taken, value[taken], None if weight is None else weight[taken]


def _duplicate(
    rows: Rows, seen: np.ndarray, order: np.ndarray, start: np.ndarray, size: np.ndarray
) -> str:
    """Name the pair that is repeated first in the input."""
    repeated = start[size > 1]
    second = order[repeated + 1]
    k = int(np.argmin(second))
    one, two = int(seen[order[repeated[k]]]), int(seen[second[k]])
    more = f"; {len(repeated):,} pairs are repeated" if len(repeated) > 1 else ""
    return (
        f"item {quoted(rows.item.text_at(one))} has two responses of model "
        f"{quoted(rows.model.text_at(one))} ({joined_places(rows.place(one), rows.place(two))})"
        f"{more}; pass --duplicates first|last|mean|any"
    )

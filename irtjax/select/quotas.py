"""How many items each value of a column may have and must have."""

import dataclasses
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Bool, Int

from irtjax.checks import check_whole, counted, shown
from irtjax.data.responses import ResponseMatrix
from irtjax.errors import InputError

__all__ = ["Quotas", "check_possible", "quotas_of", "room"]

_RANGE = re.compile(r"(\d+)(?:-(\d+))?")


@dataclasses.dataclass(frozen=True, eq=False)
class Quotas:
    """Bounds on the number of items of each value of a column.

    Attributes:
        column: of the item metadata; empty without quotas.
        group: value of each item, as a code.
        names: of the values.
        least: how many each must have.
        most: how many each may have.
    """

    column: str
    group: Int[np.ndarray, " items"]
    names: list[str]
    least: Int[np.ndarray, " groups"]
    most: Int[np.ndarray, " groups"]

    @property
    def binds(self) -> bool:
        """Whether there are any."""
        return bool(self.column)


def room(
    count: Int[Any, " groups"],
    left: Int[Any, ""] | int,
    least: Int[Any, " groups"],
    most: Int[Any, " groups"],
) -> Bool[Any, " groups"]:
    """Whether the next item may be one of each group (NumPy's or JAX's arrays).

    Args:
        count: items taken of each group.
        left: items still to take, this one included.
        least: how many each must have in the end.
        most: how many each may have.
    """
    lacking = (least - count).clip(0)
    is_free = left > lacking.sum()  # one is left over when all that must come have come
    return (count < most) & (is_free | (lacking > 0))


def quotas_of(
    data: ResponseMatrix,
    position: np.ndarray,
    per: Mapping[str, Any] | None,
    min_coverage: int,
    budget: int,
) -> list[Quotas]:
    """Quotas on the items of a bank; one that bounds nothing where none is asked for.

    Args:
        data: with the item metadata.
        position: of the bank's items in the data.
        per: column to a number (at most so many items of each of its values), to `LOW-HIGH`, or to
            such bounds by value.
        min_coverage: at least so many items of every value: of the columns in `per`, of
            `benchmark` without.
        budget: how many items are selected.

    Raises:
        InputError: no such column, bounds that are none, values that have too few items.
    """
    min_coverage = check_whole("min_coverage", min_coverage, 0)
    if not isinstance(per, Mapping | None):
        raise InputError(f"per must be a column of items to its bounds, not {shown(per)}")
    asked = dict(per or {})
    if min_coverage and not asked:
        asked = {"benchmark": budget}
    found = [_quotas(data, position, column, asked[column], min_coverage) for column in asked]
    for quotas in found:
        check_possible(quotas, budget)
    if found:
        return found
    return [
        Quotas("", np.zeros(len(position), np.int32), [""], np.zeros(1, int), np.array([budget]))
    ]


def check_possible(quotas: Quotas, budget: int) -> None:
    """Refuse quotas that no selection of this size fulfils.

    Raises:
        InputError: one line says which, and what would be possible.
    """
    has = np.bincount(quotas.group, minlength=len(quotas.names))
    short = np.flatnonzero(has < quotas.least)
    if len(short):
        k = int(short[0])
        raise InputError(
            f"{quotas.column} {quotas.names[k]!r} has {counted(int(has[k]), 'item')} to select "
            f"from, and {quotas.least[k]:,} are asked for; ask for fewer"
        )
    least, most = int(quotas.least.sum()), int(np.minimum(quotas.most, has).sum())
    if least > budget:
        raise InputError(
            f"the values of {quotas.column} must have {least:,} items together, more than the "
            f"budget of {budget:,}; raise the budget or ask for fewer of each"
        )
    if most < budget:
        raise InputError(
            f"the quotas of {quotas.column} allow {most:,} items together, fewer than the budget "
            f"of {budget:,}; lower the budget or raise the quotas"
        )


def _quotas(
    data: ResponseMatrix, position: np.ndarray, column: str, bounds: Any, min_coverage: int
) -> Quotas:
    codes, names = data.groups(column)
    by_value: dict[str, Any] = dict(bounds) if isinstance(bounds, Mapping) else {}
    unknown = [value for value in by_value if str(value) not in names]
    if unknown:
        raise InputError(
            f"no item has {column} {shown(unknown[0])}; values: {', '.join(names[:20])}"
        )
    each = [
        _bounds(column, by_value.get(name) if isinstance(bounds, Mapping) else bounds)
        for name in names
    ]
    for name, (low, _) in zip(names, each, strict=True):
        if max(low, min_coverage) > data.n_items:  # perhaps more than an int64 holds
            raise InputError(
                f"{column} {name!r} must have {max(low, min_coverage):,} items, more than the "
                f"{counted(data.n_items, 'item')} there are; ask for fewer"
            )
    least = np.array([max(low, min_coverage) for low, _ in each], int)
    most = np.array([min(high, data.n_items) for _, high in each], int)
    wrong = np.flatnonzero(least > most)
    if len(wrong):
        k = int(wrong[0])
        raise InputError(
            f"{column} {names[k]!r} must have {least[k]:,} items and may have {most[k]:,}; lower "
            "min_coverage or raise its quota"
        )
    return Quotas(column, codes[position], names, least, most)


def _bounds(column: str, given: Any) -> tuple[int, int]:
    """Least and most from `20`, `"20"` or `"5-20"`; nothing bounds nothing."""
    if given is None:
        return 0, np.iinfo(np.int64).max
    match = _RANGE.fullmatch(given.strip()) if isinstance(given, str) else None
    if match is not None:
        low, high = match[1], match[2]
        bounds = (0, int(low)) if high is None else (int(low), int(high))
        if bounds[0] > bounds[1]:
            raise InputError(
                f"the quota {given.strip()} of {column} asks for at least {low} and at most {high} "
                f"items; write it as {high}-{low}"
            )
        return bounds
    if isinstance(given, str):
        raise InputError(
            f"a quota of {column} is a number of items or LOW-HIGH, not {shown(given)}"
        )
    return 0, check_whole(f"the quota of {column}", given, 0)

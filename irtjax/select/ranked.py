"""Selection by a value of each item: the best first, or the best set under several quotas."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array

from irtjax.errors import InputError
from irtjax.select.quotas import Quotas, room

__all__ = ["best_first", "best_set"]


def best_first(
    value: Float[np.ndarray, " items"], quotas: Quotas, budget: int
) -> Int[np.ndarray, " chosen"]:
    """The items of the largest values that the quotas leave room for, the first of equal ones.

    With bounds on the groups of one column that is the best sum there is: the sets that can be
    filled up to them form a matroid.
    """
    count = np.zeros_like(quotas.least)
    chosen: list[int] = []
    for item in np.argsort(-value, kind="stable"):
        if len(chosen) == budget:
            break
        # A group without room never gets some again, so that one pass is enough.
        group = quotas.group[item]
        if room(count, budget - len(chosen), quotas.least, quotas.most)[group]:
            chosen.append(int(item))
            count[group] += 1
    return np.array(chosen, int)


def best_set(
    value: Float[np.ndarray, " items"], quotas: Sequence[Quotas], budget: int
) -> Int[np.ndarray, " chosen"]:
    """The set of items with the largest sum of values under quotas of any number of columns.

    A mixed-integer linear program (HiGHS): what automated test assembly solves.

    Returns:
        Positions, the largest value first.

    Raises:
        InputError: no set keeps all quotas.

    Source: van der Linden (2005), Linear Models for Optimal Test Design.
    """
    may = _of_use(value, quotas, budget)
    n = len(may)
    constraints = [LinearConstraint(np.ones((1, n)), budget, budget)]
    for each in quotas:
        shape = (len(each.names), n)
        member = csr_array((np.ones(n), (each.group[may], np.arange(n))), shape=shape)
        constraints.append(LinearConstraint(member, each.least, np.minimum(each.most, budget)))
    size = float(np.max(np.abs(value), initial=0)) or 1.0
    columns = " and ".join(each.column for each in quotas)
    impossible = f"no {budget:,} items keep the quotas of {columns} together; ask for less"
    if n < budget:
        raise InputError(impossible)
    solved = milp(
        -value[may] / size,
        integrality=np.ones(n, int),
        bounds=Bounds(0, 1),
        constraints=constraints,
    )
    if solved.x is None:
        raise InputError(impossible)
    chosen = _first_of_alike(may[solved.x > 0.5], value, _combination(quotas))
    return chosen[np.argsort(-value[chosen], kind="stable")]


def _of_use(
    value: Float[np.ndarray, " items"], quotas: Sequence[Quotas], budget: int
) -> Int[np.ndarray, " some"]:
    """Items that the best set may have: of each combination of groups as many as their quotas let.

    Of 34,000 items 6,000 are left where 11 x 5 groups have quotas of 120 and 250.
    """
    most = np.full(len(value), budget)
    for each in quotas:
        most = np.minimum(most, each.most[each.group])
    combination = _combination(quotas)
    order = np.lexsort((-value, combination))
    starts = np.flatnonzero(np.diff(combination[order], prepend=-1))
    rank = np.arange(len(order)) - np.repeat(starts, np.diff(np.r_[starts, len(order)]))
    return np.sort(order[rank < most[order]])


def _first_of_alike(
    chosen: Int[np.ndarray, " chosen"],
    value: Float[np.ndarray, " items"],
    combination: Int[np.ndarray, " items"],
) -> Int[np.ndarray, " chosen"]:
    """Of items with the same groups and value as many as were chosen, the first: any would do."""
    pairs = np.column_stack([combination, value])
    kind = np.unique(pairs, axis=0, return_inverse=True)[1].ravel()
    wanted = np.bincount(kind[chosen], minlength=kind.max() + 1)
    order = np.argsort(kind, kind="stable")
    starts = np.searchsorted(kind[order], np.arange(kind.max() + 1))
    rank = np.arange(len(order)) - starts[kind[order]]
    return np.sort(order[rank < wanted[kind[order]]])


def _combination(quotas: Sequence[Quotas]) -> Int[np.ndarray, " items"]:
    """A code for the groups of each item in all columns."""
    code = np.zeros(len(quotas[0].group), int)
    for each in quotas:
        code = code * len(each.names) + each.group
    return code

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
    n = len(value)
    items = np.arange(n)
    constraints = [LinearConstraint(np.ones((1, n)), budget, budget)]
    for each in quotas:
        shape = (len(each.names), n)
        member = csr_array((np.ones(n), (each.group, items)), shape=shape)
        constraints.append(LinearConstraint(member, each.least, np.minimum(each.most, n)))
    size = float(np.max(np.abs(value), initial=0)) or 1.0
    solved = milp(
        -value / size, integrality=np.ones(n, int), bounds=Bounds(0, 1), constraints=constraints
    )
    if solved.x is None:
        columns = " and ".join(each.column for each in quotas)
        raise InputError(
            f"no {budget:,} items keep the quotas of {columns} together ({solved.message}); ask "
            "for less"
        )
    chosen = np.flatnonzero(solved.x > 0.5)
    return chosen[np.argsort(-value[chosen], kind="stable")]

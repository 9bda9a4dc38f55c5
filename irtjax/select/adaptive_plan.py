"""What an adaptive test of a fit needs on the device: items, plan, and who may be asked what."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import jax.numpy as jnp
import numpy as np
import pandas as pd

from irtjax.checks import counted, shown
from irtjax.errors import InputError
from irtjax.select.adaptive_items import adaptive_items
from irtjax.select.adaptive_rules import AdaptiveRules
from irtjax.select.adaptive_step import BeliefItems, Plan
from irtjax.select.grid_belief import grid_items
from irtjax.select.normal_belief import NormalItems

if TYPE_CHECKING:
    from irtjax.fit.result import FitResult

__all__ = ["candidate_items", "items_on_device", "plan_of"]

# A larger error to stop at is no float32, and stops as soon.
_LARGEST_ERROR = 1e30


def items_on_device(fit: "FitResult") -> BeliefItems:
    """Curves of a fit's items; one dim has tables on a grid."""
    items = adaptive_items(fit)
    return grid_items(items) if items.dims == 1 else NormalItems(items)


def candidate_items(fit: "FitResult", item_ids: Iterable[str] | None, n_padded: int) -> np.ndarray:
    """Which items may be asked: those named (all without), never padding.

    Raises:
        InputError: an id that was not in the fit, or no item at all.
    """
    allowed = np.zeros(n_padded, bool)
    if item_ids is None:
        allowed[: fit.data.n_items] = True
    else:
        wanted = [str(each) for each in item_ids]
        position = pd.Index(fit.data.item_ids).get_indexer(wanted)
        if (position < 0).any():
            first = wanted[int(np.flatnonzero(position < 0)[0])]
            count = int(np.count_nonzero(position < 0))
            raise InputError(
                f"item {shown(first)} was not in the fit ({counted(count, 'such item')})"
            )
        allowed[position] = True
    if not allowed.any():
        raise InputError("no item may be asked; name some")
    return allowed


def plan_of(fit: "FitResult", rules: AdaptiveRules, column: str | None, n_padded: int) -> Plan:
    """Rules as arrays.

    Raises:
        InputError: quotas of values that no item has, or without such a column.
    """
    pool, quota = np.zeros(n_padded, np.int32), np.array([rules.max_items])
    if rules.quotas:
        name = column or fit.group or "benchmark"
        codes, groups = fit.data.groups(name)
        for value in rules.quotas:
            if value not in groups:
                raise InputError(f"there is no {name} {value!r} to have a quota of items")
        limits = list(rules.quotas.values())
        place = {value: k for k, value in enumerate(rules.quotas)}
        # Groups without a quota share the last pool.
        of_group = np.array([place.get(value, len(limits)) for value in groups], np.int32)
        pool[: len(codes)] = of_group[codes]
        quota = np.array([*limits, rules.max_items - sum(limits)])
    return Plan(
        jnp.asarray(pool),
        jnp.asarray(quota, jnp.int32),
        jnp.asarray(min(rules.se or 0.0, _LARGEST_ERROR), float),
        jnp.asarray(rules.least_gain, float),
        jnp.asarray(rules.max_items, jnp.int32),
        jnp.asarray(rules.n_first, jnp.int32),
        rules.criterion,
        rules.randomesque,
    )

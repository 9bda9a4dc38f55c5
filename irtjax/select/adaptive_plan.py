"""What an adaptive test of a fit needs on the device: items, plan, and who may be asked what."""

import dataclasses
from collections.abc import Iterable
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

from irtjax.checks import check_several, counted, shown
from irtjax.errors import InputError
from irtjax.fit.packed import mixture_moments
from irtjax.score.bank import ItemBank, item_bank, population_frame, taken, without_effects
from irtjax.score.cells import curve_items
from irtjax.score.curves import CurveItems
from irtjax.score.effects import fitted_effect_prior
from irtjax.select.adaptive_rules import AdaptiveRules
from irtjax.select.adaptive_step import BeliefItems, Plan
from irtjax.select.grid_belief import grid_items
from irtjax.select.normal_belief import NormalItems

if TYPE_CHECKING:
    from irtjax.fit.result import FitResult

__all__ = ["AskedItems", "asked_items", "candidate_items", "places", "plan_of"]

# A larger error to stop at is no float32, and stops as soon.
_LARGEST_ERROR = 1e30
# Items are padded to a multiple of this, so that few shapes are compiled.
_ITEMS_TO = 512
# Places for answers are a multiple of this, so that tests of many lengths share programs.
_LENGTH_TO = 64
# Rules may ask for more than an int32 holds, and no test has as many items.
_MOST = np.iinfo(np.int32).max


@dataclasses.dataclass(frozen=True, eq=False)
class AskedItems:
    """The items of a fit in the order of their ids: of equal ones the first id is asked.

    Attributes:
        item_ids: of the items.
        position: of each in the fit.
        on_device: the items with padding.
    """

    item_ids: np.ndarray
    position: np.ndarray
    on_device: BeliefItems

    @property
    def n_padded(self) -> int:
        """Number of items, padding included."""
        return self.on_device.n_items


def asked_items(fit: "FitResult") -> AskedItems:
    """Items as `score_models` has them; one dim without benchmark effects has tables on a grid."""
    position = np.argsort(fit.data.item_ids, kind="stable")
    effects = fitted_effect_prior(fit)
    bank = taken(
        item_bank(fit, effects, is_uncertain=True),
        np.pad(position, (0, -len(position) % _ITEMS_TO)),
    )
    dtype, frame = np.asarray(bank.mean).dtype, population_frame(fit)[:-1]
    everywhere = curve_items(bank, np.arange(len(bank.group))[None])
    curves = jax.tree.map(jnp.asarray, everywhere)
    if fit.spec.dims == 1 and effects is None:
        on_device: BeliefItems = grid_items(curves, *(dtype.type(x) for x in frame[0, ::-1]))
    else:
        on_device = _normal_items(bank, curves, frame)
    return AskedItems(fit.data.item_ids[position], position, on_device)


def _normal_items(bank: ItemBank, curves: CurveItems, frame: np.ndarray) -> NormalItems:
    dims, dtype = len(frame), np.asarray(bank.mean).dtype
    own = without_effects(bank, dims)
    mean, covariance = mixture_moments(
        *(np.asarray(part, np.float64) for part in (own.mean, own.covariance, own.share))
    )
    offset, variance = np.zeros(len(mean)), None
    if bank.effect_variance is not None:
        variance = jnp.asarray(bank.effect_variance, dtype)
        offset = np.asarray(bank.effect_variance, np.float64)[np.asarray(bank.group)]
    if bank.n_latent > dims:  # what effects have in common
        offset = offset + np.asarray(bank.mean, np.float64)[:, 0, dims] ** 2
    guessing, feasibility = np.zeros(len(mean)), np.ones(len(mean))
    if bank.asymptotes is not None:
        guessing = np.asarray(bank.asymptotes.guessing)
        feasibility = np.asarray(bank.asymptotes.feasibility)
    known = (mean.T, covariance.T, offset, guessing, feasibility, frame)
    return NormalItems(curves, variance, *(jnp.asarray(part, dtype) for part in known))


def places(items: AskedItems, rules: AdaptiveRules) -> int:
    """Places for the answers of a test: no more than there are items."""
    return -(-min(rules.max_items, len(items.item_ids)) // _LENGTH_TO) * _LENGTH_TO


def candidate_items(items: AskedItems, item_ids: Iterable[str] | None) -> np.ndarray:
    """Which items may be asked: those named (all without), never padding.

    Raises:
        InputError: an id that was not in the fit, or no item at all.
    """
    allowed = np.zeros(items.n_padded, bool)
    if item_ids is None:
        allowed[: len(items.item_ids)] = True
    else:
        wanted = [str(each) for each in check_several("items", item_ids)]
        position = pd.Index(items.item_ids).get_indexer(wanted)
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


def plan_of(
    fit: "FitResult",
    items: AskedItems,
    rules: AdaptiveRules,
    column: str | None,
    allowed: np.ndarray,
) -> Plan:
    """Rules as arrays.

    Raises:
        InputError: quotas of values that no item has, without such a column, or that leave no
            item to ask; a column without quotas.
    """
    if column is not None and not rules.quotas:
        raise InputError(
            f"quota_by {shown(column)} names the column of quotas, but there are none; give quotas "
            "or drop it"
        )
    pool, quota = np.zeros(items.n_padded, np.int32), np.array([min(rules.max_items, _MOST)])
    if rules.quotas:
        name = column or fit.group or "benchmark"
        codes, groups = fit.data.groups(name)
        for value in rules.quotas:
            if value not in groups:
                raise InputError(f"there is no {name} {value!r} to have a quota of items")
        place = {value: k for k, value in enumerate(rules.quotas)}
        # Groups without a quota share the last pool.
        of_group = np.array([place.get(value, len(place)) for value in groups], np.int32)
        pool[: len(codes)] = of_group[codes[items.position]]
        limits = list(rules.quotas.values())
        limits.append(rules.max_items - sum(limits))
        quota = np.array([min(each, _MOST) for each in limits])
        if not np.any(allowed & (quota[pool] > 0)):
            raise InputError("the quotas leave no item that may be asked; raise one of them")
    return Plan(
        jnp.asarray(pool),
        jnp.asarray(quota, jnp.int32),
        jnp.asarray(min(rules.se or 0.0, _LARGEST_ERROR), float),
        jnp.asarray(rules.least_gain, float),
        jnp.asarray(min(rules.max_items, _MOST), jnp.int32),
        jnp.asarray(min(rules.n_first, _MOST), jnp.int32),
        rules.criterion,
        min(rules.randomesque, items.n_padded),
    )

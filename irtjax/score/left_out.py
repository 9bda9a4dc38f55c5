"""Effects of groups of items on a model that the items' posteriors have not seen.

The residuals of a fitted model say too little of a new one's: with ten models the items' curves and
the ability itself have followed its answers. So each model's answers are taken out of the items'
posteriors, one Newton step each (with the distribution of all items and the other models' abilities
as they are), its ability is found anew, and the shift of the logit that is then left in each group
of items is a sample of what new models show. Refits without each model say much the same
(`docs/design.md`) at many times the price.

Source: one-step leave-one-out, Pregibon (1981), Ann. Statist. 9(4); Rad & Maleki (2020), JRSS B 82.
"""

import dataclasses
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from irtjax.data.cells import Cells
from irtjax.errors import InputError
from irtjax.fit.packed import pair_index, unpack_index
from irtjax.score.bank import ItemBank, item_bank, population_frame
from irtjax.score.cells import Answers
from irtjax.score.curves import CurveItems, curve, curve_slopes
from irtjax.score.effects import EffectPrior, effects_like, fitted_effect_prior
from irtjax.score.mode import find_mode

if TYPE_CHECKING:
    from irtjax.fit.result import FitResult

__all__ = ["effect_prior", "stratum_prior"]

_STRATA, _LEAST_STRATUM = 6, 10
# Most of an item's precision that one model's answer may account for.
_MOST_LEVERAGE = 0.95
_FOUND: WeakKeyDictionary["FitResult", dict[str | None, np.ndarray]] = WeakKeyDictionary()


def effect_prior(fit: "FitResult", column: str) -> EffectPrior | None:
    """Effects on the values of an item column, whether or not the fit has them.

    Args:
        fit: the fit.
        column: of the items' metadata.

    Returns:
        None where all items have the same value.

    Raises:
        InputError: no such column; the fit has the effects of another one.
    """
    if fit.parameters.effect is not None:
        if fit.group != column:
            raise InputError(
                f"the run has effects of {fit.group!r}, so scores are by that column, not by "
                f"{column!r}"
            )
        return fitted_effect_prior(fit)
    group, names = fit.data.groups(column)
    if len(names) < 2:
        return None
    return effects_like(_shifts_of(fit, column, group, len(names)), group, names)


def stratum_prior(fit: "FitResult") -> EffectPrior | None:
    """Effects on strata of difficulty, for items that are of one benchmark.

    A new model's share right need not fall with difficulty as the fitted models' do: on ChemBench
    models that were left out differ by .8 logits (sd) on the easiest sixth of the items, by .6 on
    the hardest. None below ten items a stratum.
    """
    if fit.data.n_items < _LEAST_STRATUM * _STRATA:
        return None
    group = _strata(fit.data.totals("items")[1])
    shifts = _shifts_of(fit, None, None, _STRATA)
    return effects_like(shifts, group, [str(k) for k in range(_STRATA)])


def _strata(share: np.ndarray) -> np.ndarray:
    """Sixths of the items by share right."""
    known = np.nan_to_num(share, nan=0.5)
    rank = np.argsort(np.argsort(known, kind="stable"), kind="stable")
    return (rank * _STRATA // len(rank)).astype(np.int32)


def _shifts_of(
    fit: "FitResult", column: str | None, group: np.ndarray | None, n_groups: int
) -> np.ndarray:
    """The shifts, found once a fit and column: scoring one new model after another asks again."""
    found = _FOUND.setdefault(fit, {})
    if column not in found:
        found[column] = _shifts(fit, group, n_groups)
    return found[column]


def _shifts(fit: "FitResult", group: np.ndarray | None, n_groups: int) -> np.ndarray:
    """Models x groups: `sum(y - P) / sum(P (1 - P))` of models left out, 0 without answers.

    Without groups they are the strata of difficulty among the other models.
    """
    cells = fit.data.cells()
    bank = item_bank(fit, None, is_uncertain=True)
    frame = population_frame(fit)
    away = np.asarray(fit.parameters.ability, np.float64) - frame[:-1, -1]
    latent = np.linalg.solve(frame[:-1, :-1], away.T).T
    answered, weighted = (
        np.bincount(cells.item_index, part, fit.data.n_items)
        for part in (cells.weight, cells.weight * cells.response)
    )
    order = np.argsort(cells.model_index, kind="stable")
    ends = np.cumsum(np.bincount(cells.model_index, minlength=fit.data.n_models))
    shift = np.zeros((fit.data.n_models, n_groups))
    for row, rows in enumerate(np.split(order, ends[:-1])):
        own = cells.taken(rows)
        if len(own) == 0:
            continue
        codes = group
        if codes is None:
            count, right = answered.copy(), weighted.copy()
            count[own.item_index] -= own.weight
            right[own.item_index] -= own.weight * own.response
            codes = _strata(np.where(count > 0, right / np.maximum(count, 1e-9), np.nan))
        shift[row] = _shift(bank, own, latent[row], codes[own.item_index], n_groups)
    return shift


def _shift(
    bank: ItemBank, own: Cells, latent: np.ndarray, group: np.ndarray, n_groups: int
) -> np.ndarray:
    """Of one model, whose answers (and no others) these are."""
    width = max(16, 1 << (len(own) - 1).bit_length())
    index = np.pad(own.item_index, (0, width - len(own)))
    dtype = np.asarray(bank.mean).dtype
    response, weight = (
        np.pad(part, (0, width - len(own))).astype(dtype)[None]
        for part in (own.response, own.weight)
    )
    items = _items(bank, index)
    given: Any = (response, weight)
    left = _without(items, Answers(*given), jnp.asarray(latent, dtype)[None])
    p, not_p = (np.asarray(part, np.float64)[0, : len(own)] for part in _at_mode(left, *given))
    excess = np.bincount(
        group, own.weight * (own.response * not_p - (1 - own.response) * p), n_groups
    )
    curvature = np.bincount(group, own.weight * p * not_p, n_groups)
    return excess / np.maximum(curvature, 1.0)


def _items(bank: ItemBank, index: np.ndarray) -> CurveItems:
    """Items by index in one row, components first."""
    leaves: Any = (
        *(
            np.moveaxis(np.asarray(leaf)[index], 1, 0)[:, None]
            for leaf in (bank.mean, bank.covariance, bank.share)
        ),
        jax.tree.map(lambda leaf: np.asarray(leaf)[index][None], bank.asymptotes),
        np.zeros((1, len(index)), np.int32),
        bool(np.any(np.asarray(bank.covariance))),
    )
    return CurveItems(*leaves)


@jax.jit
def _without(items: CurveItems, answers: Answers, latent: Float[Array, "1 latent"]) -> CurveItems:
    """The items' posteriors without one model's answers.

    `V <- V + w V x x' V / (1 - w x' V x)` and `m <- m - V x l'`, with `l'` and `w` the answer's
    score and information about the logit.
    """
    slopes = curve_slopes(items, latent, jnp.zeros_like(answers.weight))
    # The score of a 2PL is y - P whatever the item's posterior is.
    ratio = jnp.ones_like(slopes.p)
    if items.asymptotes is not None:
        ratio = slopes.by_shift / (slopes.p * slopes.not_p)
    weight = answers.weight * ratio
    score = weight * (answers.response * slopes.not_p - (1 - answers.response) * slopes.p)
    x = jnp.concatenate([latent[0], jnp.ones_like(latent[0, :1])])
    covariance = items.covariance[..., unpack_index(x.shape[0])]
    along = covariance @ x
    information = weight * slopes.by_shift
    leverage = jnp.minimum(information * (along @ x), _MOST_LEVERAGE)
    mean = items.mean - (score / (1 - leverage))[..., None] * along
    added = along[..., :, None] * along[..., None, :]
    wider = covariance + (information / (1 - leverage))[..., None, None] * added
    return dataclasses.replace(items, mean=mean, covariance=wider[(..., *pair_index(x.shape[0]))])


@jax.jit
def _at_mode(items: CurveItems, response: Array, weight: Array) -> tuple[Array, Array]:
    mode = find_mode(Answers(response, weight), items, None)
    return curve(items, mode.latent, jnp.zeros_like(weight))

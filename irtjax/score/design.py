"""Which items to ask a new model so that its score on all of them is predicted best.

The most informative items by a fit of few models are those whose slopes it overestimates most, and
they leave out whole benchmarks: in trials on PSN-IRT's data with ten models they predicted worse
than random ones. So items are drawn, in every benchmark as many as its information deserves, each
with a chance in proportion to the root of what it tells (as in Neyman's allocation, where chances
are in proportion to standard deviations), averaged over abilities and over the item's posterior: an
uncertain slope counts for less. Trials did not settle the root against the information itself
(GSM8K, 12 halves: 30 items .0310 and .0312, 100 items .0189 and .0155; PSN-IRT, 100 items: .0261
and .0269).
"""

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jaxtyping import Array, Float
from scipy.special import ndtri

from irtjax.checks import check_whole
from irtjax.score.bank import item_bank
from irtjax.score.curves import CurveItems, curve_slopes
from irtjax.score.group_sums import item_blocks
from irtjax.score.known import check_fit

if TYPE_CHECKING:
    from irtjax.fit.result import FitResult

__all__ = ["drawn_items", "expected_information", "item_order", "score_items"]

# Abilities of new models, wider than the population: the next model may be better than all.
_WIDTH = 1.5
_N_ABILITIES = 32


def score_items(fit: "FitResult", n_items: int, *, seed: int = 0) -> pd.DataFrame:
    """Draw items for predicting the full score (`predict_score`).

    A systematic sample over the items in the order of their benchmarks (of the fit's `group`, or
    the column `benchmark`, where there is one) and difficulties, with chances in proportion to the
    root of `expected_information`.

    Args:
        fit: the fit.
        n_items: items to draw, at most as many as the fit has.
        seed: of the draw.

    Returns:
        `item_id` and `information`, in the order of the fit's items.

    Raises:
        InputError: more items than the fit has.
    """
    check_fit(fit, "score_items")
    n_items = check_whole("the number of items", n_items, 1, fit.data.n_items)
    rng = np.random.default_rng(check_whole("seed", seed, 0))
    information = expected_information(fit)
    drawn = drawn_items(np.sqrt(information), item_order(fit), n_items, rng)
    return pd.DataFrame({"item_id": fit.data.item_ids[drawn], "information": information[drawn]})


def drawn_items(
    size: np.ndarray, place: np.ndarray, n_items: int, rng: np.random.Generator
) -> np.ndarray:
    """A systematic sample with chances in proportion to size; no item twice.

    Args:
        size: of each item, not negative.
        place: in the list that is walked through; in random order where it is the same.
        n_items: to draw.
        rng: of the start and of the order.
    """
    chance = _chances(size, n_items)
    order = rng.permutation(len(size))
    order = order[np.argsort(place[order], kind="stable")]
    # Hit where the running sum passes a whole number plus the random start.
    reached = np.floor(np.cumsum(chance[order]) + rng.random())
    hit = np.diff(reached, prepend=0.0) > 0
    drawn = order[hit]
    missing = n_items - len(drawn)
    if missing > 0:  # the rounding of the last sum
        left = np.setdiff1d(order, drawn)
        drawn = np.append(drawn, left[np.argsort(-size[left], kind="stable")[:missing]])
    return np.sort(drawn[:n_items])


def _chances(size: np.ndarray, n_items: int) -> np.ndarray:
    """Chances of at most 1 that sum to the number of items, in proportion to size below it."""
    chance = np.maximum(size, 1e-12 * size.max(initial=1e-300))
    is_sure = np.zeros(len(size), bool)
    for _ in range(len(size)):
        rest = n_items - np.count_nonzero(is_sure)
        scaled = np.where(is_sure, 1.0, chance / chance[~is_sure].sum() * rest if rest else 0.0)
        if not np.any(scaled[~is_sure] > 1):
            return scaled
        is_sure |= scaled > 1
    return scaled


def expected_information(fit: "FitResult") -> np.ndarray:
    """Information of each item about abilities (its trace), averaged over abilities; float64.

    Abilities are those of the fit's population, 1.5 times as wide.
    """
    bank = item_bank(fit, None, is_uncertain=True)
    latent: Any = _abilities(bank.n_latent).astype(np.asarray(bank.mean).dtype)
    found = [np.asarray(_information(items, latent), np.float64) for items, _ in item_blocks(bank)]
    return np.concatenate(found)[: len(bank.group)]


@jax.jit
def _information(items: CurveItems, latent: Float[Array, "points latent"]) -> Array:
    width = items.group.shape[1]
    slopes = curve_slopes(items, latent, jnp.zeros((len(latent), width), latent.dtype))
    square = jnp.sum(slopes.by_latent**2, axis=0)
    return jnp.mean(square / (slopes.p * slopes.not_p), axis=0)


def _abilities(n_latent: int) -> np.ndarray:
    """Equally likely latent vectors."""
    if n_latent == 1:
        return _WIDTH * ndtri((np.arange(_N_ABILITIES) + 0.5) / _N_ABILITIES)[:, None]
    return _WIDTH * np.random.default_rng(0).standard_normal((_N_ABILITIES, n_latent))


def item_order(fit: "FitResult") -> np.ndarray:
    """Where each item stands in the list that is sampled: by benchmark, then by share right.

    A systematic sample has its share of every benchmark and, within, of every difficulty.
    """
    share = np.nan_to_num(fit.data.totals("items")[1], nan=0.5)
    column = fit.group or "benchmark"
    metadata = fit.data.item_metadata
    if column in metadata and not metadata[column].isna().any():
        return 2.0 * fit.data.groups(column)[0] + share
    return share

"""The rules: which items get a flag, by which number, past which threshold, and why.

Claims that chance can make true have a false discovery rate. Statements of fact (no model answered
it) and of what is not known (a slope below its error) have none.
"""

import dataclasses
from collections.abc import Callable

import numpy as np
import pandas as pd
from scipy.special import logsumexp, ndtr

from irtjax.audit.chance_tail import chance_tail
from irtjax.audit.dependence import Twins
from irtjax.audit.item_curves import ASYMPTOTES
from irtjax.audit.item_evidence import ItemEvidence
from irtjax.audit.shared_cells import Copies
from irtjax.audit.wrong_key import expected_false
from irtjax.fit.tables import FEW_RESPONSES

__all__ = [
    "DISCOVERY_RATE",
    "WRONG_KEY",
    "Flagged",
    "asymptote_flags",
    "dependence_flags",
    "identical_flags",
    "slope_flags",
    "total_flags",
]

# A key is checked in a minute: worth it where one in five is wrong.
WRONG_KEY = 0.2
# Of the pairs called dependent, or identical beyond chance, this share may be chance.
DISCOVERY_RATE = 0.05
_CEILING, _FLOOR = 0.95, 0.05
# Weak models right more often than one time in three is more than choosing among four or five
# options gives; with two or three options it is more than one time in two.
_GUESSING, _GUESSING_FEW_OPTIONS, _FEW_OPTIONS = 0.3, 0.5, 3
# The best models miss one time in five whatever their ability.
_FEASIBILITY = 0.8
_SURE = 0.5  # probability from which an asymptote is said to be past its threshold
# A model one standard deviation better than the best would be right less than a point more often.
_HEADROOM = 0.01
_HIGH_ON_CURVE = 0.9  # this far up its curve an item is too easy, not too hard or too flat


@dataclasses.dataclass(frozen=True)
class Flagged:
    """Items with one flag, most striking first.

    Attributes:
        flag: its name.
        item: rows of the items.
        value: the number that is judged.
        threshold: what it is judged by.
        reason: in words.
        rate: false discovery rate at each item's value; NaN where chance has no part in it.
    """

    flag: str
    item: np.ndarray
    value: np.ndarray
    threshold: float
    reason: list[str]
    rate: np.ndarray


def _flagged(
    flag: str,
    chosen: np.ndarray,
    value: np.ndarray,
    threshold: float,
    say: Callable[[int], str],
    *,
    strength: np.ndarray,
    rate: np.ndarray | None = None,
) -> Flagged:
    """The chosen items, those of the greatest strength first."""
    item = np.flatnonzero(chosen)
    item = item[np.argsort(-strength[item], kind="stable")]
    rates = np.full(len(item), np.nan) if rate is None else rate[item]
    return Flagged(flag, item, value[item], threshold, [say(j) for j in item.tolist()], rates)


def total_flags(fitted: np.ndarray, count: np.ndarray, share: np.ndarray) -> list[Flagged]:
    """Flags of counts and shares: `no_responses`, `few_responses`, all right or wrong, ends.

    Args:
        fitted: items, number of responses that the fit has seen.
        count: items, number of all responses, the held-out ones too.
        share: items, share right of all.
    """
    is_judged = count > FEW_RESPONSES
    rules = {
        "no_responses": (count == 0, count, 0, "no responses", -count),
        "few_responses": (
            (count > 0) & (fitted <= FEW_RESPONSES), fitted, FEW_RESPONSES,
            "{value:.0f} responses fitted", -fitted
        ),
        "all_wrong": (is_judged & (share == 0), share, 0, "all {count} responses wrong", count),
        "all_right": (is_judged & (share == 1), share, 1, "all {count} responses right", count),
        "floor": (
            is_judged & (share > 0) & (share <= _FLOOR), share, _FLOOR,
            "{value:.1%} of {count} responses right", -share,
        ),
        "ceiling": (
            is_judged & (share < 1) & (share >= _CEILING), share, _CEILING,
            "{value:.1%} of {count} responses right", share,
        ),
    }  # fmt: skip

    def flagged(
        flag: str,
        chosen: np.ndarray,
        value: np.ndarray,
        threshold: float,
        text: str,
        strength: np.ndarray,
    ) -> Flagged:
        def say(j: int) -> str:
            return text.format(value=value[j], count=count[j])

        return _flagged(flag, chosen, value.astype(float), threshold, say, strength=strength)

    return [flagged(flag, *rule) for flag, rule in rules.items()]


def slope_flags(
    table: pd.DataFrame, quality: pd.DataFrame, at_top: np.ndarray, dims: int
) -> list[Flagged]:
    """`negative_slope`, `weak_slope`, `no_headroom`.

    Args:
        table: as `FitResult.item_parameters` gives it, whose flags are taken over.
        quality: as `item_quality` gives it.
        at_top: items, probability of a right answer at the highest ability.
        dims: of the fit.
    """
    names = table["flags"].str.split(";")
    is_negative = names.map(lambda each: "negative_slope" in each).to_numpy()
    is_weak = names.map(lambda each: "weak_slope" in each).to_numpy()
    slopes = table[[f"dim{k + 1}_slope" for k in range(dims)]].to_numpy()
    errors = table[[f"dim{k + 1}_slope_se" for k in range(dims)]].to_numpy()
    row, strongest = np.arange(len(table)), np.argmax(np.abs(slopes), axis=1)
    slope, error = slopes[row, strongest], errors[row, strongest]
    discrimination = table["discrimination"].to_numpy()
    with np.errstate(divide="ignore", invalid="ignore"):
        below = np.where(error > 0, ndtr(-slope / error), slope < 0)
        ratio = np.abs(discrimination / table["discrimination_se"].to_numpy())
    below, ratio = np.nan_to_num(below, nan=0.5), np.nan_to_num(ratio)
    headroom = quality["leh"].to_numpy()
    low, high = table["guessing"].to_numpy(), table["feasibility"].to_numpy()
    is_high = at_top >= low + _HIGH_ON_CURVE * (high - low)
    is_full = is_high & (np.abs(headroom) < _HEADROOM) & ~is_negative
    return [
        _flagged(
            "negative_slope", is_negative, slope, 0.0,
            lambda j: f"slope {slope[j]:.2f} +- {error[j]:.2f} in dim {strongest[j] + 1}: "
            f"below 0 with probability {below[j]:.2f}",
            strength=below, rate=expected_false(np.where(is_negative, below, 0)),
        ),
        _flagged(
            "weak_slope", is_weak, ratio, 1.0,
            lambda j: f"discrimination {discrimination[j]:.2f} is "
            f"{ratio[j]:.1f} times its standard error",
            strength=-ratio,
        ),
        _flagged(
            "no_headroom", is_full, headroom, _HEADROOM,
            lambda j: f"rises by {headroom[j]:.4f} a standard deviation at the best model, "
            f"which is right with probability {at_top[j]:.3f}",
            strength=-np.abs(headroom),
        ),
    ]  # fmt: skip


def asymptote_flags(evidence: ItemEvidence, n_options: np.ndarray | None) -> list[Flagged]:
    """`high_guessing` and `low_feasibility`, by the posterior of each item's asymptotes.

    Args:
        evidence: of the responses.
        n_options: options of each item, 0 where unknown; None where all are.
    """
    share, regular = evidence.items.asymptotes, _regular(evidence)
    guessing, feasibility = (share @ ASYMPTOTES).T
    few = np.zeros(len(share), bool)
    if n_options is not None:
        few = (n_options > 0) & (n_options <= _FEW_OPTIONS)
    limit = np.where(few, _GUESSING_FEW_OPTIONS, _GUESSING)
    high = regular * np.sum(share * (ASYMPTOTES[:, 0] > limit[:, None]), axis=1)
    low = regular * (share @ (ASYMPTOTES[:, 1] < _FEASIBILITY))
    high_rate = expected_false(np.where(high >= _SURE, high, 0))
    low_rate = expected_false(np.where(low >= _SURE, low, 0))
    by_limit = [
        _flagged(
            "high_guessing", (high >= _SURE) & (limit == each), guessing, each,
            lambda j: f"guessing {guessing[j]:.2f}, above {limit[j]} with probability "
            f"{high[j]:.2f}",
            strength=high, rate=high_rate,
        )
        for each in np.unique(limit).tolist()
    ]  # fmt: skip
    return [
        _flagged(
            "low_feasibility", low >= _SURE, feasibility, _FEASIBILITY,
            lambda j: f"feasibility {feasibility[j]:.2f}, below {_FEASIBILITY} with probability "
            f"{low[j]:.2f}",
            strength=low, rate=low_rate,
        ),
        *by_limit,
    ]  # fmt: skip


def _regular(evidence: ItemEvidence) -> np.ndarray:
    """Posterior probability that an item is neither falling nor has a wrong key."""
    items, falling = evidence.items, evidence.falling
    wrong_key = np.full_like(falling, evidence.mixture.wrong_key)
    prior = np.log(np.stack([1 - falling - wrong_key, falling, wrong_key], axis=1))
    kinds = np.stack([items.regular, items.falling, items.wrong_key], axis=1) + prior
    return np.exp(kinds[:, 0] - logsumexp(kinds, axis=1))


def identical_flags(found: Copies, ids: np.ndarray) -> Flagged:
    """`identical_responses`: columns that are equal although chance would not make them so.

    Args:
        found: items with the same responses.
        ids: of the items.
    """
    copies, expected = found.copies, _expected_copies(found)
    is_copied = copies > 1
    # Every item may find a copy by chance, flagged or not: that many false finds are expected.
    order = np.argsort(expected, kind="stable")
    false = np.cumsum(expected[order])
    n_copied = np.cumsum(is_copied[order])
    rate = np.empty(len(expected))
    rate[order] = _least_so_far((false / np.maximum(n_copied, 1))[::-1])[::-1]
    chosen = is_copied & (rate <= DISCOVERY_RATE)
    partner = _partners(found.same, np.flatnonzero(chosen))
    # One item more may be called a copy where the false finds then stay within their share.
    n_chosen = int(chosen.sum())
    spent = float(expected[rate <= DISCOVERY_RATE].sum())
    strictest = float(expected[rate > DISCOVERY_RATE].min(initial=np.inf))
    threshold = min(strictest, DISCOVERY_RATE * (n_chosen + 1) - spent)
    return _flagged(
        "identical_responses", chosen, expected, threshold,
        lambda j: f"the same responses as {ids[partner[j]]}"
        + (f" and {copies[j] - 2:,} more" if copies[j] > 2 else "")
        + (", where both have one" if found.is_partial[j] else "")
        + f"; {expected[j]:.2g} such items expected by chance",
        strength=-found.log_marginal, rate=rate,
    )  # fmt: skip


def _expected_copies(found: Copies) -> np.ndarray:
    """How many items have the responses of each by chance."""
    return (found.alike - 1) * np.exp(found.log_marginal)


def _least_so_far(rate: np.ndarray) -> np.ndarray:
    """q-values: a stricter threshold is never said to find a larger share of false ones."""
    return np.minimum.accumulate(np.minimum(rate, 1))


def _partners(same: np.ndarray, items: np.ndarray) -> dict[int, int]:
    """Another item with the same column, for each of these."""
    members: dict[int, list[int]] = {}
    wanted = set(same[items].tolist())
    for j, number in enumerate(same.tolist()):
        if number in wanted:
            members.setdefault(number, []).append(j)
    return {
        j: members[int(same[j])][1 if members[int(same[j])][0] == j else 0] for j in items.tolist()
    }


def dependence_flags(twins: Twins, copies: Copies, ids: np.ndarray) -> Flagged:
    """`local_dependence`: Q3 above what responses drawn from the fit reach.

    Benjamini and Hochberg's rule on the chance of each item's Q3: of all items flagged a share of
    `DISCOVERY_RATE` at most may be so by chance, and where no item depends on another, any is
    flagged with that probability at most. How rarely chance makes a Q3 of 1 is told by the
    probability of equal responses: drawn ones are too few to say.

    Args:
        twins: the highest Q3 of each item.
        copies: items with the same responses.
        ids: of the items.
    """
    judged = np.flatnonzero(np.nan_to_num(twins.q3) > 0)
    q3, rate = np.nan_to_num(twins.q3), np.ones(len(twins.q3))
    threshold, chosen = np.nan, np.zeros(len(q3), bool)
    if len(judged) and (twins.chance > 0).any():
        # Items too poor to be judged have a Q3 of 0, in the data and by chance.
        tail = chance_tail(twins.chance[twins.chance > 0], q3[judged])
        ties = float(np.mean(np.minimum(_expected_copies(copies)[judged], 1)))
        p = tail.exceeded(q3[judged], ties)
        order = np.argsort(-p, kind="stable")
        place = np.arange(len(p), 0, -1)
        rate[judged[order]] = _least_so_far(p[order] * len(p) / place)
        chosen = rate <= DISCOVERY_RATE
        threshold = tail.reached(DISCOVERY_RATE * max(int(chosen.sum()), 1) / len(p))
    return _flagged(
        "local_dependence", chosen, q3, threshold,
        lambda j: f"residuals correlate {q3[j]:.2f} with those of {ids[twins.partner[j]]}",
        strength=q3, rate=rate,
    )  # fmt: skip

"""How many of the keys called wrong are right: a parametric bootstrap.

Items of all three kinds are drawn from the fitted shares of curves, answered by the models at
their abilities in the cells that were observed, and judged as the real ones were. What is known of
them is which keys are wrong.
"""

import dataclasses
from collections.abc import Iterator

import numpy as np

from irtjax.audit.composite import Composite
from irtjax.audit.item_curves import N_PLACES, N_REGULAR
from irtjax.audit.item_evidence import ItemEvidence, curves_of, judged_items, seen_cells
from irtjax.audit.item_mixture import ROWS, Counts, Mixture
from irtjax.audit.wrong_key import WrongKeys, expected_false, judged_keys
from irtjax.data.answers import KEY, NO_CELL, UNKNOWN, Answers
from irtjax.data.responses import ResponseMatrix
from irtjax.data.simulate_answers import drawn_options

__all__ = ["bootstrap_rates"]

# Most items a sample: rates need no more.
_N_ITEMS = 12_288
# Wrong options of items judged by responses only: what `item_mixture` takes for granted.
_N_OPTIONS, _CONCENTRATION = 10, 0.3
# Drawn items that the expected rate is worth: a handful of drawn ones says little.
_EXPECTED_COUNT = 10


@dataclasses.dataclass(frozen=True)
class _Drawn:
    """Answers of drawn items, and whether their keys are wrong."""

    answers: Answers
    is_wrong: np.ndarray


def bootstrap_rates(
    evidence: ItemEvidence,
    keys: WrongKeys,
    answers: Answers | None,
    data: ResponseMatrix,
    *,
    n_samples: int,
    seed: int,
) -> np.ndarray:
    """False discovery rate at each item's probability: the share of right keys at or above it.

    The mean of 1 - the probability over the items at or above it, which is all there is where no
    drawn item reaches a probability, counts as much as 10 drawn items. A lower probability never
    has a lower rate.

    Args:
        evidence: of the real items.
        keys: what was found about them.
        answers: of the real items, or None.
        data: whose cells are observed.
        n_samples: how often all items are drawn.
        seed: of the draws.
    """
    by_answers = np.zeros(data.n_items, bool) if answers is None else answers.is_judged
    probability, is_wrong, is_by_answers = [], [], []
    for rng in np.random.default_rng(seed).spawn(n_samples):
        items = np.arange(0, data.n_items, -(-data.n_items // _N_ITEMS))
        drawn, judged = _sample(evidence, keys, answers, data, items, rng)
        probability.append(judged.probability)
        is_wrong.append(drawn.is_wrong)
        is_by_answers.append(by_answers[items])
    rate = np.empty(data.n_items)
    for chosen in (by_answers, ~by_answers):
        rate[chosen] = expected_false(keys.probability[chosen])
    for which in (True, False) if n_samples else ():
        same = np.concatenate(is_by_answers) == which
        chosen = by_answers == which
        if same.any() and chosen.any():
            rate[chosen] = _rates(
                np.concatenate(probability)[same],
                np.concatenate(is_wrong)[same],
                keys.probability[chosen],
            )
    return rate


def _rates(drawn: np.ndarray, is_wrong: np.ndarray, asked: np.ndarray) -> np.ndarray:
    """Share of right keys among drawn probabilities at or above each asked one."""
    order = np.argsort(-drawn, kind="stable")
    n_right = np.concatenate([[0], np.cumsum(~is_wrong[order])])
    count = np.searchsorted(-drawn[order], -asked, side="right")
    rate = (n_right[count] + _EXPECTED_COUNT * expected_false(asked)) / (count + _EXPECTED_COUNT)
    falling = np.argsort(-asked, kind="stable")
    rate[falling] = np.maximum.accumulate(rate[falling])
    return rate


def _sample(
    evidence: ItemEvidence,
    keys: WrongKeys,
    answers: Answers | None,
    data: ResponseMatrix,
    items: np.ndarray,
    rng: np.random.Generator,
) -> tuple[_Drawn, WrongKeys]:
    """Draw answers to items like these, and judge them."""
    whole = evidence.composite
    composite = Composite(whole.ability, whole.error, whole.group[items], whole.benchmark[items])
    code = seen_cells(data, items) if answers is None else answers.code[:, items]
    by_answers = np.zeros(len(items), bool) if answers is None else answers.is_judged[items]
    n_options = np.full(len(items), _N_OPTIONS, np.int32)
    if answers is not None:
        n_options = np.where(by_answers, answers.n_options[items], n_options)
        if answers.is_answered is not None:
            is_known = answers.is_answered[:, items] & answers.is_telling[items]
            is_gap = (code != NO_CELL) & ~is_known
            code = np.where(is_gap, UNKNOWN, code)
    concentration = np.where(by_answers, keys.concentration, _CONCENTRATION)
    is_wrong = rng.random(len(items)) < np.where(by_answers, keys.share[1], keys.share[0])
    drawn = np.full(code.shape, NO_CELL, np.int16)
    for g in np.unique(composite.group).tolist():
        curves = np.exp(np.asarray(curves_of(composite, g).without_wrong_key().log_right))
        chosen = np.flatnonzero(composite.group == g)
        for start in range(0, len(chosen), ROWS):
            rows = chosen[start : start + ROWS]
            p = curves[:, _drawn_curves(evidence.mixture, evidence.falling[items[rows]], rng)]
            is_known = rng.random(p.shape) < p
            popularity = _popularity(n_options[rows], concentration[rows], rng)
            option = np.where(is_known, 0, drawn_options(rng, popularity, len(p)))
            key = np.where(is_wrong[rows], drawn_options(rng, popularity, 1)[0], 0)
            drawn[:, rows] = _recoded(option, key, code[:, rows])
    names: list[tuple[str, ...]] = [()] * len(items)
    made = Answers(drawn, n_options, by_answers, names)
    judged = judged_items(composite, evidence.mixture, lambda which: _key_counts(drawn, which))
    return _Drawn(made, is_wrong), judged_keys(judged, None if answers is None else made)


def _drawn_curves(mixture: Mixture, falling: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Index of a regular or falling curve for each of some items.

    Args:
        mixture: shares of the curves.
        falling: items, how likely each falls.
        rng: of the draws.
    """
    n_items = len(falling)
    weight = mixture.weight / mixture.weight.sum()
    regular = rng.choice(N_REGULAR, n_items, p=weight)
    # Falling items, mild or steep, have the places of regular ones.
    is_steep = rng.random(n_items) < mixture.steep
    fallen = N_REGULAR + N_PLACES * is_steep + regular % N_PLACES
    return np.where(rng.random(n_items) < falling, fallen, regular)


def _popularity(
    n_options: np.ndarray, concentration: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Items x wrong options, Dirichlet; 0 past an item's last one."""
    size = np.arange(int(n_options.max()) - 1)
    share = rng.standard_gamma(np.broadcast_to(concentration[:, None], (len(n_options), len(size))))
    share = np.where(size < n_options[:, None] - 1, np.maximum(share, 1e-30), 0)
    return share / share.sum(axis=1, keepdims=True)


def _recoded(option: np.ndarray, key: np.ndarray, like: np.ndarray) -> np.ndarray:
    """Codes with the key as `KEY`, the right option in its place, in the observed cells."""
    code = np.where(option == key, KEY, np.where(option == KEY, key, option))
    code = np.where((like == UNKNOWN) & (code != KEY), UNKNOWN, code)
    return np.where(like == NO_CELL, NO_CELL, code).astype(np.int16)


def _key_counts(code: np.ndarray, items: np.ndarray) -> Iterator[Counts]:
    for start in range(0, len(items), ROWS):
        part = code[:, items[start : start + ROWS]].T
        is_wrong = (part != KEY) & (part != NO_CELL)
        yield Counts((part == KEY).astype(np.float32), is_wrong.astype(np.float32))

"""Which option is the right one, by the answers of all models.

Under the hypothesis that option k is right, whether models take k follows the curve of an ordinary
item; which wrong options the others take is Dirichlet-multinomial. An item whose key is wrong has
another right option, each as likely before, and its recorded key is a wrong one drawn by
popularity.

A wrong response without an answer says only that the model did not take the key: were option k
right, of probability `1 - (1 - P) q`, q being how many of those that miss the item take the key.
"""

import dataclasses
from collections.abc import Iterator

import jax.numpy as jnp
import numpy as np
from scipy.special import gammaln, logsumexp

from irtjax.audit.item_curves import CHOSEN, Curves
from irtjax.audit.item_evidence import ItemEvidence, curves_of
from irtjax.audit.item_mixture import ROWS, Counts, either_right_kind, evidence_of
from irtjax.data.answers import KEY, NO_CELL, UNKNOWN, Answers

__all__ = ["OptionEvidence", "option_evidence"]

# Concentrations that are tried: from one wrong option that all take, to all taken alike.
_CONCENTRATIONS = np.exp(np.linspace(np.log(0.05), np.log(5), 24))
# Where few wrong options are known, how like each other they are is taken as it usually is, give or
# take a factor of e^.5: the likelihood of one answer an item is the same at any concentration.
_USUAL, _LOG_SPREAD = 0.3, 0.5
_UNSEEN = 1 << 14  # code of an option that nobody chose


@dataclasses.dataclass(frozen=True)
class OptionEvidence:
    """Evidence of the answers to some items.

    Attributes:
        log_ratio: items, log-likelihood of a wrong key against that of a right one.
        best: items, code of the likeliest other option; -1 where it is one that nobody chose.
        concentration: of the Dirichlet distribution of the wrong options.
    """

    log_ratio: np.ndarray
    best: np.ndarray
    concentration: float


@dataclasses.dataclass(frozen=True)
class _Options:
    """Options that were chosen (and every key), sorted by item and code, and one unseen an item."""

    item: np.ndarray
    code: np.ndarray
    count: np.ndarray


def option_evidence(answers: Answers, evidence: ItemEvidence, items: np.ndarray) -> OptionEvidence:
    """Compare every option as the key.

    Args:
        answers: of all models and items.
        evidence: abilities and shares of the curves, from the responses.
        items: which to judge, ascending; of each the answers are telling.
    """
    options = _options(answers, items)
    n_options = answers.n_options[items].astype(float)
    concentration = _concentration(options, n_options)
    wrong = _WrongOptions(options, n_options, concentration)
    curve = _curve_likelihoods(answers, evidence, items, options)
    has_gaps = (answers.code[:, items] == UNKNOWN).any(axis=0)
    rows = np.flatnonzero(has_gaps[options.item] & (options.code != KEY))
    if len(rows):
        curve[rows] = _with_gaps(answers, evidence, items, options, rows, wrong.share_of_key())
    is_key = options.code == KEY
    # An unseen option stands for all of them.
    is_unseen = options.code == _UNSEEN
    n_seen = np.bincount(options.item, ~is_unseen, len(items))
    n_like = np.where(is_unseen, n_options[options.item] - n_seen[options.item], 1)
    with np.errstate(divide="ignore"):
        other = curve + wrong.beside_another_key() + np.log(np.maximum(n_like, 0))
    other[is_key] = -np.inf
    starts = np.flatnonzero(is_key)
    highest = np.maximum.reduceat(other, starts)
    total = np.add.reduceat(np.exp(other - highest[options.item]), starts)
    best = np.full(len(items), -1)
    is_best = other == highest[options.item]
    best[options.item[is_best]] = np.where(is_unseen, -1, options.code)[is_best]
    ratio = np.log(total) + highest - (curve + wrong.beside_the_key())[is_key]
    return OptionEvidence(ratio, best, concentration)


def _options(answers: Answers, items: np.ndarray) -> _Options:
    code = answers.code[:, items]
    n_codes = int(max(code.max(), KEY)) + 1
    row, column = np.nonzero(code >= KEY)
    cell = column.astype(np.int64) * n_codes + code[row, column]
    count = np.bincount(cell, minlength=len(items) * n_codes).reshape(len(items), n_codes)
    item, option = np.nonzero((count > 0) | (np.arange(n_codes) == KEY))
    every = np.arange(len(items))
    joined = _Options(
        np.concatenate([item, every]),
        np.concatenate([option, np.full(len(items), _UNSEEN)]),
        np.concatenate([count[item, option], np.zeros(len(items), int)]),
    )
    order = np.lexsort((joined.code, joined.item))
    return _Options(joined.item[order], joined.code[order], joined.count[order].astype(float))


def _curve_likelihoods(
    answers: Answers, evidence: ItemEvidence, items: np.ndarray, options: _Options
) -> np.ndarray:
    """Log-likelihood of who took each option, as the right one of an ordinary item."""
    found = np.empty(len(options.code))
    owner = items[options.item]
    group = evidence.composite.group[owner]
    for g in np.unique(group).tolist():
        chosen = np.flatnonzero(group == g)
        curves = curves_of(evidence.composite, g).without_wrong_key()
        counts = _option_counts(answers.code, owner[chosen], options.code[chosen])
        each = evidence_of(counts, curves, evidence.mixture)
        found[chosen] = either_right_kind(each, evidence.falling[owner[chosen]])
    return found


def _with_gaps(
    answers: Answers,
    evidence: ItemEvidence,
    items: np.ndarray,
    options: _Options,
    rows: np.ndarray,
    share: np.ndarray,
) -> np.ndarray:
    """`_curve_likelihoods` of other options than the key, where some wrong ones are not known.

    Args:
        answers: of all models and items.
        evidence: abilities and shares of the curves.
        items: that are judged.
        options: of the items.
        rows: which options are asked for.
        share: options x `CHOSEN`, log-probability of the share of the key among wrong answers.
    """
    found = np.empty(len(rows))
    owner = items[options.item[rows]]
    group = evidence.composite.group[owner]
    for g in np.unique(group).tolist():
        chosen = np.flatnonzero(group == g)
        curves = curves_of(evidence.composite, g).without_wrong_key()
        each = []
        for q in CHOSEN.tolist():
            counts = _gap_counts(answers.code, owner[chosen], options.code[rows[chosen]])
            likelihood = evidence_of(counts, _gap_curves(curves, q), evidence.mixture)
            each.append(either_right_kind(likelihood, evidence.falling[owner[chosen]]))
        found[chosen] = logsumexp(np.stack(each, axis=1) + share[rows[chosen]], axis=1)
    return found


def _gap_curves(curves: Curves, chosen: float) -> Curves:
    """The models, and below them the models again: not taking the key, and (unused) taking it."""
    key = chosen * jnp.exp(curves.log_wrong)
    return Curves(
        jnp.concatenate([curves.log_right, jnp.log1p(-key)]),
        jnp.concatenate([curves.log_wrong, jnp.log(key)]),
    )


def _gap_counts(code: np.ndarray, item: np.ndarray, option: np.ndarray) -> Iterator[Counts]:
    for start in range(0, len(item), ROWS):
        rows = slice(start, start + ROWS)
        given = code[:, item[rows]].T
        is_right = given == option[rows, None]
        is_wrong = (given >= KEY) & ~is_right
        right = np.concatenate([is_right, given == UNKNOWN], axis=1)
        wrong = np.concatenate([is_wrong, np.zeros_like(is_wrong)], axis=1)
        yield Counts(right.astype(np.float32), wrong.astype(np.float32))


def _option_counts(code: np.ndarray, item: np.ndarray, option: np.ndarray) -> Iterator[Counts]:
    for start in range(0, len(item), ROWS):
        rows = slice(start, start + ROWS)
        given = code[:, item[rows]].T
        is_right = given == option[rows, None]
        is_wrong = (given != NO_CELL) & ~is_right
        yield Counts(is_right.astype(np.float32), is_wrong.astype(np.float32))


class _WrongOptions:
    """Log-probabilities of the wrong answers, by who took which, given which option is right.

    With counts n_i of M wrong options and concentration a it is
    `Gamma(M a) / Gamma(M a + n) prod_i Gamma(a + n_i) / Gamma(a)`.
    """

    def __init__(self, options: _Options, n_options: np.ndarray, concentration: float) -> None:
        self.options = options
        self.total = (n_options - 1) * concentration
        self.concentration = concentration
        self.each = gammaln(concentration + options.count) - gammaln(concentration)
        n_items = len(n_options)
        self.sum_of_each = np.bincount(options.item, self.each, n_items)
        self.n_answers = np.bincount(options.item, options.count, n_items)

    def beside_the_key(self) -> np.ndarray:
        """For every option, were it the right one."""
        item = self.options.item
        n_wrong = self.n_answers[item] - self.options.count
        product = self.sum_of_each[item] - self.each
        return product + gammaln(self.total[item]) - gammaln(self.total[item] + n_wrong)

    def beside_another_key(self) -> np.ndarray:
        """For every option but the key, were it the right one and the key a drawn wrong one.

        The draw is one more wrong answer, of probability `(a + n_key) / (M a + n)`. Its mean over
        the items, 1 / M, is what a known key is worth: M options may be the right one, and each
        has that share of the prior, so that both cancel.
        """
        item, is_key = self.options.item, self.options.code == KEY
        at_key = np.bincount(item, np.where(is_key, self.options.count, 0), len(self.total))
        n_wrong = self.n_answers[item] - self.options.count
        drawn = np.log(self.concentration + at_key[item]) - np.log(self.total[item] + n_wrong)
        return self.beside_the_key() + drawn

    def share_of_key(self) -> np.ndarray:
        """Log-probability of each share `CHOSEN` of a wrong key, by the known wrong answers.

        The share's distribution is `Beta(a + n_key + 1, (M - 1) a + n_other)`.
        """
        item, is_key = self.options.item, self.options.code == KEY
        at_key = np.bincount(item, np.where(is_key, self.options.count, 0), len(self.total))[item]
        other = self.n_answers[item] - self.options.count - at_key
        rest = np.maximum(self.total[item] - self.concentration, self.concentration)
        height = (self.concentration + at_key)[:, None] * np.log(CHOSEN)
        height += (rest + other - 1)[:, None] * np.log1p(-CHOSEN)
        # The values stand for stretches of unequal length.
        height += np.log(np.gradient(CHOSEN))
        return height - logsumexp(height, axis=1, keepdims=True)


def _concentration(options: _Options, n_options: np.ndarray) -> float:
    """The most probable concentration, were all keys right."""
    prior = -0.5 * (np.log(_CONCENTRATIONS / _USUAL) / _LOG_SPREAD) ** 2
    is_key = options.code == KEY
    values = [
        np.sum(_WrongOptions(options, n_options, a).beside_the_key()[is_key])
        for a in _CONCENTRATIONS.tolist()
    ]
    return float(_CONCENTRATIONS[int(np.argmax(values + prior))])

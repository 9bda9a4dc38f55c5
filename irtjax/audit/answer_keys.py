"""Which option is the right one, by the answers of all models.

Under the hypothesis that option k is right, whether models take k follows the curve of an ordinary
item; which wrong options the others take is Dirichlet-multinomial. An item whose key is wrong has
another right option, each as likely before, and its recorded key is a wrong one drawn by
popularity.
"""

import dataclasses
from collections.abc import Iterator

import numpy as np
from scipy.special import gammaln

from irtjax.audit.item_evidence import ItemEvidence, curves_of
from irtjax.audit.item_mixture import ROWS, Counts, evidence_of
from irtjax.data.answers import KEY, NO_CELL, Answers

__all__ = ["OptionEvidence", "option_evidence"]

# Concentrations that are tried: from one wrong option that all take, to all taken alike.
_CONCENTRATIONS = np.exp(np.linspace(np.log(0.05), np.log(5), 24))
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
        items: which to judge, ascending; each has a key.
    """
    options = _options(answers, items)
    curve = _curve_likelihoods(answers, evidence, items, options)
    n_options = answers.n_options[items].astype(float)
    concentration = _concentration(options, n_options)
    wrong = _WrongOptions(options, n_options, concentration)
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
    falling = evidence.mixture.falling
    owner = items[options.item]
    group = evidence.composite.group[owner]
    for g in np.unique(group).tolist():
        chosen = np.flatnonzero(group == g)
        curves = curves_of(evidence.composite, g).without_wrong_key()
        counts = _option_counts(answers.code, owner[chosen], options.code[chosen])
        each = evidence_of(counts, curves, evidence.mixture)
        found[chosen] = np.logaddexp(
            np.log1p(-falling) + each.regular, np.log(falling) + each.falling
        )
    return found


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


def _concentration(options: _Options, n_options: np.ndarray) -> float:
    """The likeliest concentration, were all keys right."""
    is_key = options.code == KEY
    values = [
        np.sum(_WrongOptions(options, n_options, a).beside_the_key()[is_key])
        for a in _CONCENTRATIONS.tolist()
    ]
    return float(_CONCENTRATIONS[int(np.argmax(values))])

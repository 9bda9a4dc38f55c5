"""Which items have a wrong key: the probability of each, and how often such claims are false.

Bayesian model comparison of three kinds of items (regular, falling, wrong key) with everything
else about an item integrated out over a grid (`irtjax.audit.item_curves`). With answers, the
alternatives are all other options as the right one (`irtjax.audit.answer_keys`).
"""

import dataclasses
from typing import Any

import numpy as np
import pandas as pd

from irtjax.audit.answer_keys import OptionEvidence, option_evidence
from irtjax.audit.item_evidence import ItemEvidence, item_evidence
from irtjax.audit.item_mixture import Evidence, either_right_kind, shares_of_wrong_keys
from irtjax.data.answers import Answers, coded_answers
from irtjax.fit.result import FitResult

__all__ = ["WrongKeys", "judged_keys", "wrong_key_table", "wrong_keys"]


@dataclasses.dataclass(frozen=True)
class WrongKeys:
    """What is known about each item's key.

    Attributes:
        log_ratio: items, natural log-likelihood of a wrong key against a right one.
        probability: items, posterior probability that the key is wrong.
        best: items, code of the likeliest other option; -1 where none is known.
        concentration: of the wrong options' Dirichlet distribution; NaN where no item is judged
            by answers.
        share: of the items, estimated to have a wrong key: of those judged by responses, and of
            those judged by answers.
    """

    log_ratio: np.ndarray
    probability: np.ndarray
    best: np.ndarray
    concentration: float
    share: tuple[float, float]


def wrong_keys(fit: FitResult, answers: Any = None) -> pd.DataFrame:
    """How likely each item's key is wrong, by responses and, where given, by answers.

    Args:
        fit: abilities come from it; any number of dims, with or without effects.
        answers: a data frame with the columns `model_id`, `item_id`, `answer`, `key` (as
            `read_answers` gives it); items without a key in it, or without any wrong option by
            name, are judged by responses only.

    Returns:
        A row an item in the data's order: `item_id`, `log_likelihood_ratio` (natural; of a wrong
        key against a right one: the score to rank by), `probability` that the key is wrong,
        `false_discovery_rate` (expected share of right keys among the items with this probability
        or more), `key` and `suggested_key` (empty without answers).

    Raises:
        InputError: answers that do not fit the data.
    """
    coded = None if answers is None else coded_answers(answers, fit.data)
    return wrong_key_table(fit, judged_keys(item_evidence(fit), coded), coded)


def judged_keys(evidence: ItemEvidence, answers: Answers | None) -> WrongKeys:
    """Compare the hypotheses for every item.

    Args:
        evidence: of the responses.
        answers: where there are some.
    """
    ratio = response_log_ratio(evidence.items, evidence.falling)
    n_items = len(ratio)
    best, concentration = np.full(n_items, -1), float("nan")
    by_answers = np.zeros(n_items, bool) if answers is None else answers.is_judged
    if answers is not None and by_answers.any():
        items = np.flatnonzero(answers.is_telling)
        found: OptionEvidence = option_evidence(answers, evidence, items)
        ratio[items], best[items] = found.log_ratio, found.best
        concentration = found.concentration
    # Items with a key have one share of wrong ones, whatever their answers tell: items of which a
    # wrong option is known are those that many models miss, and alone they would have too high one.
    probability, share = np.zeros(n_items), [evidence.mixture.wrong_key] * 2
    for which, chosen in enumerate((~by_answers, by_answers)):
        if chosen.any():
            probability[chosen], share[which] = shares_of_wrong_keys(ratio[chosen])
    return WrongKeys(ratio, probability, best, concentration, (share[0], share[1]))


def response_log_ratio(items: Evidence, falling: np.ndarray) -> np.ndarray:
    """Log-likelihood of a wrong key against a regular or falling item, by responses."""
    return items.wrong_key - either_right_kind(items, falling)


def expected_false(probability: np.ndarray) -> np.ndarray:
    """Mean of 1 - probability over the items with this probability or more.

    >>> expected_false(np.array([0.5, 0.9, 0.1])).round(2).tolist()
    [0.3, 0.1, 0.5]
    """
    order = np.argsort(-probability, kind="stable")
    mean = np.cumsum(1 - probability[order]) / np.arange(1, len(order) + 1)
    # Items of one probability share the mean over all of them.
    last = np.searchsorted(-probability[order], -probability, side="right") - 1
    return mean[last]


def wrong_key_table(fit: FitResult, keys: WrongKeys, answers: Answers | None) -> pd.DataFrame:
    """The columns of `wrong_keys`."""
    n_items = fit.data.n_items
    key, suggested = np.full(n_items, "", object), np.full(n_items, "", object)
    if answers is not None:
        for j, options in enumerate(answers.options):
            if options:
                key[j] = options[0]
                suggested[j] = options[keys.best[j]] if keys.best[j] > 0 else ""
    return pd.DataFrame(
        {
            "item_id": fit.data.item_ids,
            "log_likelihood_ratio": keys.log_ratio,
            "probability": keys.probability,
            "false_discovery_rate": expected_false(keys.probability),
            "key": key,
            "suggested_key": suggested,
        }
    )

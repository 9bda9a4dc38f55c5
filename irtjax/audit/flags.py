"""`flag_items`: every item worth a look, with a number, a threshold and its reason."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit

from irtjax.audit.composite import Composite, benchmark_codes
from irtjax.audit.dependence import closest_items
from irtjax.audit.flag_names import FLAGS
from irtjax.audit.flag_rules import (
    WRONG_KEY,
    Flagged,
    asymptote_flags,
    dependence_flags,
    identical_flags,
    slope_flags,
    total_flags,
)
from irtjax.audit.item_evidence import ItemEvidence, item_evidence
from irtjax.audit.key_bootstrap import bootstrap_rates
from irtjax.audit.quality import highest_logits, item_quality
from irtjax.audit.shared_cells import copied_items
from irtjax.audit.wrong_key import judged_keys, wrong_key_table
from irtjax.checks import check_whole
from irtjax.data.answers import KEY, NO_CELL, UNKNOWN, Answers, coded_answers
from irtjax.data.checks import check_seed
from irtjax.fit.all_responses import all_responses
from irtjax.fit.result import FitResult

__all__ = ["flag_items"]


def flag_items(
    fit: FitResult, answers: Any = None, *, bootstrap: int = 2, seed: int = 0
) -> pd.DataFrame:
    """All flags of all items, the most pressing first.

    Args:
        fit: any estimator and number of dims, with or without effects.
        answers: a data frame with the columns `model_id`, `item_id`, `answer`, `key` (as
            `read_answers` gives it), for the likely wrong keys; items without a key in it, or
            without any wrong option by name, are judged by responses only.
        bootstrap: samples drawn for the false discovery rate of wrong keys; with 0 it is the mean
            of 1 - the probability.
        seed: of what is drawn.

    Returns:
        A row an item and flag: `rank` (1 is to be looked at first), `item_id`, the benchmark where
        items have one, `flag` (the names of `irtjax.audit.flag_names.FLAGS`, which order them),
        `value`, `threshold`, `false_discovery_rate` (expected share of false ones among the items
        with this flag down to this one; NaN for statements of fact), `reason`.

    Raises:
        InputError: answers that do not fit the data, settings that are no whole numbers.
    """
    check_whole("bootstrap", bootstrap, 0)
    check_seed(seed)
    coded = None if answers is None else coded_answers(answers, fit.data)
    evidence = item_evidence(fit)
    table, ids = fit.item_parameters(), fit.data.item_ids
    columns, draws = np.random.default_rng(seed).spawn(2)
    benchmark = benchmark_codes(fit.data) if fit.group is None else fit.groups()[0]
    twins = closest_items(fit, benchmark, columns)
    copies = copied_items(fit.data, evidence, twins, benchmark)
    found = [
        _key_flags(fit, evidence, coded, bootstrap, int(draws.integers(2**31))),
        identical_flags(copies, ids),
        dependence_flags(twins, copies, ids),
        *slope_flags(table, item_quality(fit), _at_top(fit, table), fit.spec.dims),
        *asymptote_flags(evidence, None if coded is None else coded.n_options * coded.has_key),
        *total_flags(fit.data.totals("items")[0], *all_responses(fit).totals("items")),
    ]
    return _joined(fit, found)


def _key_flags(
    fit: FitResult, evidence: ItemEvidence, answers: Answers | None, n_samples: int, seed: int
) -> Flagged:
    """`wrong_key`: a probability of `WRONG_KEY` or more."""
    keys = judged_keys(evidence, answers)
    rate = bootstrap_rates(evidence, keys, answers, fit.data, n_samples=n_samples, seed=seed)
    table = wrong_key_table(fit, keys, answers)
    probability = table["probability"].to_numpy()
    item = np.flatnonzero(probability >= WRONG_KEY)
    item = item[np.argsort(-table["log_likelihood_ratio"].to_numpy()[item], kind="stable")]
    reasons = [_key_reason(j, table, evidence.composite, answers, keys.best) for j in item.tolist()]
    # Items judged by answers and by responses have rates of their own, and one order.
    down = np.maximum.accumulate(rate[item])
    return Flagged("wrong_key", item, probability[item], WRONG_KEY, reasons, down)


def _key_reason(
    j: int, table: pd.DataFrame, composite: Composite, answers: Answers | None, best: np.ndarray
) -> str:
    ratio = float(table["log_likelihood_ratio"].to_numpy()[j])
    odds = f"a wrong key is {np.exp(min(ratio, 50.0)):.3g} times as likely to give these responses"
    if answers is None or not answers.is_telling[j]:
        return f"better models are right less often; {odds}"
    ability = composite.ability[:, composite.group[j]]
    code = answers.code[:, j]
    strong = code[(code != NO_CELL) & (ability >= np.median(ability))]
    n_key, n_unknown = int(np.sum(strong == KEY)), int(np.sum(strong == UNKNOWN))
    key = f"{n_key} of {len(strong)} strong models answer the key {table['key'].iat[j]!r}"
    if n_key == len(strong):
        return f"{odds}, although {key}"
    if best[j] <= KEY:
        is_unknown = n_key + n_unknown == len(strong)
        known = "the others no option in common"
        others = "what the others answer is not known" if is_unknown else known
        return f"{key}, {others}; {odds}"
    return (
        f"{int(np.sum(strong == best[j]))} answer {table['suggested_key'].iat[j]!r}, {key}; {odds}"
    )


def _at_top(fit: FitResult, table: pd.DataFrame) -> np.ndarray:
    """Probability of a right answer at the highest ability."""
    logit = highest_logits(fit, table)[0]
    low, high = table["guessing"].to_numpy(), table["feasibility"].to_numpy()
    return low + (high - low) * expit(logit)


def _joined(fit: FitResult, found: Sequence[Flagged]) -> pd.DataFrame:
    """All flags below each other, in the order of the vocabulary."""
    order = list(FLAGS)
    parts = []
    for each in sorted(found, key=lambda part: order.index(part.flag)):
        parts.append(
            pd.DataFrame(
                {
                    "item": each.item,
                    "flag": each.flag,
                    "value": each.value,
                    "threshold": float(each.threshold),
                    "false_discovery_rate": each.rate,
                    "reason": each.reason,
                }
            )
        )
    table = pd.concat([part for part in parts if len(part)] or parts[:1], ignore_index=True)
    item = table.pop("item").to_numpy()
    table.insert(0, "rank", np.arange(1, len(table) + 1))
    table.insert(1, "item_id", fit.data.item_ids[item])
    if "benchmark" in fit.data.item_metadata:
        table.insert(2, "benchmark", fit.data.item_metadata["benchmark"].to_numpy()[item])
    return table

"""Wrong answer keys found: AUC of the score and of simple ones, and its false discovery rate.

    python -m benchmarks wrong_keys

12,000 items of 10 options, 1% of the keys wrong (`irtjax.simulate_answers`), 100 and 30 models,
5 seeds (`--runs` changes that). Beside the score of `irtjax.wrong_keys`, by responses only and
with answers: minus the item-total correlation, minus accuracy, and the best of three vote margins
(the most popular other option minus the key, models weighted by exp(ability), exp(2 ability) or
their ability above the mean). `found` counts the items at the flag's threshold over all seeds.
"""

import statistics
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from rich.table import Table
from scipy.stats import rankdata

from irtjax.audit.flag_rules import WRONG_KEY
from irtjax.audit.item_evidence import item_evidence
from irtjax.audit.key_bootstrap import bootstrap_rates
from irtjax.audit.wrong_key import judged_keys
from irtjax.data.answers import KEY, coded_answers
from irtjax.data.simulate_answers import simulate_answers
from irtjax.fit.api import fit

__all__ = ["auc", "run", "simple_scores", "table"]

N_MODELS = (100, 30)
N_ITEMS = 12_000
_N_SEEDS = 5
_BOOTSTRAP = 2


def auc(score: np.ndarray, is_wrong: np.ndarray) -> float:
    """Chance that a wrong key has a higher score than a right one."""
    rank, n = rankdata(score), int(is_wrong.sum())
    return float((rank[is_wrong].sum() - n * (n + 1) / 2) / (n * (len(score) - n)))


def simple_scores(
    response: np.ndarray, code: np.ndarray, ability: np.ndarray
) -> dict[str, np.ndarray]:
    """What needs no model: higher where the key is likelier wrong.

    Args:
        response: models x items, 0 or 1.
        code: models x items, options by code.
        ability: models.
    """
    total = response.mean(axis=1) - response.mean()
    centred = response - response.mean(axis=0)
    with np.errstate(invalid="ignore"):
        correlation = total @ centred / np.sqrt(np.sum(centred**2, axis=0) * np.sum(total**2))
    scores = {
        "item_total": -np.nan_to_num(correlation),
        "accuracy": -response.mean(axis=0),
    }
    weights = {"exp": np.exp(ability), "exp2": np.exp(2 * ability), "above": np.maximum(ability, 0)}
    options = range(int(code.max()) + 1)
    for name, weight in weights.items():
        votes = np.stack([weight @ (code == option) for option in options])
        scores[f"vote_{name}"] = votes[KEY + 1 :].max(axis=0) - votes[KEY]
    return scores


def _measured(n_models: int, seed: int) -> dict[str, Any]:
    made = simulate_answers(n_models=n_models, n_items=N_ITEMS, seed=seed)
    result = fit(made.data)
    answers = coded_answers(made.answers, made.data)
    start = time.process_time()
    evidence = item_evidence(result)
    responses_seconds = time.process_time() - start
    found: dict[str, Any] = {"seconds": {"responses": responses_seconds}, "auc": {}, "flagged": {}}
    for name, given in (("responses", None), ("answers", answers)):
        start = time.process_time()
        keys = judged_keys(evidence, given)
        if given is not None:
            found["seconds"][name] = responses_seconds + time.process_time() - start
        rate = bootstrap_rates(evidence, keys, given, made.data, n_samples=_BOOTSTRAP, seed=seed)
        chosen = keys.probability >= WRONG_KEY
        found["auc"][name] = auc(keys.log_ratio, made.is_wrong_key)
        found["flagged"][name] = {
            "n": int(chosen.sum()),
            "false": int(np.sum(chosen & ~made.is_wrong_key)),
            "expected_false": float(np.sum(1 - keys.probability[chosen])),
            "bootstrap_false": float(rate[chosen].max() * chosen.sum()) if chosen.any() else 0.0,
        }
    ability = np.asarray(result.parameters.ability)[:, 0]
    scores = simple_scores(made.data.to_dense(), answers.code, ability)
    found["auc"] |= {name: auc(score, made.is_wrong_key) for name, score in scores.items()}
    return found


def run(n_runs: int = 0) -> dict[str, Any]:
    """Every number of models over the seeds, their mean and what was flagged."""
    results = {}
    for n_models in N_MODELS:
        seeds = [_measured(n_models, seed) for seed in range(n_runs or _N_SEEDS)]
        mean = {
            name: statistics.fmean(each["auc"][name] for each in seeds) for name in seeds[0]["auc"]
        }
        flagged = {
            name: _rates([each["flagged"][name] for each in seeds])
            for name in ("responses", "answers")
        }
        seconds = {
            name: statistics.median(each["seconds"][name] for each in seeds)
            for name in ("responses", "answers")
        }
        results[str(n_models)] = {
            "auc": mean, "flagged": flagged, "cpu_seconds": seconds, "seeds": seeds
        }  # fmt: skip
    return results


def _rates(flagged: list[dict[str, float]]) -> dict[str, float]:
    total = {name: sum(each[name] for each in flagged) for name in flagged[0]}
    count = max(total["n"], 1)
    return {
        "n": total["n"],
        "false_discovery_rate": total["false"] / count,
        "estimated": total["expected_false"] / count,
        "bootstrap": total["bootstrap_false"] / count,
    }


def table(measured: Mapping[str, Any]) -> Table:
    """A row a number of models and kind of data."""
    shown = Table(title="wrong keys: AUC, and the flag's false discovery rate")
    headings = (
        "models", "from", "AUC", "item-total", "accuracy", "best vote", "flagged", "false",
        "estimated", "bootstrap", "CPU s",
    )  # fmt: skip
    for name in headings:
        shown.add_column(name, justify="right")
    for n_models, each in measured.items():
        areas = each["auc"]
        vote = max(value for name, value in areas.items() if name.startswith("vote"))
        for name in ("responses", "answers"):
            flagged = each["flagged"][name]
            numbers = [areas[name], areas["item_total"], areas["accuracy"], vote]
            rates = [flagged[key] for key in ("false_discovery_rate", "estimated", "bootstrap")]
            shown.add_row(
                n_models,
                name,
                *(f"{number:.4f}" for number in numbers),
                f"{flagged['n']:,}",
                *(f"{rate:.2f}" for rate in rates),
                f"{each['cpu_seconds'][name]:.1f}",
            )
    return shown

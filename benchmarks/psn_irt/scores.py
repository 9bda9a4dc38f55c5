"""How good a row is: metrics of the held-out cells, and how steadily it ranks the models."""

import statistics
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.stats import kendalltau

from benchmarks.problems import Problem
from benchmarks.psn_irt.parts import drawn_items, halves, restricted
from benchmarks.psn_irt.rows import Outcome, Row, fitted
from benchmarks.quality import inside
from irtjax.model.metrics import all_metrics

__all__ = ["METRICS", "metrics_of", "row_result", "spread"]

METRICS = ("accuracy", "f1", "auc", "log_loss", "brier")


def metrics_of(outcome: Outcome, problem: Problem) -> dict[str, dict[str, float]]:
    """Metrics on all held-out cells, on those outside the copied block, and the ranking."""
    probability, response = inside(outcome.probability), problem.test.response
    found = {"all": _metrics(probability, response)}
    if problem.is_copied is not None:
        honest = ~problem.is_copied
        found["outside"] = _metrics(probability[honest], response[honest])
    accuracy = problem.train.totals("models")[1]
    return found | {"ranking": {"kendall_accuracy": _tau(outcome.rank_by, accuracy)}}


def _metrics(probability: np.ndarray, response: np.ndarray) -> dict[str, float]:
    metrics = all_metrics(probability, response)
    return {name: float(metrics[name]) for name in METRICS}


def _tau(one: np.ndarray, other: np.ndarray) -> float:
    return float(kendalltau(one, other).statistic)


def spread(each: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Mean and sd of every number over like dictionaries; the sd of one is None."""
    return {
        name: spread([one[name] for one in each])
        if isinstance(value, dict)
        else {
            "mean": statistics.fmean(one[name] for one in each),
            "sd": statistics.stdev(one[name] for one in each) if len(each) > 1 else None,
        }
        for name, value in each[0].items()
    }


def row_result(row: Row, problem: Problem, n_seeds: int) -> dict[str, Any]:
    """Everything that the table says of a row.

    Seconds are the median of the fits but for the first, which compiles (`first_cpu_seconds`).
    Ranking by halves is of the first seed: the items are cut in two, each half is fitted.
    """
    if row.n_items is not None:
        problem = restricted(problem, drawn_items(problem.train.n_items, row.n_items, seed=0))
    seeds = range(n_seeds) if row.is_random else (0, 0)
    outcomes = [fitted(row, problem, seed) for seed in seeds]
    counted = outcomes if row.is_random else outcomes[:1]
    one, other = (
        fitted(row, restricted(problem, half), 0).rank_by
        for half in halves(problem.train.n_items, seed=0)
    )
    seconds = [outcome.cpu_seconds for outcome in outcomes]
    return {
        "name": row.name,
        "label": row.label,
        "paper": None if row.paper is None else dict(row.paper),
        "n_seeds": len(counted),
        "n_items": problem.train.n_items,
        "is_subsample": row.n_items is not None,
        "n_cells": len(problem.test),
        "n_outside": None if problem.is_copied is None else int(np.sum(~problem.is_copied)),
        **spread([metrics_of(outcome, problem) for outcome in counted]),
        "kendall_halves": _tau(one, other),
        "cpu_seconds": statistics.median(seconds[1:] or seconds),
        "first_cpu_seconds": seconds[0],
        "notes": [outcome.notes for outcome in counted],
    }

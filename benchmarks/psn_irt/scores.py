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

__all__ = ["METRICS", "N_SPLITS", "halves_result", "metrics_of", "row_result", "spread"]

METRICS = ("accuracy", "f1", "auc", "log_loss", "brier")
# Of the items into halves, of every row: those whose fit has no seed differ by the split too.
N_SPLITS = 5


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


def halves_result(row: Row, problem: Problem, n_splits: int) -> dict[str, Any]:
    """How alike two halves of the items rank the models: `kendall_halves`, over random splits.

    Split k is drawn by seed k, and its halves are fitted with seeds 2k and 2k + 1: with one seed
    for both, the models' rows of a network would start alike, and the noise of their abilities be
    the same. Where seeds make no difference to a fit, splits differ by the cut alone.

    Returns:
        Kendall's tau of the two rankings: mean and sd over splits, and that of each.
    """
    problem = _of_row(row, problem)
    each = []
    for split in range(n_splits):
        parts = halves(problem.train.n_items, seed=split)
        one, other = (
            fitted(row, restricted(problem, items), 2 * split + place).rank_by
            for place, items in enumerate(parts)
        )
        each.append({"tau": _tau(one, other)})
    return {"kendall_halves": spread(each)["tau"] | {"each": [found["tau"] for found in each]}}


def _of_row(row: Row, problem: Problem) -> Problem:
    """The problem on the items of a row: all of them, or its subsample."""
    if row.n_items is None:
        return problem
    return restricted(problem, drawn_items(problem.train.n_items, row.n_items, seed=0))


def row_result(row: Row, problem: Problem, n_seeds: int, n_splits: int) -> dict[str, Any]:
    """Everything that the table says of a row.

    Seconds are the median of the fits but for the first, which compiles (`first_cpu_seconds`).
    """
    part = _of_row(row, problem)
    seeds = range(n_seeds) if row.is_random else (0, 0)
    outcomes = [fitted(row, part, seed) for seed in seeds]
    counted = outcomes if row.is_random else outcomes[:1]
    seconds = [outcome.cpu_seconds for outcome in outcomes]
    return {
        "name": row.name,
        "label": row.label,
        "paper": None if row.paper is None else dict(row.paper),
        "n_seeds": len(counted),
        "n_items": part.train.n_items,
        "is_subsample": row.n_items is not None,
        "n_cells": len(part.test),
        "n_outside": None if part.is_copied is None else int(np.sum(~part.is_copied)),
        **spread([metrics_of(outcome, part) for outcome in counted]),
        # After the fits above: these are to be the first of the process.
        **halves_result(row, problem, n_splits),
        "cpu_seconds": statistics.median(seconds[1:] or seconds),
        "first_cpu_seconds": seconds[0],
        "notes": [outcome.notes for outcome in counted],
    }

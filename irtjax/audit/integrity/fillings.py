"""Accusations of stretches of one value, over all blocks."""

import dataclasses
from collections.abc import Iterator

import numpy as np
from jaxtyping import Float

from irtjax.audit.integrity.accusations import Row, z_of
from irtjax.audit.integrity.blocks import Benchmark, Columns
from irtjax.audit.integrity.filled import (
    Expectation,
    Run,
    expectations,
    is_unusual,
    longest_runs,
    run_log_p,
)
from irtjax.audit.integrity.forms import LEAST_DRIFT, Form, drift_of, fitted_form
from irtjax.audit.integrity.testing import FALSE_ALARMS, adjusted
from irtjax.data.checks import MISSING
from irtjax.data.responses import ResponseMatrix

__all__ = ["filled_rows"]

_VALUES = 2
_DRIFT_MODELS = 50


@dataclasses.dataclass(frozen=True)
class _Items:
    """Number of responses to each item of a benchmark and their sum."""

    count: Float[np.ndarray, " items"]
    right: Float[np.ndarray, " items"]

    def easiness(self, response: Float[np.ndarray, " items"]) -> Float[np.ndarray, " items"]:
        """Logit of each item by the other models, minus the logit of their mean."""
        is_mine = response != MISSING
        right = self.right - np.where(is_mine, response, 0)
        wrong = self.count - is_mine - right
        whole = np.log((right.sum() + 0.5) / (wrong.sum() + 0.5))
        return np.log((right + 0.5) / (wrong + 0.5)) - whole


def filled_rows(
    data: ResponseMatrix,
    columns: Columns,
    benchmarks: list[Benchmark],
    n_cells: Float[np.ndarray, "models benchmarks"],
    total: Float[np.ndarray, "models benchmarks"],
) -> list[Row]:
    """Blocks with a stretch of one value that their model would not have answered.

    Args:
        data: the responses.
        columns: the same by columns.
        benchmarks: the groups of items.
        n_cells: observed cells of each block.
        total: sum of their responses.
    """
    expected = expectations(n_cells, total)
    n_tests = _VALUES * int(np.count_nonzero(n_cells))
    items = [_items(columns, benchmark) for benchmark in benchmarks]
    limit = np.log(FALSE_ALARMS / n_tests)
    drifts: dict[int, float] = {}
    rows = []
    for model in range(data.n_models):
        row = columns.row(model)
        for g in np.flatnonzero(n_cells[model]).tolist():
            response = row[benchmarks[g].items].copy()
            form = float(expected.mean[model, g]), float(expected.spread[model, g])
            for run in longest_runs(response):
                if not is_unusual(run, response):
                    continue
                same = _same(columns, benchmarks[g], model, run)
                easiness = items[g].easiness(response)
                log_p = run_log_p(run, response, easiness, same, *form, LEAST_DRIFT)
                if log_p > limit:
                    continue
                if g not in drifts:
                    drifts[g] = _drift(columns, benchmarks[g], items[g], expected, g)
                log_p = run_log_p(run, response, easiness, same, *form, drifts[g])
                if log_p <= limit:
                    rows.append(_row(data, benchmarks[g], model, run, log_p, n_tests))
                    # What was filled in says nothing of how the model answers elsewhere.
                    response[run.cells] = MISSING
    return rows


def _items(columns: Columns, benchmark: Benchmark) -> _Items:
    count, right = np.zeros(len(benchmark.items)), np.zeros(len(benchmark.items))
    for part, block in columns.chunks(benchmark.items):
        is_observed = block != MISSING
        count[part] = is_observed.sum(axis=0)
        right[part] = np.sum(block, axis=0, where=is_observed, dtype=np.float64)
    return _Items(count, right)


def _drift(
    columns: Columns, benchmark: Benchmark, items: _Items, expected: Expectation, g: int
) -> float:
    """How much models' forms drift along the benchmark, by some of the models."""
    n_models = columns.shape[0]

    def blocks() -> Iterator[tuple[np.ndarray, np.ndarray, Form]]:
        for model in range(0, n_models, -(-n_models // _DRIFT_MODELS)):
            response = columns.row(model)[benchmark.items]
            is_seen = response != MISSING
            seen, easiness = response[is_seen], items.easiness(response)[is_seen]
            form = float(expected.mean[model, g]), float(expected.spread[model, g])
            yield seen, easiness, fitted_form(seen, easiness, *form)

    return drift_of(blocks())


def _same(
    columns: Columns, benchmark: Benchmark, model: int, run: Run
) -> Float[np.ndarray, " cells"]:
    """Share of the other models that gave the run's value to its items; not for 0 and 1."""
    if run.value in (0.0, 1.0):
        return np.zeros(0)
    block = np.delete(columns.take(benchmark.items[run.cells]), model, axis=0)
    return (np.sum(block == run.value, axis=0) + 0.5) / (np.sum(block != MISSING, axis=0) + 1)


def _row(
    data: ResponseMatrix, benchmark: Benchmark, model: int, run: Run, log_p: float, n_tests: int
) -> Row:
    ids = data.item_ids[benchmark.items[run.cells[[0, -1]]]]
    n_run, n_block = len(run.cells), run.n_observed
    said = f"all {n_run:,} responses from {ids[0]} to {ids[1]} are {run.value:g}"
    if n_run < n_block:
        said += f", of {n_block:,} in the block"
    return {
        "kind": "filled",
        "model_id": data.model_ids[model],
        "benchmark": benchmark.name,
        "first_item": ids[0],
        "last_item": ids[1],
        "n_responses": n_run,
        "seen": run.value,
        "expected": float("nan"),
        "z": z_of(log_p),
        "p_adjusted": float(adjusted(np.exp(log_p), n_tests)),
        "explanation": said,
    }

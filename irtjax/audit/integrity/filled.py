"""Stretches of one value: cells that were filled in and not answered."""

import dataclasses

import numpy as np
from jaxtyping import Float, Int
from scipy.special import log_expit, logsumexp

from irtjax.data.checks import MISSING

__all__ = ["Expectation", "Run", "expectations", "is_unusual", "longest_runs", "run_log_p"]

_FEWEST_CELLS = 20
_LEAST_SPREAD = 1.0  # logits; a model's form on one benchmark, known from others
_OWN_SPREAD = 0.5  # logits, known from the block's other cells
_MAD_TO_SD = 1.4826
_FURTHEST = 4.0  # logits of an item from its benchmark's mean
_NODES, _NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(21)
_LOG_NODE_WEIGHTS = np.log(_NODE_WEIGHTS / _NODE_WEIGHTS.sum())


@dataclasses.dataclass(frozen=True)
class Run:
    """A stretch of one value among a block's observed cells.

    Attributes:
        value: of all its responses.
        cells: their columns within the benchmark.
        n_observed: cells of the whole block.
    """

    value: float
    cells: Int[np.ndarray, " cells"]
    n_observed: int


@dataclasses.dataclass(frozen=True)
class Expectation:
    """The logit of a block's mean response as the other blocks have it: models x benchmarks."""

    mean: Float[np.ndarray, "models benchmarks"]
    spread: Float[np.ndarray, "models benchmarks"]


def expectations(
    n_cells: Float[np.ndarray, "models benchmarks"], total: Float[np.ndarray, "models benchmarks"]
) -> Expectation:
    """What each block's share of right answers should be: its model's form plus its benchmark's.

    In logits, by medians; a block itself does not count for its model. A model without other
    blocks is any of the benchmark's models.
    """
    logit = np.log((total + 0.5) / (n_cells - total + 0.5))
    logit[n_cells < _FEWEST_CELLS] = np.nan
    easiness = _median(logit, axis=0)
    form = logit - easiness
    typical = np.stack([_median(np.delete(form, g, 1), axis=1) for g in range(form.shape[1])], 1)
    others = np.stack([np.isfinite(np.delete(form, g, 1)).sum(1) for g in range(form.shape[1])], 1)
    left = form - typical
    spread = max(_LEAST_SPREAD, float(_MAD_TO_SD * _median(np.abs(left).ravel(), axis=0)))
    alone = np.maximum(_LEAST_SPREAD, _MAD_TO_SD * _median(np.abs(form), axis=0))
    # Two other blocks say less of a model than many.
    known = spread * np.sqrt(1 + 1 / np.maximum(others, 1))
    mean = np.where(others > 0, easiness + np.nan_to_num(typical), easiness)
    return Expectation(np.nan_to_num(mean), np.where(others > 0, known, alone))


def longest_runs(response: Float[np.ndarray, " items"]) -> list[Run]:
    """The longest stretch of each value that has one of 20 cells or more."""
    observed = np.flatnonzero(response != MISSING)
    if len(observed) < _FEWEST_CELLS:
        return []
    values = response[observed]
    starts = np.concatenate([[0], np.flatnonzero(np.diff(values)) + 1])
    lengths = np.diff(np.append(starts, len(values)))
    runs: dict[float, Run] = {}
    for k in np.argsort(-lengths, kind="stable"):
        if lengths[k] < _FEWEST_CELLS:
            break
        value = float(values[starts[k]])
        cells = observed[starts[k] : starts[k] + lengths[k]]
        runs.setdefault(value, Run(value, cells, len(observed)))
    return list(runs.values())


def is_unusual(run: Run, response: Float[np.ndarray, " items"]) -> bool:
    """Whether a run is longer than the block's share of its value makes likely: worth a look."""
    others = np.sum(response == run.value) - len(run.cells)
    n_outside = run.n_observed - len(run.cells)
    share = (others + 1) / (n_outside + 2)
    return bool(len(run.cells) * np.log(share) + np.log(run.n_observed) < 0)


def run_log_p(
    run: Run,
    response: Float[np.ndarray, " items"],
    easiness: Float[np.ndarray, " items"],
    same: Float[np.ndarray, " cells"],
    mean: float,
    spread: float,
) -> float:
    """Log-probability that a block has such a run anywhere, at its likeliest explanation.

    Args:
        run: the stretch.
        response: the block, -1 where missing.
        easiness: logit of each item's share of right answers by the other models, minus that of
            the benchmark.
        same: share of the other models that gave the run's value to each of its items; used for
            values other than 0 and 1.
        mean: expected logit of the block's share of right answers.
        spread: standard deviation of that expectation.
    """
    n_starts = max(run.n_observed - len(run.cells) + 1, 1)
    if run.value not in (0.0, 1.0):
        # Others need not give a value that this model gives often: three of four tries, say.
        elsewhere = np.sum(response == run.value) - len(run.cells)
        own = (elsewhere + 0.5) / (run.n_observed - len(run.cells) + 1)
        return float(np.sum(np.log(np.maximum(same, own))) + np.log(n_starts))
    items = np.clip(easiness[run.cells], -_FURTHEST, _FURTHEST)
    log_p = _log_probability(run.value, items, mean, spread)
    outside = np.ones(len(response), bool)
    outside[run.cells] = False
    rest = response[outside & (response != MISSING)]
    if len(rest) >= _FEWEST_CELLS:
        own = float(np.log((rest.sum() + 0.5) / (len(rest) - rest.sum() + 0.5)))
        log_p = max(log_p, _log_probability(run.value, items, own, _OWN_SPREAD))
    return float(log_p + np.log(n_starts))


def _log_probability(value: float, items: np.ndarray, mean: float, spread: float) -> float:
    """Of one value in all the items, integrated over the model's form."""
    sign = 1 if value == 1 else -1
    at_node = log_expit(sign * (mean + spread * _NODES[:, None] + items[None, :])).sum(axis=1)
    return float(logsumexp(at_node + _LOG_NODE_WEIGHTS))


def _median(values: np.ndarray, axis: int) -> np.ndarray:
    """Median of the known values, 0 where there are none."""
    if values.shape[axis] == 0:
        return np.zeros(np.delete(values.shape, axis))
    is_empty = ~np.isfinite(values).any(axis=axis)
    filled = np.where(np.expand_dims(is_empty, axis), 0.0, values)
    return np.nanmedian(filled, axis=axis)

"""Stretches of one value: cells that were filled in and not answered."""

import dataclasses

import numpy as np
from jaxtyping import Float, Int
from scipy.special import log_expit, logsumexp

from irtjax.audit.integrity.forms import WINDOW, fitted_form
from irtjax.data.checks import MISSING

__all__ = ["Expectation", "Run", "expectations", "is_unusual", "longest_runs", "run_log_p"]

_FEWEST_CELLS = 20
_LEAST_SPREAD = 1.0  # logits; a model's form on one benchmark, known from others
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
    drift: float,
) -> float:
    """Log-probability that a block has such a run anywhere, given the rest of the block.

    The model's form is what its other blocks and, for the most part, the rest of this one say; in
    the run it may be another by the drift of forms between subjects.

    Args:
        run: the stretch.
        response: the block, -1 where missing.
        easiness: logit of each item's share of right answers by the other models, minus that of
            the benchmark.
        same: share of the other models that gave the run's value to each of its items; used for
            values other than 0 and 1.
        mean: expected logit of the block's share of right answers.
        spread: standard deviation of that expectation.
        drift: standard deviation of a model's form between stretches of the benchmark.
    """
    n_starts = max(run.n_observed - len(run.cells) + 1, 1)
    if run.value not in (0.0, 1.0):
        # Others need not give a value that this model gives often: three of four tries, say.
        elsewhere = np.sum(response == run.value) - len(run.cells)
        own = (elsewhere + 0.5) / (run.n_observed - len(run.cells) + 1)
        return float(np.sum(np.log(np.maximum(same, own))) + np.log(n_starts))
    easiness = np.clip(easiness, -_FURTHEST, _FURTHEST)
    rest = response != MISSING
    rest[run.cells] = False
    form = fitted_form(response[rest], easiness[rest], mean, spread)
    # The rest is a few stretches itself, each with a form that drifts.
    n_stretches = max(rest.sum() / WINDOW, 1.0)
    within = np.sqrt(form.variance + drift**2 * (1 + 1 / n_stretches))
    log_p = _log_probability(run.value, form.logits(easiness[run.cells]), float(within))
    return float(log_p + np.log(n_starts))


def _log_probability(value: float, logits: np.ndarray, spread: float) -> float:
    """Of one value in all the items, integrated over the model's form."""
    sign = 1 if value == 1 else -1
    at_node = log_expit(sign * (spread * _NODES[:, None] + logits[None, :])).sum(axis=1)
    return float(logsumexp(at_node + _LOG_NODE_WEIGHTS))


def _median(values: np.ndarray, axis: int) -> np.ndarray:
    """Median of the known values, 0 where there are none."""
    if values.shape[axis] == 0:
        return np.zeros(np.delete(values.shape, axis))
    is_empty = ~np.isfinite(values).any(axis=axis)
    filled = np.where(np.expand_dims(is_empty, axis), 0.0, values)
    return np.nanmedian(filled, axis=axis)

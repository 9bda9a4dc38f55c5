"""`select_items`: the smallest set of items that still measures."""

import dataclasses
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
import pandas as pd

from irtjax.checks import check_whole, counted, shown
from irtjax.errors import InputError, IrtjaxWarning
from irtjax.fit.result import FitResult
from irtjax.fit.tables import metadata_name
from irtjax.model.information import mean_information, mean_slope
from irtjax.score.anchors import anchor_rows
from irtjax.score.ties import first_of_equals
from irtjax.select.bank import Bank, bank_of, padded
from irtjax.select.greedy import exchanged, greedy
from irtjax.select.precision import precision_curve
from irtjax.select.quotas import Quotas, quotas_of
from irtjax.select.ranked import best_first, best_set
from irtjax.select.selection import Selection
from irtjax.select.target import Target, padded_target, target_of

__all__ = ["CRITERIA", "METHODS", "select_items"]

_BAYESIAN = ("d-optimal", "a-optimal")
_VALUED = ("fisher", "leh", "discrimination")
CRITERIA = ("d-optimal", "a-optimal", "fisher", "leh", "discrimination", "clusters", "random")
METHODS = ("greedy", "exchange", "milp")
# The best pick's information over that of the best item at the models' median. An item of slope 1
# tells this share of its most where the ability is 4.4 logits from its difficulty.
_NEXT_TO_NOTHING = 0.05


@dataclasses.dataclass(frozen=True, eq=False)
class _Task:
    """What is selected from, for whom, under which bounds."""

    bank: Bank
    target: Target
    quotas: list[Quotas]
    budget: int
    criterion: str
    direction: np.ndarray | None
    seed: int


def select_items(
    fit: FitResult,
    budget: int,
    *,
    criterion: str = "d-optimal",
    dim: int | None = None,
    direction: Sequence[float] | None = None,
    target: Any = "models",
    per: Mapping[str, Any] | None = None,
    min_coverage: int = 0,
    exclude_flags: Sequence[str] = ("no_responses",),
    method: str = "greedy",
    seed: int = 0,
) -> Selection:
    """Select items of a fit that measure models of a target distribution.

    Args:
        fit: the fit whose items are selected.
        budget: how many.
        criterion: `d-optimal` (default) or `a-optimal`: the largest fall of the posterior's
            log-determinant or trace, greedily, prior included, averaged over the target (with
            benchmark effects these are unknowns too, so that picks spread over benchmarks);
            `fisher`, `leh`, `discrimination`: the largest mean information, mean slope of the
            curve, discrimination; `clusters`: anchor items of tinyBenchmarks, with weights;
            `random`. For the last two `dim`, `direction` and `target` say only what the errors are
            of: the items are the same.
        dim: measure this ability only (1, 2, ...).
        direction: measure the place along it only: a number a dim.
        target: `models` (their posterior), `top` (the top quarter), `future=SHIFT` (above the
            best model), an ability, or an array of points x dims.
        per: quotas: column of item metadata to the most items of each value, to `"LOW-HIGH"`, or
            to such bounds by value.
        min_coverage: at least so many items of each value (of the quotas' columns, or of
            `benchmark`).
        exclude_flags: items with one of these flags are left out.
        method: `greedy`; `exchange`: then swaps of single items until none gains; `milp`: the
            best sum of `fisher`, `leh` or `discrimination` under quotas of several columns.
        seed: of `random` and of the starts of `clusters`.

    Warns (`IrtjaxWarning`) where the target is so far from the items that they tell next to
    nothing of it.

    Raises:
        InputError: a budget beyond the items there are, quotas that no selection keeps, unknown
            names, settings that do not go together.

    >>> import irtjax as ij
    >>> data = ij.simulate(ij.ModelSpec("2pl"), n_models=20, n_items=50).data
    >>> short = ij.select_items(ij.fit(data), 10)
    >>> len(short.item_ids), bool(short.items["dim1_se"].is_monotonic_decreasing)
    (10, True)
    """
    _check_names(criterion, method)
    budget = check_whole("the budget", budget, 1)
    seed = check_whole("seed", seed, 0)
    bank = bank_of(fit, exclude_flags)
    if budget > bank.curves.n_items:
        left_out = fit.data.n_items - bank.curves.n_items
        without = f" ({left_out:,} have an excluded flag)" if left_out else ""
        raise InputError(
            f"the budget of {counted(budget, 'item')} is more than the "
            f"{counted(bank.curves.n_items, 'item')} there are to select from{without}"
        )
    along = _direction(fit.spec.dims, dim, direction)
    quotas = quotas_of(fit.data, bank.position, per, min_coverage, budget)
    _check_together(criterion, method, quotas)
    task = _Task(bank, target_of(fit, target), quotas, budget, criterion, along, seed)
    order, gain, weight = _selected(task, method)
    _warn_if_far(fit, task, order)
    report = {
        "criterion": criterion,
        "method": method,
        "target": task.target.name,
        "direction": None if along is None else along.tolist(),
        "per": {each.column: _bounds(each) for each in quotas if each.binds},
        "budget": budget,
        "seed": seed,
        "n_candidates": bank.curves.n_items,
        "excluded": bank.excluded,
    }
    return Selection(_table(fit, task, order, gain, weight), report)


def _selected(task: _Task, method: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Positions in the bank in their order, gains and weights."""
    equal = np.full(task.budget, 1 / task.budget)
    if task.criterion in _BAYESIAN:
        return *_bayesian(task, method), equal
    if task.criterion == "clusters":
        curves = task.bank.curves
        features = np.column_stack([curves.slope, curves.intercept]).astype(np.float64)
        order, weight = anchor_rows(features, task.budget, task.seed)
        return order, weight, weight
    value = _values(task)
    ranked = value if task.criterion == "random" else first_of_equals(value)
    if method == "milp":
        order = best_set(ranked, task.quotas, task.budget)
    else:
        order = best_first(ranked, task.quotas[0], task.budget)
    gain = np.full(task.budget, np.nan) if task.criterion == "random" else value[order]
    return order, gain, equal


def _bayesian(task: _Task, method: str) -> tuple[np.ndarray, np.ndarray]:
    quotas = task.quotas[0]
    settings: dict[str, Any] = {"criterion": task.criterion, "direction": task.direction}
    order, gain = greedy(task.bank, task.target, quotas, task.budget, **settings)
    if method == "exchange":
        among = exchanged(task.bank, task.target, quotas, order, **settings)
        order, gain = greedy(
            task.bank, task.target, quotas, task.budget, among=np.sort(among), **settings
        )
    return order, gain


def _values(task: _Task) -> np.ndarray:
    """The value of each item of the bank, float64."""
    curves = task.bank.curves
    if task.criterion == "random":
        return np.random.default_rng(task.seed).permutation(curves.n_items).astype(np.float64)
    if task.criterion == "discrimination":
        slope = np.asarray(curves.slope, np.float64)
        if task.direction is not None:
            return slope @ task.direction
        if curves.dims == 1:
            return slope[:, 0]
        return np.sqrt(np.einsum("jk,kl,jl->j", slope, task.bank.prior, slope))
    return _means(task, mean_slope if task.criterion == "leh" else mean_information)


def _means(task: _Task, mean: Any) -> np.ndarray:
    curves, target = padded(task.bank.curves), padded_target(task.target)
    dtype = curves.slope.dtype
    along = None if task.direction is None else jnp.asarray(task.direction, dtype)
    points = jnp.asarray(target.ability, dtype), jnp.asarray(target.weight, dtype)
    found = np.asarray(mean(curves, *points, along), np.float64)
    return found[: task.bank.curves.n_items]


def _warn_if_far(fit: FitResult, task: _Task, order: np.ndarray) -> None:
    """Warn where the best item picked tells next to nothing of the target.

    Against the best of all items at the models' median: even a benchmark that is too easy or too
    hard tells something there.
    """
    best = float(np.max(_means(task, mean_information)[order]))
    has_answers = fit.data.totals("models")[0] > 0
    middle = np.median(np.asarray(fit.parameters.ability, np.float64)[has_answers], axis=0)
    at_middle = dataclasses.replace(task, target=target_of(fit, middle))
    usual = float(np.max(_means(at_middle, mean_information)))
    if best < _NEXT_TO_NOTHING * usual:
        warnings.warn(
            f"the items tell next to nothing of {task.target.name}: the best pick has an "
            f"information of {best:.2g} there, the best item at the models' median {usual:.2g}; "
            "name a target nearer to the models, or add items that fit it",
            IrtjaxWarning,
            stacklevel=3,
        )


def _table(
    fit: FitResult, task: _Task, order: np.ndarray, gain: np.ndarray, weight: np.ndarray
) -> pd.DataFrame:
    position = task.bank.position[order]
    items = fit.item_parameters().iloc[position].reset_index(drop=True)
    metadata = [metadata_name(str(name), "items") for name in fit.data.item_metadata.columns]
    metadata.sort(key=lambda name: name != "benchmark")
    table = items[["item_id", *metadata]].copy()
    table.insert(0, "order", np.arange(1, len(order) + 1))
    curve = precision_curve(task.bank, task.target, order, task.direction)
    information = _means(task, mean_information)[order]
    table = table.assign(gain=gain, weight=weight, information=information)
    return pd.concat([table, curve, items[["flags"]]], axis=1)


def _bounds(quotas: Quotas) -> dict[str, list[int]]:
    bounds = zip(quotas.names, quotas.least, quotas.most, strict=True)
    return {name: [int(least), int(most)] for name, least, most in bounds}


def _direction(dims: int, dim: int | None, direction: Sequence[float] | None) -> np.ndarray | None:
    """The direction to measure along, of length 1; None for all abilities."""
    if dim is not None and direction is not None:
        raise InputError("dim and direction both say what to measure; pass one of them")
    if dim is not None:
        dim = check_whole("dim", dim, 1, dims)
        return np.eye(dims)[dim - 1]
    if direction is None:
        return None
    try:
        along = np.asarray(direction, np.float64)
    except (TypeError, ValueError):
        along = np.zeros(0)
    size = float(np.linalg.norm(along))
    if along.shape != (dims,) or not np.isfinite(size) or size == 0:
        raise InputError(
            f"direction must be {counted(dims, 'number')}, one a dim and not all 0, not "
            f"{shown(direction)}"
        )
    return along / size


def _check_names(criterion: Any, method: Any) -> None:
    for what, given, known in (("criterion", criterion, CRITERIA), ("method", method, METHODS)):
        if given not in known:
            raise InputError(f"{what} {shown(given)} is not known; use one of {', '.join(known)}")


def _check_together(criterion: str, method: str, quotas: list[Quotas]) -> None:
    if criterion == "clusters" and quotas[0].binds:
        raise InputError("criterion clusters takes no quotas; drop them or choose another")
    if method == "exchange" and criterion not in _BAYESIAN:
        remedy = "drop the method"
        if criterion in _VALUED:
            remedy = "greedy is already the best, or milp with quotas of several columns"
        raise InputError(
            f"method exchange goes with {' and '.join(_BAYESIAN)}, not {criterion}; {remedy}"
        )
    if method == "milp" and criterion not in _VALUED:
        raise InputError(
            f"method milp maximises a sum over the items: criterion {', '.join(_VALUED)}, not "
            f"{criterion}"
        )
    if len(quotas) > 1 and method != "milp":
        raise InputError(
            "quotas of several columns bind together; pass method milp with criterion fisher, leh "
            "or discrimination"
        )

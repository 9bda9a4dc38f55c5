"""Simulated responses of any family, with the parameters they were drawn from."""

import dataclasses

import numpy as np
import pandas as pd

from irtjax.checks import check_number, check_whole, shown
from irtjax.data.checks import MISSING, check_seed
from irtjax.data.layout import DENSE_FROM
from irtjax.data.responses import ResponseMatrix
from irtjax.data.truth import Truth
from irtjax.errors import InputError
from irtjax.model.spec import ModelSpec, check_spec

__all__ = ["MISSING_PATTERNS", "Simulated", "draw_responses", "item_names", "simulate"]

MISSING_PATTERNS = ("cells", "blocks")

# The recipes of REFERENCES.md: W2 for slopes and intercepts, W3 for asymptotes.
_MINOR_SLOPE = 0.35
_MINOR_NEGATIVE_SHARE = 0.3
_LOG_SLOPE_SD = 0.5
_INTERCEPT_SD = 1.5
_GUESSING_BETA = (5, 20)
_INFEASIBILITY_BETA = (3, 30)


@dataclasses.dataclass(frozen=True, eq=False)
class Simulated:
    """Simulated responses and the truth behind them.

    Attributes:
        data: the responses, with the item metadata column `benchmark`.
        truth: the parameters they were drawn from, in the same order of models and items.
    """

    data: ResponseMatrix
    truth: Truth


def simulate(
    spec: ModelSpec,
    *,
    n_models: int,
    n_items: int,
    n_benchmarks: int = 1,
    missing: float = 0.0,
    missing_pattern: str = "cells",
    negative_share: float = 0.05,
    effect_sd: float = 0.0,
    shared_asymptotes: bool = False,
    seed: int = 0,
) -> Simulated:
    """Draw abilities, item parameters and then responses.

    Abilities are independent standard normal. The slopes of an item are `lognormal(0, .5)` in its
    major dim and `.35 lognormal(0, .5)` in the others, of which 30% are negative; the major dim is
    the benchmark's (dims in turn), or random for each item when there is one benchmark. In the 1PL
    all slopes are 1. Intercepts are `normal(0, 1.5)`; where the family has them, guessing is
    `beta(5, 20)` and feasibility `1 - (1 - guessing) beta(3, 30)`. Responses are Bernoulli. What is
    missing comes from a random stream of its own: it does not change the other cells.

    Args:
        spec: family and dims.
        n_models: rows.
        n_items: columns, divided over the benchmarks as equally as possible, in order.
        n_benchmarks: groups of items, named `benchmark-0`, `benchmark-1`, ...
        missing: share of the cells (each on its own), or of the model x benchmark blocks (exactly,
            rounded; every model keeps a benchmark and every benchmark a model), in [0, 1).
        missing_pattern: `cells` (completely at random) or `blocks`.
        negative_share: share of items whose slope in the major dim is negative; not for the 1PL.
        effect_sd: standard deviation of the model x benchmark effects, logits.
        shared_asymptotes: draw guessing and feasibility once a benchmark, not once an item.
        seed: of NumPy's default generator.

    Returns:
        Responses (dense from 20% observed on, sparse below) and the truth.

    Raises:
        InputError: sizes below 1, shares outside their range, more blocks missing than possible.

    >>> made = simulate(ModelSpec("3pl", dims=2), n_models=5, n_items=40, n_benchmarks=4)
    >>> made.data, made.truth.slope.shape
    (ResponseMatrix(5 models x 40 items, 200 responses, dense), (40, 2))
    """
    check_spec(spec)
    _check(n_models, n_items, n_benchmarks, missing, missing_pattern, negative_share, effect_sd)
    check_seed(seed)
    parameters, answers, absence = np.random.default_rng(seed).spawn(3)
    item_benchmark = np.arange(n_items) * n_benchmarks // n_items
    truth = _draw_truth(
        parameters,
        spec,
        n_models=n_models,
        item_benchmark=item_benchmark.astype(np.int32),
        n_benchmarks=n_benchmarks,
        negative_share=negative_share,
        effect_sd=effect_sd,
        shared_asymptotes=shared_asymptotes,
    )
    is_kept = None
    if missing_pattern == "blocks" and missing > 0:
        is_kept = _kept_blocks(absence, n_models, n_benchmarks, missing)
    missing_cells = missing if missing_pattern == "cells" else 0.0
    data = draw_responses(
        truth, answers, missing=missing_cells, is_kept=is_kept, missing_rng=absence
    )
    return Simulated(data, truth)


def _draw_slopes(
    rng: np.random.Generator, major: np.ndarray, dims: int, negative_share: float
) -> np.ndarray:
    """Signed slopes with one major dim an item and small ones in the others.

    Args:
        rng: the generator to draw from.
        major: items, the dim that each item mainly measures.
        dims: number of dims.
        negative_share: share of items whose major slope is negative.

    Returns:
        Items x dims, logits a latent standard deviation.
    """
    n_items = len(major)
    large = rng.lognormal(0, _LOG_SLOPE_SD, n_items) * _signs(rng, n_items, negative_share)
    slope = (
        _MINOR_SLOPE
        * rng.lognormal(0, _LOG_SLOPE_SD, (n_items, dims))
        * _signs(rng, (n_items, dims), _MINOR_NEGATIVE_SHARE)
    )
    slope[np.arange(n_items), major] = large
    return slope


def draw_responses(
    truth: Truth,
    rng: np.random.Generator,
    *,
    missing: float = 0.0,
    is_kept: np.ndarray | None = None,
    missing_rng: np.random.Generator | None = None,
    model_metadata: pd.DataFrame | None = None,
) -> ResponseMatrix:
    """Draw Bernoulli responses from the truth, a block of items at a time.

    Besides the int8 matrix itself (or the observed cells, below 20% of them) only a block of about
    a million cells is in memory. The draws do not depend on the size of that block.

    Args:
        truth: the parameters.
        rng: of the responses.
        missing: share of cells missing completely at random.
        is_kept: models x benchmarks, whether a block is observed; all without.
        missing_rng: of the missing cells; needed when `missing` is above 0.
        model_metadata: one row a model.

    Returns:
        The responses, with the item metadata column `benchmark`.
    """
    observed_share = (1 - missing) * (1.0 if is_kept is None else float(is_kept.mean()))
    is_sparse = observed_share < DENSE_FROM
    dense = None if is_sparse else np.empty((truth.n_models, truth.n_items), np.int8)
    parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    for block, probability in truth.blocks():
        n_block = block.stop - block.start
        # Items first: the stream of draws then runs through the items whatever the block size.
        draws = rng.random((n_block, truth.n_models), np.float32).T
        response = (draws < probability).astype(np.int8)
        if is_kept is not None:
            response[~is_kept[:, truth.item_benchmark[block]]] = MISSING
        if missing > 0:
            assert missing_rng is not None
            absent = missing_rng.random((n_block, truth.n_models), np.float32).T < missing
            response[absent] = MISSING
        if dense is not None:
            dense[:, block] = response
        else:
            item, model = np.nonzero((response >= 0).T)
            parts.append(
                (
                    model.astype(np.int32),
                    (item + block.start).astype(np.int32),
                    response[model, item],
                )
            )
    return _matrix(truth, dense, parts, model_metadata)


def _matrix(
    truth: Truth,
    dense: np.ndarray | None,
    parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]],
    model_metadata: pd.DataFrame | None,
) -> ResponseMatrix:
    item_metadata = pd.DataFrame({"benchmark": truth.benchmarks[truth.item_benchmark]})
    model_ids, item_ids = truth.model_ids.tolist(), truth.item_ids.tolist()
    if dense is not None:
        return ResponseMatrix.from_dense(
            dense,
            model_ids=model_ids,
            item_ids=item_ids,
            item_metadata=item_metadata,
            model_metadata=model_metadata,
        )
    return ResponseMatrix.from_cells(
        *(np.concatenate(column) for column in zip(*parts, strict=True)),
        model_ids=model_ids,
        item_ids=item_ids,
        item_metadata=item_metadata,
        model_metadata=model_metadata,
    )


def _draw_truth(
    rng: np.random.Generator,
    spec: ModelSpec,
    *,
    n_models: int,
    item_benchmark: np.ndarray,
    n_benchmarks: int,
    negative_share: float,
    effect_sd: float,
    shared_asymptotes: bool,
) -> Truth:
    n_items = len(item_benchmark)
    theta = rng.standard_normal((n_models, spec.dims))
    if spec.has_common_slope:
        slope = np.ones((n_items, spec.dims))
    else:
        major = (
            item_benchmark % spec.dims if n_benchmarks > 1 else rng.integers(0, spec.dims, n_items)
        )
        slope = _draw_slopes(rng, major, spec.dims, negative_share)
    intercept = rng.normal(0, _INTERCEPT_SD, n_items)
    n_asymptotes = n_benchmarks if shared_asymptotes else n_items
    spread = item_benchmark if shared_asymptotes else np.arange(n_items)
    guessing, feasibility = np.zeros(n_asymptotes), np.ones(n_asymptotes)
    if spec.has_guessing:
        guessing = rng.beta(*_GUESSING_BETA, n_asymptotes)
    if spec.has_feasibility:
        # A share of what guessing leaves, so that feasibility stays above guessing.
        feasibility = 1 - (1 - guessing) * rng.beta(*_INFEASIBILITY_BETA, n_asymptotes)
    effects = rng.normal(0, effect_sd, (n_models, n_benchmarks)) if effect_sd > 0 else None
    names = _numbered("benchmark", n_benchmarks)
    return Truth(
        theta=theta.astype(np.float32),
        slope=slope.astype(np.float32),
        intercept=intercept.astype(np.float32),
        guessing=guessing[spread].astype(np.float32),
        feasibility=feasibility[spread].astype(np.float32),
        effects=None if effects is None else effects.astype(np.float32),
        item_benchmark=item_benchmark,
        benchmarks=np.array(names),
        model_ids=np.array(_numbered("model", n_models)),
        item_ids=np.array(item_names(names, item_benchmark)),
    )


def item_names(benchmarks: list[str], item_benchmark: np.ndarray) -> list[str]:
    """Item ids `<benchmark>/<index within it>`, items of a benchmark numbered in order."""
    seen = [0] * len(benchmarks)
    names = []
    for benchmark in item_benchmark.tolist():
        names.append(f"{benchmarks[benchmark]}/{seen[benchmark]}")
        seen[benchmark] += 1
    return names


def _numbered(name: str, size: int) -> list[str]:
    width = len(str(size - 1))
    return [f"{name}-{k:0{width}d}" for k in range(size)]


def _signs(
    rng: np.random.Generator, shape: int | tuple[int, ...], negative_share: float
) -> np.ndarray:
    return np.where(rng.random(shape) < negative_share, -1.0, 1.0)


def _kept_blocks(
    rng: np.random.Generator, n_models: int, n_benchmarks: int, missing: float
) -> np.ndarray:
    """Models x benchmarks: which blocks are observed; no row and no column is empty."""
    is_needed = np.zeros((n_models, n_benchmarks), bool)
    is_needed[np.arange(n_models), rng.integers(0, n_benchmarks, n_models)] = True
    for g in np.flatnonzero(~is_needed.any(axis=0)):
        is_needed[rng.integers(0, n_models), g] = True
    n_missing = round(missing * n_models * n_benchmarks)
    spare = np.flatnonzero(~is_needed)
    if n_missing > len(spare):
        raise InputError(
            f"missing={missing} takes {n_missing} of {n_models} x {n_benchmarks} model x benchmark "
            f"blocks, but at most {len(spare)} can go when every model and benchmark keeps one; "
            "lower missing or add benchmarks"
        )
    is_kept = np.ones(n_models * n_benchmarks, bool)
    is_kept[rng.choice(spare, n_missing, replace=False)] = False
    return is_kept.reshape(n_models, n_benchmarks)


def _check(
    n_models: int,
    n_items: int,
    n_benchmarks: int,
    missing: float,
    missing_pattern: str,
    negative_share: float,
    effect_sd: float,
) -> None:
    check_whole("n_models", n_models, 1)
    check_whole("n_items", n_items, 1)
    check_whole("n_benchmarks", n_benchmarks, 1, n_items, "every benchmark needs an item")
    for name, value in (
        ("missing", missing),
        ("negative_share", negative_share),
        ("effect_sd", effect_sd),
    ):
        check_number(name, value)
    if not 0 <= missing < 1:
        raise InputError(f"missing must be a share in [0, 1), not {missing}")
    if missing_pattern not in MISSING_PATTERNS:
        raise InputError(
            f"missing_pattern {shown(missing_pattern)} is not known; "
            f"use one of {', '.join(MISSING_PATTERNS)}"
        )
    if not 0 <= negative_share <= 1:
        raise InputError(f"negative_share must be a share in [0, 1], not {negative_share}")
    if not effect_sd >= 0:
        raise InputError(f"effect_sd must not be negative, not {effect_sd}")

"""BenchMIRT's cross-validation table, and how well models are ranked from few items.

Ai2 (2026), BenchMIRT: ten folds over cells, seed 42, items with mean accuracy in (.05, .95);
accuracy, mean absolute error and Spearman's correlation of the models' means, over all held-out
cells (micro) and as means over benchmarks (macro). Its authors say that the plain benchmark average
ranks models slightly better on held-out items than their model does.

From few items: half of the models are fitted; of the other half's answers 50, 100 or 200 are seen,
and the ranking is compared with that by all responses.
"""

import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Group
from rich.table import Table
from scipy.stats import spearmanr

import irtjax as ij
from irtjax.data.demo import DEMO_BENCHMARKS, demo_data
from irtjax.evaluate.folds import make_folds

__all__ = ["cross_validated", "few_items", "run", "table"]

_FOLDS, _SEED = 10, 42
_BETWEEN = (0.05, 0.95)
_DIMS = (1, 2, 3, 4)
_MAX_STEPS = 40  # a dim of noise never settles; its predictions no longer change
SIZES = (50, 100, 200)
_HALVES, _DRAWS = 4, 5


def run(folds: int = _FOLDS) -> dict[str, Any]:
    """Both tables on the demo's data: 100 models, 34,000 items, 16 benchmarks, two abilities."""
    data = demo_data(seed=0).data
    accuracy = data.totals("items")[1]
    kept = (accuracy > _BETWEEN[0]) & (accuracy < _BETWEEN[1])
    data = ij.ResponseMatrix.from_dense(
        data.to_dense()[:, kept],
        model_ids=data.model_ids,
        item_ids=data.item_ids[kept],
        item_metadata=data.item_metadata.iloc[np.flatnonzero(kept)].reset_index(drop=True),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ij.IrtjaxWarning)
        return {
            "n_items": int(kept.sum()),
            "folds": folds,
            "table": cross_validated(data, folds).to_dict("records"),
            "few_items": few_items(data).to_dict("records"),
        }


def table(measured: Mapping[str, Any]) -> Group:
    """Both tables: a row a predictor; a row a kind of ranking and method, a column a size."""
    of_cells = _shown(pd.DataFrame(measured["table"]))
    few = pd.DataFrame(measured["few_items"]).pivot_table(
        index=["of", "method"], columns="size", values="rho", sort=False
    )
    few.columns = [f"{size} items" for size in few.columns]
    return Group(
        of_cells, "", "Spearman's correlation with the full ranking", _shown(few.reset_index())
    )


def _shown(rows: pd.DataFrame) -> Table:
    shown = Table(box=None, pad_edge=False)
    for name in rows:
        is_text = pd.api.types.is_string_dtype(rows[name])
        shown.add_column(name.replace("_", " "), justify="left" if is_text else "right")
    for row in rows.itertuples(index=False):
        shown.add_row(*(each if isinstance(each, str) else f"{each:.4f}" for each in row))
    return shown


def cross_validated(data: ij.ResponseMatrix, n_folds: int) -> pd.DataFrame:
    """A row a predictor: micro and macro accuracy, MAE and Spearman's correlation."""
    codes, names = data.groups("benchmark")
    category = np.array(
        [each.safety > abs(each.reasoning) for each in DEMO_BENCHMARKS if each.name in names]
    )
    order = [each.name for each in DEMO_BENCHMARKS if each.name in names]
    of_item = category[[order.index(name) for name in names]][codes].astype(int)
    found: dict[str, list[dict[str, float]]] = {}
    folds = make_folds(data, "cells", n_folds, _SEED)
    for fold in range(n_folds):
        train, cells = folds.fitted(fold), folds.scored(fold)
        for name, probability in _predictors(train, cells, codes, of_item):
            metrics = _metrics(probability, cells, codes, data.n_models)
            found.setdefault(name, []).append(metrics)
    rows = [
        {"predictor": name} | pd.DataFrame(each).mean().round(4).to_dict()
        for name, each in found.items()
    ]
    return pd.DataFrame(rows)


def _predictors(
    train: ij.ResponseMatrix, cells: ij.Cells, benchmark: np.ndarray, category: np.ndarray
) -> Iterator[tuple[str, np.ndarray]]:
    matrix = train.to_dense()
    for name, group in (
        ("model average", np.zeros_like(benchmark)),
        ("model average by category", category),
        ("model average by benchmark", benchmark),
    ):
        mean = np.stack([_mean(matrix[:, group == g]) for g in range(group.max() + 1)], axis=1)
        yield name, mean[cells.model_index, group[cells.item_index]]
    for dims in _DIMS:
        fit = ij.fit(train, ij.ModelSpec("2pl", dims), max_steps=_MAX_STEPS)
        yield f"irtjax, {dims}-D", fit.predict_cells(cells.model_index, cells.item_index)
    fit = ij.fit(train, ij.ModelSpec("2pl", 2), group="benchmark", max_steps=_MAX_STEPS)
    yield "irtjax, 2-D, benchmark effects", fit.predict_cells(cells.model_index, cells.item_index)


def _metrics(
    probability: np.ndarray, cells: ij.Cells, benchmark: np.ndarray, n_models: int
) -> dict[str, float]:
    group, found = benchmark[cells.item_index], {}
    parts = [np.ones(len(group), bool), *(group == g for g in range(group.max() + 1))]
    each = np.array([_of_part(probability[part], cells.taken(part), n_models) for part in parts])
    for k, name in enumerate(("accuracy", "mae", "spearman")):
        found |= {f"{name}_micro": each[0, k], f"{name}_macro": each[1:, k].mean()}
    return found


def _of_part(probability: np.ndarray, cells: ij.Cells, n_models: int) -> tuple[float, ...]:
    y = cells.response
    count = np.bincount(cells.model_index, minlength=n_models)
    means = [np.bincount(cells.model_index, v, n_models)[count > 0] for v in (probability, y)]
    means = [each / count[count > 0] for each in means]
    accuracy = np.mean((probability > 0.5) == (y == 1))
    error = np.mean(np.abs(probability - y))
    return float(accuracy), float(error), float(spearmanr(*means).statistic)


def few_items(data: ij.ResponseMatrix) -> pd.DataFrame:
    """Spearman's correlation with the full ranking of models not learnt from, by method.

    Micro: of the averages over all items; macro: of the mean over benchmarks of the benchmark's.
    """
    codes = data.groups("benchmark")[0]
    rng, rows = np.random.default_rng(_SEED), []
    for half in range(_HALVES):
        known, new = np.split(rng.permutation(data.n_models), [data.n_models // 2])
        fits = {
            dims: ij.fit(_some(data, known), ij.ModelSpec("2pl", dims), group="benchmark")
            for dims in (1, 2)
        }
        matrix = data.to_dense()[new].astype(np.float32)
        full = {"micro": matrix.mean(axis=1), "macro": _by_group(matrix, codes).mean(axis=1)}
        for size in SIZES:
            draws = np.zeros((_DRAWS, data.n_items), bool)
            for seen in draws:
                seen[rng.choice(data.n_items, size, replace=False)] = True
            for name, found in _rankings(fits, data, new, draws, codes).items():
                for kind, values in found.items():
                    for value in values:
                        rho = spearmanr(value, full[kind]).statistic
                        rows.append(
                            {"size": size, "method": name, "of": kind, "half": half, "rho": rho}
                        )
    grouped = pd.DataFrame(rows).groupby(["size", "of", "method"], sort=False)["rho"]
    return grouped.mean().round(4).reset_index()


def _rankings(
    fits: dict[int, ij.FitResult],
    data: ij.ResponseMatrix,
    new: np.ndarray,
    draws: np.ndarray,
    codes: np.ndarray,
) -> dict[str, dict[str, np.ndarray]]:
    """By method and kind, draws x models: what the models are ranked by."""
    averages = [_averages(data, new, seen, codes) for seen in draws]
    found = {
        name: {kind: np.stack([each[name][kind] for each in averages]) for kind in kinds}
        for name, kinds in averages[0].items()
    }
    # One call for all draws: what a fit knows of models left out is then found once.
    answers = _draws_as_models(data, new, draws)
    for dims, fit in fits.items():
        micro = ij.predict_score(fit, answers)["score"].to_numpy()
        each = ij.predict_score(fit, answers, by="benchmark")
        macro = each.groupby("model_id", sort=False)["score"].mean().loc[answers.model_ids]
        found[f"predicted, {dims}-D"] = {
            "micro": micro.reshape(len(draws), -1),
            "macro": macro.to_numpy().reshape(len(draws), -1),
        }
    return found


def _averages(
    data: ij.ResponseMatrix, new: np.ndarray, seen: np.ndarray, codes: np.ndarray
) -> dict[str, dict[str, np.ndarray]]:
    matrix = data.to_dense()[new].astype(np.float32)
    share = np.bincount(codes) / len(codes)
    by_group = _by_group(np.where(seen, matrix, -1), codes)
    overall = matrix[:, seen].mean(axis=1)
    # A benchmark without an item seen has the overall average.
    filled = np.where(np.isnan(by_group), overall[:, None], by_group)
    return {
        "average": {"micro": overall, "macro": overall},
        "stratified average": {"micro": filled @ share, "macro": filled.mean(axis=1)},
    }


def _draws_as_models(
    data: ij.ResponseMatrix, new: np.ndarray, draws: np.ndarray
) -> ij.ResponseMatrix:
    """The models once a draw, each with its answers to the items of that draw."""
    draw, item = np.nonzero(draws)
    model = np.arange(len(new))
    cells = np.broadcast_arrays(draw[:, None] * len(new) + model, item[:, None])
    return ij.ResponseMatrix.from_cells(
        cells[0].ravel(),
        cells[1].ravel(),
        data.to_dense()[new][:, item].T.ravel().astype(np.float32),
        model_ids=[f"{k}, {name}" for k in range(len(draws)) for name in data.model_ids[new]],
        item_ids=data.item_ids,
        item_metadata=data.item_metadata,
    )


def _some(data: ij.ResponseMatrix, rows: np.ndarray) -> ij.ResponseMatrix:
    return ij.ResponseMatrix.from_dense(
        data.to_dense()[rows],
        model_ids=data.model_ids[rows],
        item_ids=data.item_ids,
        item_metadata=data.item_metadata,
    )


def _by_group(matrix: np.ndarray, codes: np.ndarray) -> np.ndarray:
    groups = range(codes.max() + 1)
    return np.stack([_mean(matrix[:, codes == g]) for g in groups], axis=1)


def _mean(matrix: np.ndarray) -> np.ndarray:
    """Mean of what is not missing (-1), NaN without any."""
    is_seen = matrix >= 0
    with np.errstate(invalid="ignore"):
        return np.where(is_seen, matrix, 0).sum(axis=1) / is_seen.sum(axis=1)

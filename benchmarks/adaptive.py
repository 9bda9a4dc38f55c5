"""Whether adaptive items rank models better than random ones (Fluid Benchmarking's claim).

Half of the models are fitted, the other half tested with few items, 20 times over. The ranking by
what the test found is compared with that by accuracy on all items; the model's halves differ only
in what is asked and how it is scored: by the plain share right, by ability, or by the score on all
items that `predict_score` expects from the same answers. A model that carries the ability by itself
(ChemBench's Galactica answers 1.5% right, the others 19 to 63%: with it among 11 models the ability
is its distance from the rest, and irtjax warns) is left out of what is learnt from; ChemBench is
also shown with it. Hofmann et al. (2025), Fluid Language Model Benchmarking.
"""

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import kendalltau, rankdata, t

import irtjax as ij
from benchmarks.problems import SHARED

__all__ = ["run"]

SIZES = (10, 50, 100)
_N_HALVES = 20
_N_DRAWS = 5
METHODS = (
    "random, mean",
    "random, ability",
    "random, score",
    "adaptive, ability",
    "adaptive, score",
)
# What is asked and how it is scored, against what else.
_PAIRS = (
    ("adaptive, ability", "random, mean"),
    ("adaptive, ability", "random, ability"),
    ("adaptive, score", "random, mean"),
    ("random, score", "random, mean"),
)
_METRICS = ("rank_distance", "kendall")


def run(n_halves: int = _N_HALVES) -> dict[str, Any]:
    """Rank distance and Kendall's tau by data set, number of items and method.

    Returns:
        For each: mean over the halves, and differences of methods with a 95% interval of the paired
        difference (halves overlap, so the interval is on the narrow side).
    """
    found: dict[str, Any] = {"halves": n_halves, "draws": _N_DRAWS, "data": {}}
    for name, data, keeps_outliers in _data():
        rng = np.random.default_rng(0)
        halves = [_half(data, rng, keeps_outliers) for _ in range(n_halves)]
        values = np.array(halves)  # halves, sizes, methods, metrics
        found["data"][name] = {
            "n_models": data.n_models,
            "n_items": data.n_items,
            "sizes": {str(size): _summary(values[:, k]) for k, size in enumerate(SIZES)},
        }
    return found


def _data() -> Iterator[tuple[str, ij.ResponseMatrix, bool]]:
    yield "simulated checkpoints", _checkpoints(), False
    for name in ("zeroeval_gsm", "chembench"):
        with np.load(SHARED / "data" / f"{name}.npz") as file:
            responses = file["responses"].astype(np.float32)
            ids = [f"{k}" for k in range(responses.shape[1])]
            responses[responses < 0] = np.nan
            # Models may share a name; rows tell them apart.
            models = [f"{k}: {each}" for k, each in enumerate(file["models"])]
            data = ij.ResponseMatrix.from_dense(responses, model_ids=models, item_ids=ids)
        yield name, data, False
    yield f"{name}, outliers kept", data, True


def _checkpoints(n_runs: int = 6, n_steps: int = 20, n_items: int = 2_000) -> ij.ResponseMatrix:
    """Checkpoints of training runs: abilities that rise and level off, on the items of four
    benchmarks with guessing."""
    rng = np.random.default_rng(7)
    top, rate = rng.normal(1, 0.7, n_runs), rng.uniform(2, 5, n_runs)
    time = np.linspace(0, 1, n_steps)
    ability = (top[:, None] - 3 * np.exp(-rate[:, None] * time)).ravel()
    slope, intercept = rng.lognormal(0, 0.5, n_items), rng.normal(0, 1.5, n_items)
    guessing = np.repeat([0.0, 0.25, 0.1, 0.0], n_items // 4)
    p = guessing + (1 - guessing) / (1 + np.exp(-ability[:, None] * slope - intercept))
    return ij.ResponseMatrix.from_dense((rng.random(p.shape) < p).astype(np.int8))


def _half(data: ij.ResponseMatrix, rng: np.random.Generator, keeps_outliers: bool) -> np.ndarray:
    order = rng.permutation(data.n_models)
    matrix = data.to_dense().astype(np.float32)
    matrix[matrix < 0] = np.nan
    known, new = (
        ij.ResponseMatrix.from_dense(
            matrix[rows], model_ids=data.model_ids[rows], item_ids=data.item_ids
        )
        for rows in np.split(order, [data.n_models // 2])
    )
    fit = _fitted(known, keeps_outliers)
    full = np.nanmean(matrix[order[data.n_models // 2 :]], axis=1)
    adaptive = ij.adapt(fit, new, max_items=max(SIZES)).steps
    result = np.zeros((len(SIZES), len(METHODS), len(_METRICS)))
    by_name = dict(zip(METHODS, np.moveaxis(result, 1, 0), strict=True))
    unseen = matrix[order[data.n_models // 2 :]]
    for k, size in enumerate(SIZES):
        asked = adaptive[adaptive.order <= size]
        by_name["adaptive, ability"][k] = _against(_after(asked, new), full)
        by_name["adaptive, score"][k] = _against(_predicted(fit, new, _asked(asked, new)), full)
        for _ in range(_N_DRAWS):
            drawn = rng.choice(data.n_items, size, replace=False)
            is_drawn = np.isin(np.arange(data.n_items), drawn)[None]
            ability = ij.adapt(fit, new, max_items=size, items=data.item_ids[drawn]).models
            found = {
                "random, mean": np.nanmean(unseen[:, drawn], axis=1),
                "random, ability": ability.dim1_ability.to_numpy(),
                "random, score": _predicted(fit, new, is_drawn),
            }
            for name, values in found.items():
                by_name[name][k] += _against(values, full) / _N_DRAWS
    return result


def _asked(steps: Any, new: ij.ResponseMatrix) -> np.ndarray:
    """Which cells were asked, models x items."""
    is_asked = np.zeros((new.n_models, new.n_items), bool)
    rows = pd.Index(new.model_ids).get_indexer(steps.model_id)
    is_asked[rows, pd.Index(new.item_ids).get_indexer(steps.item_id)] = True
    return is_asked


def _predicted(fit: ij.FitResult, new: ij.ResponseMatrix, is_asked: np.ndarray) -> np.ndarray:
    dense = new.to_dense().astype(np.float32)
    answers = np.where(is_asked & (dense >= 0), dense, np.nan)
    few = ij.ResponseMatrix.from_dense(answers, model_ids=new.model_ids, item_ids=new.item_ids)
    return ij.predict_score(fit, few)["score"].to_numpy()


def _fitted(known: ij.ResponseMatrix, keeps_outliers: bool) -> ij.FitResult:
    while True:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ij.IrtjaxWarning)
            fit = ij.fit(known)
        dim = fit.report["dimensions"][0]
        if keeps_outliers or dim["flags"] != "one_model":
            return fit
        is_kept = known.model_ids != dim["top_model"]
        known = ij.ResponseMatrix.from_dense(
            np.where(known.to_dense() < 0, np.nan, known.to_dense())[is_kept],
            model_ids=known.model_ids[is_kept],
            item_ids=known.item_ids,
        )


def _after(steps: Any, new: ij.ResponseMatrix) -> np.ndarray:
    """Abilities after these steps, in the order of the models."""
    return steps.groupby("model_id").dim1_ability.last().loc[new.model_ids].to_numpy()


def _against(found: np.ndarray, full: np.ndarray) -> np.ndarray:
    found = np.nan_to_num(found)
    distance = np.mean(np.abs(rankdata(found) - rankdata(full)))
    return np.array([distance, kendalltau(found, full).statistic])


def _summary(values: np.ndarray) -> dict[str, Any]:
    summary: dict[str, Any] = {}
    for m, metric in enumerate(_METRICS):
        each = values[:, :, m]
        summary[metric] = dict(zip(METHODS, each.mean(axis=0).round(4).tolist(), strict=True))
        for name, other in _PAIRS:
            away = each[:, METHODS.index(name)] - each[:, METHODS.index(other)]
            reach = t.ppf(0.975, len(away) - 1) * away.std(ddof=1) / np.sqrt(len(away))
            interval = [round(float(away.mean() + sign * reach), 4) for sign in (-1, 1)]
            summary[metric][f"{name} minus {other}"] = interval
    return summary

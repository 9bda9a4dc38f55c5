"""Metrics of each fold, their means and standard errors, and the one-standard-error rule."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats

from irtjax.data.responses import Cells
from irtjax.model.metrics import accuracy, log_loss

__all__ = [
    "FOLD_METRICS",
    "fold_metrics",
    "mean_absolute_error",
    "one_standard_error",
    "rank_correlations",
    "summary",
]

FOLD_METRICS = ("accuracy", "mae", "log_loss", "spearman", "kendall")

# Fewer models have hardly an order.
_FEWEST_RANKED = 3


def fold_metrics(probability: np.ndarray, cells: Cells, n_models: int) -> dict[str, float]:
    """Metrics of predictions of a fold's cells: `FOLD_METRICS` and `n`, the number of cells.

    `spearman` and `kendall` compare, over the models with scored cells, the mean prediction with
    the mean response: whether the models are ranked rightly on what was not seen.
    """
    y, w = cells.response, cells.weight
    spearman, kendall = rank_correlations(
        *(_model_means(value, cells, n_models) for value in (probability, y))
    )
    return {
        "accuracy": accuracy(probability, y, w),
        "mae": mean_absolute_error(probability, y, w),
        "log_loss": log_loss(probability, y, w),
        "spearman": spearman,
        "kendall": kendall,
        "n": len(cells),
    }


def mean_absolute_error(
    probability: npt.ArrayLike, response: npt.ArrayLike, weight: npt.ArrayLike | None = None
) -> float:
    """Weighted mean of `y (1 - p) + (1 - y) p`, which is `|y - p|` for responses 0 and 1.

    A fractional response counts as `y` right answers and `1 - y` wrong ones, as in
    `irtjax.model.metrics`. NaN without cells.

    >>> mean_absolute_error([0.75, 0.5], [1, 0])
    0.375
    """
    p, y = np.asarray(probability, np.float64), np.asarray(response, np.float64)
    w = np.ones_like(p) if weight is None else np.asarray(weight, np.float64)
    total = float(w.sum())
    return float(np.dot(w, y * (1 - p) + (1 - y) * p)) / total if total > 0 else float("nan")


def rank_correlations(predicted: np.ndarray, observed: np.ndarray) -> tuple[float, float]:
    """Spearman's rho and Kendall's tau-b; NaN entries are left out.

    NaN where fewer than three are left or all are equal on one side.

    >>> rank_correlations(np.array([0.1, 0.5, 0.9]), np.array([0.2, 0.3, 0.4]))
    (1.0, 1.0)
    """
    is_known = ~(np.isnan(predicted) | np.isnan(observed))
    predicted, observed = predicted[is_known], observed[is_known]
    if len(predicted) < _FEWEST_RANKED or np.ptp(predicted) == 0 or np.ptp(observed) == 0:
        return float("nan"), float("nan")
    spearman = stats.spearmanr(predicted, observed).statistic
    return float(spearman), float(stats.kendalltau(predicted, observed).statistic)


def summary(by_fold: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    """Means over the folds and their standard errors, a row for each value of the keys.

    The standard error is `sd / sqrt(folds)` with the folds' sample standard deviation. A fold in
    which a metric is undefined is left out of both.

    Args:
        by_fold: the keys, `FOLD_METRICS` and `n`, a row a fold.
        keys: columns that tell the predictors apart.

    Returns:
        The keys in order of appearance, each metric with its `_se`, and `n`, all scored cells.
    """
    grouped = by_fold.groupby(list(keys), sort=False, dropna=False)
    metrics = list(FOLD_METRICS)
    mean, count = grouped[metrics].mean(), grouped[metrics].count()
    error = grouped[metrics].std().div(count**0.5).add_suffix("_se")
    columns = [name for metric in metrics for name in (metric, f"{metric}_se")]
    table = pd.concat([mean, error], axis=1)[columns]
    return table.assign(n=grouped["n"].sum()).reset_index()


def one_standard_error(loss: Mapping[int, float], error: Mapping[int, float]) -> int:
    """Fewest dims whose log-loss is within one standard error of the lowest.

    The standard error is that of the lowest one (Breiman, Friedman, Olshen & Stone 1984, section
    3.4.3; Hastie, Tibshirani & Friedman 2009, section 7.10).

    Args:
        loss: mean log-loss of each number of dims.
        error: its standard error over the folds.

    >>> one_standard_error({1: 0.50, 2: 0.41, 3: 0.40}, {1: 0.02, 2: 0.02, 3: 0.02})
    2
    """
    best = min(loss, key=lambda dims: (loss[dims], dims))
    return min(dims for dims in loss if loss[dims] <= loss[best] + error[best])


def _model_means(value: np.ndarray, cells: Cells, n_models: int) -> np.ndarray:
    """Weighted mean over the cells of each model, NaN without."""
    weight = cells.weight.astype(np.float64)
    total = np.bincount(cells.model_index, weight, n_models)
    summed = np.bincount(cells.model_index, weight * value, n_models)
    return np.divide(summed, total, out=np.full(n_models, np.nan), where=total > 0)

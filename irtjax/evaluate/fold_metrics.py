"""Metrics of each fold, their means and standard errors, and the one-standard-error rule."""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats

from irtjax.data.cells import Cells
from irtjax.model.metrics import accuracy, log_loss

__all__ = [
    "FOLD_METRICS",
    "ModelSums",
    "fold_metrics",
    "mean_absolute_error",
    "one_standard_error",
    "rank_correlations",
    "summary",
]

FOLD_METRICS = ("accuracy", "mae", "log_loss", "spearman", "kendall")

# Fewer models have hardly an order.
_FEWEST_RANKED = 3


@dataclasses.dataclass(frozen=True, eq=False)
class ModelSums:
    """Sums over scored cells by model: of weights, of predictions and of responses."""

    weight: np.ndarray
    predicted: np.ndarray
    observed: np.ndarray

    @classmethod
    def of(cls, probability: np.ndarray, cells: Cells, n_models: int) -> "ModelSums":
        """The sums over some cells."""
        weight = cells.weight.astype(np.float64)
        values = (weight, weight * probability, weight * cells.response)
        return cls(*(np.bincount(cells.model_index, value, n_models) for value in values))

    def __add__(self, other: "ModelSums") -> "ModelSums":
        return ModelSums(
            self.weight + other.weight,
            self.predicted + other.predicted,
            self.observed + other.observed,
        )

    def rank_correlations(self) -> tuple[float, float]:
        """Spearman's rho and Kendall's tau-b of the models' mean predictions and responses."""
        is_seen = self.weight > 0
        weight = self.weight[is_seen]
        return rank_correlations(self.predicted[is_seen] / weight, self.observed[is_seen] / weight)


def fold_metrics(probability: np.ndarray, cells: Cells, sums: ModelSums) -> dict[str, float]:
    """Metrics of predictions of a fold's cells: `FOLD_METRICS` and `n`, the number of cells.

    `spearman` and `kendall` compare, over the models with scored cells, the mean prediction with
    the mean response: whether the models are ranked rightly on what was not seen.
    """
    y, w = cells.response, cells.weight
    spearman, kendall = sums.rank_correlations()
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
    """Spearman's rho and Kendall's tau-b; NaN of fewer than three, or where a side is constant.

    >>> rank_correlations(np.array([0.1, 0.5, 0.9]), np.array([0.2, 0.3, 0.4]))
    (1.0, 1.0)
    """
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
    count = grouped[metrics].count()
    error = grouped[metrics].std().div(count**0.5).add_suffix("_se")
    columns = [name for metric in metrics for name in (metric, f"{metric}_se")]
    table = pd.concat([grouped[metrics].mean(), error], axis=1)[columns]
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

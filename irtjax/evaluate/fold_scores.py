"""Scores of every predictor on the same folds, as rows of a table."""

import dataclasses
import functools
import operator
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from irtjax.evaluate.baselines import BASELINES, predict_baselines
from irtjax.evaluate.fold_metrics import ModelSums, fold_metrics
from irtjax.evaluate.folds import Folds

__all__ = ["FoldPrediction", "Scores", "baseline_scores", "score_folds"]


@dataclasses.dataclass(frozen=True, eq=False)
class FoldPrediction:
    """Probabilities of a fold's scored cells, in the order of `Folds.scored`.

    `status` and `n_steps` say how the fit ended; None for what is not fitted by steps.
    """

    fold: int
    probability: np.ndarray
    status: str | None = None
    n_steps: int | None = None


@dataclasses.dataclass(frozen=True, eq=False)
class Scores:
    """A predictor's metrics on each fold, and its models' sums over all of them."""

    predictor: str
    dims: int | None
    by_fold: tuple[dict[str, Any], ...]
    sums: ModelSums

    def rows(self) -> Iterator[dict[str, Any]]:
        """A row a fold."""
        for row in self.by_fold:
            yield {"dims": self.dims, "predictor": self.predictor, **row}

    def pooled(self) -> dict[str, float]:
        """Rank correlations of the models' means over the scored cells of all folds."""
        spearman, kendall = self.sums.rank_correlations()
        return {"spearman_pooled": spearman, "kendall_pooled": kendall}


def score_folds(
    folds: Folds,
    predictor: str,
    dims: int | None,
    predictions: Iterable[FoldPrediction],
    on_fold: Callable[[str, int | None, int], None] | None = None,
) -> Scores:
    """Compare a predictor's folds, as they come, with the responses.

    Args:
        folds: the partition.
        predictor: its name.
        dims: its number of dims, None without.
        predictions: one a fold, in order.
        on_fold: called with predictor, dims and fold after each.
    """
    rows, sums = [], []
    for found in predictions:
        row, of_models = _scored(folds, found)
        rows.append(row)
        sums.append(of_models)
        if on_fold is not None:
            on_fold(predictor, dims, found.fold)
    return Scores(predictor, dims, tuple(rows), functools.reduce(operator.add, sums))


def baseline_scores(folds: Folds, group: np.ndarray | None) -> list[Scores]:
    """The baselines of `predict_baselines`, which learn from all but a fold's scored cells.

    Args:
        folds: the partition.
        group: benchmark code of each item, None without.
    """
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in BASELINES}
    sums: dict[str, list[ModelSums]] = {name: [] for name in BASELINES}
    for fold in range(folds.n_folds):
        predicted = predict_baselines(folds.unscored(fold), folds.scored(fold), group)
        for name in BASELINES:
            row, of_models = _scored(folds, FoldPrediction(fold, predicted[name]))
            rows[name].append(row)
            sums[name].append(of_models)
    return [
        Scores(name, None, tuple(rows[name]), functools.reduce(operator.add, sums[name]))
        for name in BASELINES
    ]


def _scored(folds: Folds, found: FoldPrediction) -> tuple[dict[str, Any], ModelSums]:
    cells = folds.scored(found.fold)
    sums = ModelSums.of(found.probability, cells, folds.data.n_models)
    metrics = fold_metrics(found.probability, cells, sums)
    return {
        "fold": found.fold,
        **metrics,
        "status": found.status,
        "n_steps": found.n_steps,
    }, sums

"""Anchor points (Polo et al. 2024, tinyBenchmarks): few items that stand for all, with weights.

Items are clustered; of each cluster the item nearest to its centre is the anchor, and weighs as
many items as the cluster has. Clusters are of the items' parameters, or of the answers that the
fitted models gave.
"""

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from irtjax.checks import check_text, check_whole, shown
from irtjax.errors import InputError
from irtjax.fit.tables import slope_and_intercept
from irtjax.score.clustering import k_means
from irtjax.score.known import check_fit

if TYPE_CHECKING:
    from irtjax.fit.result import FitResult

__all__ = ["anchor_points", "clustered"]

_FEATURES = ("parameters", "answers")


def anchor_points(
    fit: "FitResult", n_items: int, *, features: str = "parameters", seed: int = 0
) -> pd.DataFrame:
    """Anchor items with the share of all items that each stands for.

    Args:
        fit: the fit.
        n_items: anchors, at most as many as the fit has items. Fewer where clusters coincide.
        features: cluster by `parameters` (slopes and intercepts) or by the `answers` of the fitted
            models (missing ones: the item's share right).
        seed: of the clusters' starts.

    Returns:
        `item_id` and `weight` (they sum to 1), in the order of the fit's items.

    Raises:
        InputError: more anchors than items; unknown features.
    """
    check_fit(fit, "anchor_points")
    n_items = check_whole("the number of anchors", n_items, 1, fit.data.n_items)
    seed = check_whole("seed", seed, 0)
    if check_text("features", features) not in _FEATURES:
        raise InputError(f"features {shown(features)} are not known; use parameters or answers")
    chosen, weight = clustered(_features(fit, features), n_items, seed)
    return pd.DataFrame({"item_id": fit.data.item_ids[chosen], "weight": weight})


def clustered(features: np.ndarray, n_clusters: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The row nearest to each cluster's centre, and the cluster's share of all rows.

    Args:
        features: rows x columns, float.
        n_clusters: of `k_means`; empty clusters are left out.
        seed: of the start.

    Returns:
        Rows in increasing order and weights that sum to 1.
    """
    centre, label = k_means(features, np.ones(len(features)), n_clusters, seed)
    count = np.bincount(label, minlength=n_clusters)
    distance = np.sum((features - centre[label]) ** 2, axis=1)
    order = np.lexsort((distance, label))
    first = np.searchsorted(label[order], np.flatnonzero(count))
    rows = order[first]
    weight = count[label[rows]] / len(features)
    by_row = np.argsort(rows)
    return rows[by_row], weight[by_row]


def _features(fit: "FitResult", features: str) -> np.ndarray:
    if features == "parameters":
        slope, intercept, _ = slope_and_intercept(fit)
        return np.concatenate([slope, intercept[:, None]], axis=1)
    matrix = fit.data.to_dense().T.astype(np.float64)
    share = fit.data.totals("items")[1]
    filled = np.where(np.isnan(share), np.nanmean(share), share)
    return np.where(matrix >= 0, matrix, filled[:, None])

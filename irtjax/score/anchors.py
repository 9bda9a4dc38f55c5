"""Anchor points (Polo et al. 2024, tinyBenchmarks): few items that stand for all, with weights.

Items are clustered; of each cluster the item nearest to its centre is the anchor, and weighs as
many items as the cluster has. Clusters are of the items' parameters, or of the answers that the
fitted models gave.
"""

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from scipy.spatial import cKDTree

from irtjax.checks import check_text, check_whole, shown
from irtjax.errors import InputError
from irtjax.fit.tables import slope_and_intercept
from irtjax.score.clustering import k_means
from irtjax.score.known import check_fit
from irtjax.score.ties import first_of_equals

if TYPE_CHECKING:
    from irtjax.fit.result import FitResult

__all__ = ["anchor_points", "anchor_rows"]

_FEATURES = ("parameters", "answers")


def anchor_points(
    fit: "FitResult", n_items: int, *, features: str = "parameters", seed: int = 0
) -> pd.DataFrame:
    """Anchor items with the share of all items that each stands for.

    Args:
        fit: the fit.
        n_items: anchors, at most as many as the fit has items.
        features: cluster by `parameters` (slopes and intercepts) or by the `answers` of the fitted
            models (missing ones: the item's share right).
        seed: of the clusters' starts.

    Returns:
        `item_id` and `weight` (they sum to 1), the largest weight first.

    Raises:
        InputError: more anchors than items; unknown features.
    """
    check_fit(fit, "anchor_points")
    n_items = check_whole("the number of anchors", n_items, 1, fit.data.n_items)
    seed = check_whole("seed", seed, 0)
    if check_text("features", features) not in _FEATURES:
        raise InputError(f"features {shown(features)} are not known; use parameters or answers")
    by_id = np.argsort(fit.data.item_ids, kind="stable")
    chosen, weight = anchor_rows(_features(fit, features)[by_id], n_items, seed)
    return pd.DataFrame({"item_id": fit.data.item_ids[by_id[chosen]], "weight": weight})


def anchor_rows(
    features: Float[np.ndarray, "rows columns"], n_anchors: int, seed: int
) -> tuple[Int[np.ndarray, " anchors"], Float[np.ndarray, " anchors"]]:
    """The row nearest to each cluster's centre, and the share of all rows that it stands for.

    Args:
        features: of the items, in the order of their ids: the first of equally near ones is taken.
        n_anchors: at most the number of rows.
        seed: of the clusters' starts.

    Returns:
        Rows and weights, which sum to 1; the largest weight first.
    """
    centre, cluster = k_means(features, np.ones(len(features)), n_anchors, seed)
    away = np.linalg.norm(features - centre[cluster], axis=1)
    by_cluster = np.lexsort((-first_of_equals(-away), cluster))
    anchors = by_cluster[np.r_[True, np.diff(cluster[by_cluster]) > 0]]
    # Clusters of equal items may be empty: what is farthest from all anchors comes in their place.
    while len(anchors) < n_anchors:
        far = np.asarray(cKDTree(features[anchors]).query(features)[0])
        far[anchors] = -1
        anchors = np.append(anchors, np.argmax(far))
    nearest = np.asarray(cKDTree(features[anchors]).query(features)[1])
    nearest[anchors] = np.arange(n_anchors)
    weight = np.bincount(nearest, minlength=n_anchors) / len(features)
    order = np.lexsort((anchors, -weight))
    return anchors[order], weight[order]


def _features(fit: "FitResult", features: str) -> np.ndarray:
    if features == "parameters":
        slope, intercept, _ = slope_and_intercept(fit)
        return np.concatenate([slope, intercept[:, None]], axis=1)
    matrix = fit.data.to_dense().T.astype(np.float64)
    share = fit.data.totals("items")[1]
    filled = np.where(np.isnan(share), np.nanmean(share), share)
    return np.where(matrix >= 0, matrix, filled[:, None])

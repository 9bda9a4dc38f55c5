"""Anchor items: one for each cluster of alike items, weighted by the cluster's size.

Source: Polo et al. (2024), tinyBenchmarks, arXiv 2402.14992: clusters of the items' parameters.
"""

import numpy as np
from scipy.spatial import cKDTree

from irtjax.model.curves import ItemCurves
from irtjax.score.clustering import k_means

__all__ = ["anchor_items"]


def anchor_items(curves: ItemCurves, n_anchors: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Positions of the anchors, and the share of all items that each stands for.

    Items are clustered by slopes and intercept; the anchor of a cluster is the item nearest to its
    centre. The largest cluster first, then the first id.

    Args:
        curves: the items, in the order of their ids.
        n_anchors: at most the number of items.
        seed: of the clusters' starts.
    """
    points = np.concatenate(
        [np.asarray(curves.slope, np.float64), np.asarray(curves.intercept, np.float64)[:, None]],
        axis=1,
    )
    centre, cluster = k_means(points, np.ones(len(points)), n_anchors, seed)
    away = np.linalg.norm(points - centre[cluster], axis=1)
    by_cluster = np.lexsort((np.arange(len(points)), away, cluster))
    first = np.r_[True, np.diff(cluster[by_cluster]) > 0]
    anchors = by_cluster[first]
    # Clusters of equal items may be empty: what is farthest from all anchors comes in their place.
    while len(anchors) < n_anchors:
        far = np.asarray(cKDTree(points[anchors]).query(points)[0])
        far[anchors] = -1
        anchors = np.append(anchors, np.argmax(far))
    nearest = np.asarray(cKDTree(points[anchors]).query(points)[1])
    nearest[anchors] = np.arange(n_anchors)
    weight = np.bincount(nearest, minlength=n_anchors) / len(points)
    order = np.lexsort((anchors, -weight))
    return anchors[order], weight[order]

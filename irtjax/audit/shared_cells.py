"""Copies that do not show in whole columns, as some cells of one of them are missing."""

import dataclasses
from collections.abc import Iterator

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from irtjax.audit.dependence import Twins, dense_rows, identical_items
from irtjax.audit.item_evidence import ItemEvidence, curves_of
from irtjax.audit.item_mixture import ROWS, Counts, either_right_kind, evidence_of
from irtjax.data.responses import ResponseMatrix

__all__ = ["Copies", "copied_items"]


@dataclasses.dataclass(frozen=True)
class Copies:
    """Which items have the same responses.

    Attributes:
        same: items, a number, the same for items with the same responses.
        copies: how many items have it.
        alike: how many items each was compared with, itself included.
        log_marginal: log-probability of the responses that are the same, for any item.
        is_partial: whether they are the same in the cells only that both have.
    """

    same: np.ndarray
    copies: np.ndarray
    alike: np.ndarray
    log_marginal: np.ndarray
    is_partial: np.ndarray


def copied_items(
    data: ResponseMatrix, evidence: ItemEvidence, twins: Twins, group: np.ndarray
) -> Copies:
    """Equal columns, and items equal to the closest one by Q3 in the cells that both have.

    Args:
        data: the responses.
        evidence: of the items.
        twins: the closest other item of each.
        group: of each item: the closest one is of the same.
    """
    same, copies, alike = identical_items(data)
    marginal = either_right_kind(evidence.items, evidence.falling)
    whole = Copies(same, copies, alike, marginal, np.zeros(data.n_items, bool))
    response = dense_rows(data, np.arange(data.n_items))
    if (response >= 0).all():
        return whole
    is_asked = (twins.partner >= 0) & (twins.q3 > 0)
    item = np.flatnonzero(is_asked)
    item = item[same[item] != same[twins.partner[item]]]
    other = twins.partner[item]
    is_shared = (response[item] >= 0) & (response[other] >= 0)
    is_equal = np.all((response[item] == response[other]) | ~is_shared, axis=1)
    chosen = np.flatnonzero(is_equal & is_shared.any(axis=1))
    # Whoever has a closest item was compared with all of the group.
    alike = np.where(is_asked, np.bincount(group)[group], alike)
    # By chance an item is equal to another in the cells that both have, not in all of its own.
    is_short = is_asked & (copies == 1)
    marginal = np.where(is_short, marginal * np.mean(response >= 0), marginal)
    whole = dataclasses.replace(whole, alike=alike, log_marginal=marginal)
    if not len(chosen):
        return whole
    log_shared = _log_marginal(evidence, item[chosen], response, is_shared[chosen])
    return _linked(whole, item[chosen], other[chosen], log_shared)


def _log_marginal(
    evidence: ItemEvidence, item: np.ndarray, response: np.ndarray, is_shared: np.ndarray
) -> np.ndarray:
    """Log-probability of the shared responses of each item."""
    found = np.empty(len(item))
    group = evidence.composite.group[item]
    for g in np.unique(group).tolist():
        chosen = np.flatnonzero(group == g)
        curves = curves_of(evidence.composite, g).without_wrong_key()
        counts = _shared_counts(response[item[chosen]], is_shared[chosen])
        each = evidence_of(counts, curves, evidence.mixture)
        found[chosen] = either_right_kind(each, evidence.falling[item[chosen]])
    return found


def _shared_counts(response: np.ndarray, is_shared: np.ndarray) -> Iterator[Counts]:
    for start in range(0, len(response), ROWS):
        rows = slice(start, start + ROWS)
        right = np.where(is_shared[rows], response[rows], 0)
        wrong = np.where(is_shared[rows], 1 - response[rows], 0)
        yield Counts(right.astype(np.float32), wrong.astype(np.float32))


def _linked(whole: Copies, item: np.ndarray, other: np.ndarray, log_shared: np.ndarray) -> Copies:
    """Join the classes of items and others; equal columns keep their own probability."""
    n_classes = int(whole.same.max()) + 1
    edges = coo_array(
        (np.ones(len(item)), (whole.same[item], whole.same[other])), shape=(n_classes, n_classes)
    )
    same = connected_components(edges, directed=False)[1][whole.same]
    least = np.full(len(same), np.inf)
    np.minimum.at(least, np.concatenate([item, other]), np.concatenate([log_shared, log_shared]))
    is_partial = (whole.copies == 1) & np.isfinite(least)
    marginal = np.where(is_partial, least, whole.log_marginal)
    return Copies(same, np.bincount(same)[same], whole.alike, marginal, is_partial)

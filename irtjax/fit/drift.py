"""Which anchors drifted: items whose parameters differ between two linked fits by too much."""

import dataclasses
from collections.abc import Callable

import numpy as np
from jaxtyping import Bool, Float
from scipy.stats import chi2

from irtjax.fit.link_methods import AnchorItems, matched_moments
from irtjax.fit.scale_change import ScaleChange

__all__ = ["CONFIDENCE", "Drift", "linked_without_drift", "statistics", "threshold_of"]

# An item drifted when its difference would be this rare if it had not.
CONFIDENCE = 0.999
_MOST_ROUNDS = 20
_FIRST_ROUNDS = 25


@dataclasses.dataclass(frozen=True, eq=False)
class Drift:
    """How far each anchor's parameters differ on the common scale.

    `statistic` is Lord's chi-square (1980): `d' (V + V_ref)^-1 d` with d the difference of
    `(slope, intercept)`, divided by `inflation`, by which its median exceeds that of a chi-square
    (1 where it does not): what two fits differ by in all items is no drift of some.
    """

    statistic: Float[np.ndarray, " items"]
    inflation: float
    threshold: float

    @property
    def is_drifted(self) -> Bool[np.ndarray, " items"]:
        """Which items drifted."""
        return self.statistic > self.threshold


def threshold_of(dims: int, *, is_common: bool) -> float:
    """The quantile of the chi-square with a degree of freedom a parameter."""
    return float(chi2.ppf(CONFIDENCE, 1 if is_common else dims + 1))


def statistics(linked: AnchorItems, reference: AnchorItems, *, is_common: bool) -> Drift:
    """Compare items on one scale; those with a common slope by their intercepts alone."""
    dims = reference.slope.shape[1]
    first = dims if is_common else 0
    away = (linked.coordinates - reference.coordinates)[:, first:]
    covariance = (linked.covariance + reference.covariance)[:, first:, first:]
    size = away.shape[1]
    # Parameters that are known without error still have rounding.
    covariance = covariance + 1e-9 * np.eye(size)
    squared = np.einsum("ja,ja->j", away, np.linalg.solve(covariance, away[..., None])[..., 0])
    inflation = max(1.0, float(np.median(squared) / chi2.ppf(0.5, size)))
    return Drift(squared / inflation, inflation, threshold_of(dims, is_common=is_common))


def linked_without_drift(
    run: AnchorItems,
    reference: AnchorItems,
    method: Callable[[AnchorItems, AnchorItems, np.ndarray], ScaleChange],
    *,
    is_common: bool,
) -> tuple[ScaleChange, Drift]:
    """The change of scale by the anchors that did not drift, and the drift of all.

    The first link is by matched moments with weights `1 / (1 + statistic)` until these settle
    (a Cauchy likelihood), so that a tenth of drifted items does not pull it; then the method on the
    items that did not drift, until they are the same ones. At least half of the items stay: the
    statistic is relative to its median.
    """
    weight = np.ones(len(run.intercept))
    change = matched_moments(run, reference, weight, is_common=is_common)
    for _ in range(_FIRST_ROUNDS):
        drift = statistics(run.changed(change), reference, is_common=is_common)
        weight = 1 / (1 + drift.statistic)
        change = matched_moments(run, reference, weight, is_common=is_common)
    drift = statistics(run.changed(change), reference, is_common=is_common)
    seen: set[bytes] = set()
    for _ in range(_MOST_ROUNDS):
        kept = ~drift.is_drifted
        change = method(run.at(kept), reference.at(kept), np.ones(np.count_nonzero(kept)))
        drift = statistics(run.changed(change), reference, is_common=is_common)
        if kept.tobytes() in seen or np.array_equal(kept, ~drift.is_drifted):
            break
        seen.add(kept.tobytes())
    return change, drift

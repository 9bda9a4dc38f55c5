"""Blocks copied from another model, models that are there twice, and how many models there are."""

import dataclasses
from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float

from irtjax.audit.integrity.pairs import Pairs
from irtjax.audit.integrity.testing import (
    FALSE_ALARMS,
    INNOCENT_SHARE,
    chernoff_log_p,
    discovery_rates,
)

__all__ = ["Copy", "Similarity", "copies_in", "expected_difference", "is_duplicate"]

_HIGHEST_CORRELATION = 0.95
_IN_MAIN_ORDER = 0.3  # of the largest weight
_MOST_FOR_MEDIAN = 300
_RELATED = 0.5
_FEWEST_DIFFERENCES = 10


@dataclasses.dataclass(frozen=True)
class Copy:
    """Two blocks of a benchmark that differ too little.

    Attributes:
        benchmark: name.
        first: row of the matrix.
        second: row of the matrix, the later one.
        n_common: cells that both answered.
        seen: cells that differ (sum of squared differences).
        expected: how many would, if both had only the items' easiness in common.
        log_p: of so few if a third of the expected were the rule.
    """

    benchmark: str
    first: int
    second: int
    n_common: int
    seen: float
    expected: float
    log_p: float


class Similarity:
    """How much less each two models differ than their accuracies suggest, over all benchmarks."""

    def __init__(self, n_models: int) -> None:
        self.seen = np.zeros((n_models, n_models), np.float32)
        self.expected = np.zeros((n_models, n_models), np.float32)

    def add(self, pairs: Pairs, expected: Float[np.ndarray, "models models"]) -> None:
        """Count one benchmark in."""
        known = pairs.is_known
        place = np.ix_(pairs.model, pairs.model)
        self.seen[place] += np.where(known, pairs.difference, 0)
        self.expected[place] += np.where(known, expected, 0)

    def excess_of(self, first: int, second: int) -> float:
        """`excess` of one pair."""
        expected = float(self.expected[first, second])
        return 1 - float(self.seen[first, second]) / expected if expected > 0 else 0.0

    @property
    def excess(self) -> Float[np.ndarray, "models models"]:
        """0: as different as expected or more; 1: no difference. 1 on the diagonal."""
        safe = np.where(self.expected > 0, self.expected, 1)
        excess = np.where(self.expected > 0, 1 - self.seen / safe, 0)
        np.fill_diagonal(excess, 1)
        return np.clip(excess, 0, 1)

    def evidence(self) -> Float[np.ndarray, " models"]:
        """What each model counts as: 1 alone, 1/k among k copies; the sum is the effective number.

        `1 / sum_k w_ik s_ik^2` over the models with half of the expected differences or fewer, with
        `s = 1 - seen / expected`. Lesser likeness is what models have that were trained alike. `w`
        is the certainty that the likeness is not the chance of so many pairs: 1 minus the number
        of pairs expected to be as like by chance over the number that are.
        """
        excess = self.excess
        np.fill_diagonal(excess, 0)
        first, second = np.nonzero(np.triu(excess >= _RELATED))
        log_p = chernoff_log_p(self.seen[first, second], self.expected[first, second])
        n_pairs = int(np.count_nonzero(self.expected)) // 2
        weight = 1 - discovery_rates(np.exp(log_p), n_pairs)
        own = weight * excess[first, second] ** 2
        n_models = len(excess)
        both = np.bincount(first, own, n_models) + np.bincount(second, own, n_models)
        return 1 / (1 + both)


def expected_difference(
    pairs: Pairs, weight: Float[np.ndarray, " models"]
) -> Float[np.ndarray, "models models"]:
    """Squared differences of two models that share the easiness of the items and nothing else.

    `n ((p_i - p_k)^2 + v_i + v_k - 2 cov)` with the covariance of two typical models of these
    accuracies.

    Args:
        pairs: of one benchmark.
        weight: of each model in the main order, where `typical` is looked for.
    """
    steepness = pairs.steepness()
    variance = pairs.spread**2
    apart = (pairs.share[:, None] - pairs.share[None, :]) ** 2
    apart = apart + variance[:, None] + variance[None, :]
    slope, scale = np.outer(steepness, steepness), np.outer(pairs.spread, pairs.spread)
    typical = _typical_product(pairs, weight, apart, slope, scale)
    correlation = np.clip(typical * slope, 0, _HIGHEST_CORRELATION)
    return pairs.n_common * (apart - 2 * correlation * scale)


def copies_in(
    pairs: Pairs, expected: Float[np.ndarray, "models models"], n_tests: int
) -> list[Copy]:
    """The pairs of a benchmark that differ in certainly less than a third of what is expected."""
    rows, columns = np.nonzero(np.triu(pairs.is_known & (pairs.difference < expected), 1))
    seen = pairs.difference[rows, columns].astype(np.float64)
    log_p = chernoff_log_p(np.maximum(seen, 0), INNOCENT_SHARE * expected[rows, columns])
    found = np.flatnonzero(log_p <= np.log(FALSE_ALARMS / max(n_tests, 1)))
    return [
        Copy(
            pairs.benchmark.name,
            int(pairs.model[rows[k]]),
            int(pairs.model[columns[k]]),
            int(pairs.n_common[rows[k], columns[k]]),
            float(max(seen[k], 0)),
            float(expected[rows[k], columns[k]]),
            float(log_p[k]),
        )
        for k in found
    ]


def is_duplicate(copies: Sequence[Copy], similarity: Similarity) -> bool:
    """Whether two models with copied blocks are alike outside the largest of these, too."""
    largest = max(copies, key=lambda copy: copy.expected)
    at = largest.first, largest.second
    seen = float(similarity.seen[at]) - largest.seen
    expected = float(similarity.expected[at]) - largest.expected
    return expected >= _FEWEST_DIFFERENCES and seen <= INNOCENT_SHARE * expected


def _typical_product(
    pairs: Pairs,
    weight: Float[np.ndarray, " models"],
    apart: Float[np.ndarray, "models models"],
    slope: Float[np.ndarray, "models models"],
    scale: Float[np.ndarray, "models models"],
) -> float:
    """Median correlation per steepness of both, among models that share the main order."""
    chosen = np.flatnonzero(weight >= _IN_MAIN_ORDER * max(weight.max(initial=0), 1e-12))
    chosen = chosen[:: max(1, len(chosen) // _MOST_FOR_MEDIAN)]
    part = np.ix_(chosen, chosen)
    usable: Bool[np.ndarray, "models models"] = np.triu(pairs.is_known[part], 1)
    usable &= (slope[part] > 0) & (scale[part] > 0)
    if not usable.any():
        return 0.0
    covariance = (apart[part] - pairs.difference[part] / np.maximum(pairs.n_common[part], 1)) / 2
    product = covariance[usable] / (scale[part][usable] * slope[part][usable])
    return float(np.median(product))

"""The agreement of each block with the other models' blocks, against what it should be."""

import dataclasses

import numpy as np
from jaxtyping import Bool, Float
from scipy.sparse.linalg import eigsh
from scipy.stats import norm

from irtjax.audit.integrity.pairs import FEWEST_CELLS, Pairs
from irtjax.audit.integrity.testing import INNOCENT_SHARE

__all__ = [
    "Agreement",
    "agreement_with",
    "main_agreement",
    "mates_against",
    "mates_with",
    "sharing",
    "typical_agreement",
]

_FEWEST_OTHERS = 2
_NEAREST = 5
_NEAREST_PART = 10
_FEWEST_OF_A_KIND = 5  # right answers, and wrong ones: below, a correlation is no normal number
_EXACT_UP_TO = 500
_LOW = 0.1
_MATE_WEIGHT, _CORE_WEIGHT = 0.3, 0.5  # of the largest weight
_SURE = 2.0  # standard errors
# Of the expected agreement. Blocks exchanged on purpose reach .6 to 1.7, clean ones of a model far
# from the rest mostly 1.4 to 2.9.
_MOST_DISAGREEMENT = 2.0


@dataclasses.dataclass(frozen=True)
class Agreement:
    """One value a model of `Pairs`: correlation with a weighted sum of the other models.

    Attributes:
        weight: of each model in that sum.
        seen: correlation with the others of the sum, each two models' correlations weighted.
        error: its standard error if the block said nothing about these items.
        expected: what models of its accuracy reach when their cells are in place.
        unguessed: the same if they do not guess.
        is_tested: enough cells, right and wrong answers, and others to say.
        typical: latent correlation of two models like this one, from those around it.
    """

    weight: Float[np.ndarray, " models"]
    seen: Float[np.ndarray, " models"]
    error: Float[np.ndarray, " models"]
    expected: Float[np.ndarray, " models"]
    unguessed: Float[np.ndarray, " models"]
    is_tested: Bool[np.ndarray, " models"]
    typical: Float[np.ndarray, " models"]

    @property
    def ratio(self) -> Float[np.ndarray, " models"]:
        """Agreement over its expectation, NaN where none is expected."""
        safe = np.where(self.expected > 0, self.expected, 1)
        return np.where(self.expected > 0, self.seen / safe, np.nan)

    @property
    def z(self) -> Float[np.ndarray, " models"]:
        """Against an innocent block that agrees a third as well as expected: very low is guilty.

        Disagreement counts as no agreement: it is no sign of another order.
        """
        safe = np.where(self.error > 0, self.error, 1)
        score = (np.maximum(self.seen, 0) - INNOCENT_SHARE * self.expected) / safe
        return np.where(self.is_tested & (self.error > 0), score, np.nan)

    @property
    def z_inverted(self) -> Float[np.ndarray, " models"]:
        """Against no agreement, where disagreement is what is expected of agreement, roughly.

        A third of it to twice as much: an exchange turns the sign. Who disagrees more than anybody
        agrees is far from the rest, on items that differ in slope. Guessing is no excuse: who
        guesses does not agree, and does not disagree either; and the exchange makes the strongest
        look the weakest.
        """
        safe = np.where(self.error > 0, self.error, 1)
        third = INNOCENT_SHARE * self.unguessed
        # Where hardly any agreement is expected, any disagreement would do.
        is_telling = (third >= self.error) & (self.seen <= -third)
        is_telling &= self.seen >= -_MOST_DISAGREEMENT * self.unguessed
        return np.where(self.is_tested & (self.error > 0) & is_telling, self.seen / safe, np.nan)


def main_agreement(pairs: Pairs, is_known: Bool[np.ndarray, "models models"]) -> Agreement:
    """Agreement with the order of items that most models share.

    The weights are the leading eigenvector of the correlations: models in another order, whose
    correlations with the rest are 0, get none however many they are, so long as they agree less
    among themselves than the rest does.

    Args:
        pairs: of one benchmark.
        is_known: which pairs count; copies of one block do not.
    """
    correlation = np.where(is_known, pairs.correlation, 0)
    weight = _leading(correlation)
    plain = agreement_with(pairs, is_known, weight, np.ones(len(weight)), pairs.steepness())
    typical = _typical(pairs, plain, weight)
    steepness = pairs.steepness(pairs.floor)
    if len(weight) > 0:
        steepness = np.maximum(steepness, _shown_by_weaker(pairs, plain, typical))
    return agreement_with(pairs, is_known, weight, typical, steepness)


def agreement_with(
    pairs: Pairs,
    is_known: Bool[np.ndarray, "models models"],
    weight: Float[np.ndarray, " models"],
    typical: Float[np.ndarray, " models"],
    steepness: Float[np.ndarray, " models"],
) -> Agreement:
    """Agreement with a weighted sum of other models.

    Args:
        pairs: of one benchmark.
        is_known: which pairs count.
        weight: of the others, at least 0.
        typical: product of two models' latent correlations with what they share, for each model.
        steepness: of each model at the guessing rate it is granted.
    """
    correlation = np.where(is_known, pairs.correlation, 0)
    full = pairs.steepness()
    known = is_known @ weight
    safe = np.where(known > 0, known, 1)
    seen = correlation @ weight / safe
    shared = typical * (is_known @ (weight * full)) / safe
    # Variance of a sum of correlated others, the model itself left out.
    spread = weight @ correlation @ weight + weight @ weight
    own = spread - 2 * weight * (correlation @ weight) - weight**2
    n_common = np.where(is_known, pairs.n_common, 0) @ weight / safe
    error = np.sqrt(np.maximum(own, 0) / np.maximum(n_common, 1)) / safe
    enough = (is_known & (weight > 0)[None, :]).sum(axis=1) >= _FEWEST_OTHERS
    rare = pairs.n_cells * np.minimum(pairs.share, 1 - pairs.share)
    tested = enough & (n_common >= FEWEST_CELLS) & (rare >= _FEWEST_OF_A_KIND)
    expected, unguessed = (np.maximum(shared * each, 0) for each in (steepness, full))
    return Agreement(weight, seen, error, expected, unguessed, tested, typical)


def mates_against(
    pairs: Pairs, is_known: Bool[np.ndarray, "models models"], main: Agreement
) -> Float[np.ndarray, " models"]:
    """Part of the main order's models that disagree with each as an inverse would.

    That is certainly by more than a third of the expected agreement.
    """
    steepness = pairs.steepness()
    is_mate = _mates(main, _MATE_WEIGHT)
    expected = main.typical[:, None] * steepness[:, None] * steepness[None, is_mate]
    return _share_of_mates(
        pairs, is_known, is_mate, -pairs.correlation[:, is_mate] - INNOCENT_SHARE * expected
    )


def mates_with(
    pairs: Pairs, is_known: Bool[np.ndarray, "models models"], main: Agreement
) -> Float[np.ndarray, " models"]:
    """Part of the main order's models that certainly agree with each."""
    is_mate = _mates(main, _MATE_WEIGHT)
    return _share_of_mates(pairs, is_known, is_mate, pairs.correlation[:, is_mate])


def sharing(
    is_known: Bool[np.ndarray, "models models"], main: Agreement
) -> Float[np.ndarray, " models"]:
    """Part of the others that share the main order closely; 0 where none are known."""
    counted = is_known & main.is_tested[None, :]
    is_mate = _mates(main, _CORE_WEIGHT).astype(np.float64)
    return counted @ is_mate / np.maximum(counted.sum(axis=1), 1)


def typical_agreement(agreement: Agreement) -> float:
    """Weighted median of the models' typical latent correlations; 0 where there are none."""
    chosen = agreement.weight > 0
    if not chosen.any():
        return 0.0
    return _weighted_median(agreement.typical[chosen], agreement.weight[chosen])


def _mates(main: Agreement, part: float) -> Bool[np.ndarray, " models"]:
    return main.weight >= part * max(main.weight.max(initial=0), 1e-12)


def _share_of_mates(
    pairs: Pairs,
    is_known: Bool[np.ndarray, "models models"],
    is_mate: Bool[np.ndarray, " models"],
    excess: Float[np.ndarray, "models mates"],
) -> Float[np.ndarray, " models"]:
    """Part of the known mates for whom a correlation's excess is certainly above 0."""
    counted = is_known[:, is_mate]
    beyond = excess * np.sqrt(pairs.n_common[:, is_mate]) > _SURE
    return np.sum(beyond & counted, axis=1) / np.maximum(counted.sum(axis=1), 1)


def _typical(
    pairs: Pairs, plain: Agreement, weight: Float[np.ndarray, " models"]
) -> Float[np.ndarray, " models"]:
    """What the others reach per steepness: the lower of all models' and the most similar ones'.

    Similar is a similar accuracy: weak models agree with strong ones less than a common latent
    easiness would have it, also where nobody guesses.
    """
    n_models = len(weight)
    ratio = np.where(plain.is_tested, plain.ratio, np.nan)
    usable = np.isfinite(ratio)
    place = norm.ppf(np.clip(pairs.share, 1e-6, 1 - 1e-6))
    n_nearest = max(_NEAREST, n_models // _NEAREST_PART)
    order = np.argsort(np.where(usable, ratio, np.inf))[: usable.sum()]
    cumulated = np.cumsum(weight[order])
    typical = np.zeros(n_models)
    for i in range(n_models):
        others = usable.copy()
        others[i] = False
        if others.sum() < _FEWEST_OTHERS or weight[others].sum() <= 0:
            continue
        everyone = _median_without(ratio, weight, order, cumulated, i)
        distance = np.where(others, np.abs(place - place[i]), np.inf)
        n_near = min(n_nearest, int(others.sum()))
        near = np.argpartition(distance, n_near - 1)[:n_near]
        typical[i] = max(min(everyone, float(np.median(ratio[near]))), 0)
    return typical


def _shown_by_weaker(
    pairs: Pairs, plain: Agreement, typical: Float[np.ndarray, " models"]
) -> Float[np.ndarray, " models"]:
    """The steepness that models no better than each still show, 0 where there are too few.

    Where weaker models agree with the rest, a model of this accuracy does not guess: the floor,
    which only says how much guessing there could be, then need not be granted.
    """
    n_models = len(typical)
    order = np.argsort(pairs.share, kind="stable")
    ratio = np.where(plain.is_tested & np.isfinite(plain.ratio), plain.ratio, 0)[order]
    n_near = max(_NEAREST, n_models // _NEAREST_PART)
    lowest = np.zeros(n_models)
    for rank in range(_NEAREST, n_models):
        weaker = ratio[max(rank - n_near, 0) : rank]
        lowest[order[rank]] = np.quantile(weaker, _LOW, method="lower")
    share = lowest / np.where(typical > 0, typical, np.inf)
    return pairs.steepness() * np.clip(share, 0, 1)


def _median_without(
    ratio: np.ndarray, weight: np.ndarray, order: np.ndarray, cumulated: np.ndarray, left_out: int
) -> float:
    """Weighted median of all but one, from their order and cumulated weights."""
    place = np.flatnonzero(order == left_out)
    if len(place):
        cumulated = cumulated - np.where(np.arange(len(order)) >= place[0], weight[left_out], 0)
    at = np.searchsorted(cumulated, cumulated[-1] / 2)
    return float(ratio[order[min(at, len(order) - 1)]])


def _weighted_median(values: np.ndarray, weight: np.ndarray) -> float:
    order = np.argsort(values)
    cumulated = np.cumsum(weight[order])
    return float(values[order[np.searchsorted(cumulated, cumulated[-1] / 2)]])


def _leading(correlation: Float[np.ndarray, "models models"]) -> Float[np.ndarray, " models"]:
    """Positive part of the leading eigenvector, with the sign of the larger sum."""
    n_models = len(correlation)
    if n_models == 0:
        return np.zeros(0)
    if n_models <= _EXACT_UP_TO:
        vector = np.linalg.eigh(correlation)[1][:, -1]
    else:
        vector = eigsh(correlation, k=1, which="LA", v0=np.ones(n_models))[1][:, 0]
    return np.maximum(vector if vector.sum() >= 0 else -vector, 0)

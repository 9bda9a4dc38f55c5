"""Blocks whose items stand in another order: alone, or as a group that shares one of its own."""

import dataclasses

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components
from scipy.stats import norm

from irtjax.audit.integrity.agreement import (
    Agreement,
    agreement_with,
    mates_against,
    mates_with,
    sharing,
    typical_agreement,
)
from irtjax.audit.integrity.pairs import Pairs
from irtjax.audit.integrity.testing import FALSE_ALARMS, INNOCENT_SHARE

__all__ = ["Order", "is_inverted", "is_out_of_order", "other_orders", "parties"]

_FEWEST_MEMBERS = 2
_FEW = 0.1  # of the main order's models, or of the pairs
# Of the others close to the main order. Where clean blocks would be accused without this rule,
# mostly .36 to .73 of them are; around a block exchanged on purpose .8 to 1.
_MOST = 0.8
_LINK_SHARE = 1 / 6
_CERTAIN = 4.0  # standard errors, of one pair among many


@dataclasses.dataclass(frozen=True)
class Order:
    """Models that agree with each other about a benchmark's items and not with the rest.

    Attributes:
        member: places in `Pairs`.
        seen: agreement of each with the other members.
        z: against agreement with the rest that is a third of it, both per expectation.
        p: of belonging by chance: the larger of that z's and of no agreement within.
    """

    member: Int[np.ndarray, " members"]
    seen: Float[np.ndarray, " members"]
    z: Float[np.ndarray, " members"]
    p: Float[np.ndarray, " members"]


def parties(
    pairs: Pairs, is_known: Bool[np.ndarray, "models models"], main: Agreement
) -> Int[np.ndarray, " models"]:
    """Models linked by chains of agreement: one number each, 0 for those of the main order.

    Strong models err on items of low discrimination, on which weak ones are no worse, so that the
    two may not agree at all; those between agree with both. Nobody is between two orders of items.
    """
    # A latent correlation; where nearly all is wrong it comes out above 1.
    level = min(typical_agreement(main), 1.0)
    expected = level * np.outer(pairs.steepness(), pairs.steepness())
    certain = max(_CERTAIN, float(norm.isf(FALSE_ALARMS / max(len(is_known), 1))))
    is_sure = pairs.correlation * np.sqrt(pairs.n_common) > certain
    linked = is_known & is_sure & (pairs.correlation > _LINK_SHARE * expected)
    label = connected_components(csr_matrix(linked), directed=False)[1]
    if len(label) == 0:
        return label
    first = label[int(np.argmax(main.weight))]
    return np.where(label == first, 0, np.where(label == 0, first, label))


def is_out_of_order(
    pairs: Pairs,
    is_known: Bool[np.ndarray, "models models"],
    main: Agreement,
    party: Int[np.ndarray, " models"],
    p_limit: float,
) -> Bool[np.ndarray, " models"]:
    """Blocks that certainly agree with the main order less than a third as well as expected."""
    p = np.where(np.isfinite(main.z), norm.cdf(np.nan_to_num(main.z)), 1)
    is_neutral = mates_against(pairs, is_known, main) <= _FEW
    return (p <= p_limit) & (party > 0) & is_neutral & _others_agree(pairs, is_known)


def is_inverted(
    pairs: Pairs, is_known: Bool[np.ndarray, "models models"], main: Agreement, p_limit: float
) -> Bool[np.ndarray, " models"]:
    """Blocks that disagree with everybody, as an exchange of right and wrong would have it.

    Only where most of the others are of one mind: a model far from the rest disagrees, too, where
    the items differ in slope, with its sign, more than in easiness; and then the rest is divided.
    """
    p = np.where(np.isfinite(main.z_inverted), norm.cdf(np.nan_to_num(main.z_inverted)), 1)
    is_alone = mates_with(pairs, is_known, main) <= _FEW
    is_one = sharing(is_known, main) >= _MOST
    return (p <= p_limit) & is_alone & is_one & _others_agree(pairs, is_known)


def other_orders(
    pairs: Pairs,
    is_known: Bool[np.ndarray, "models models"],
    main: Agreement,
    party: Int[np.ndarray, " models"],
    accused: Bool[np.ndarray, " models"],
    p_limit: float,
) -> list[Order]:
    """Parties with an accused block: groups that share an order.

    A weak model, who may guess and so cannot be accused for disagreeing, belongs where it certainly
    agrees with the others of its party, and with the rest less than a third as well, both in units
    of what is expected.

    Args:
        pairs: of one benchmark.
        is_known: which pairs count.
        main: agreement with the main order.
        party: of each model, as `parties` returns it.
        accused: blocks found out of order.
        p_limit: significance asked for, with the number of tests allowed for.
    """
    found = []
    for each in np.unique(party[accused]):
        group = party == each
        if group.sum() < _FEWEST_MEMBERS:
            continue
        seen, z, p = _belonging(pairs, is_known, main, group)
        member = np.flatnonzero(group & (p <= p_limit))
        if len(member) >= _FEWEST_MEMBERS:
            found.append(Order(member, seen[member], z[member], p[member]))
    return found


def _others_agree(
    pairs: Pairs, is_known: Bool[np.ndarray, "models models"]
) -> Bool[np.ndarray, " models"]:
    """Whether next to no two other models certainly disagree.

    Where they do, the items' slopes differ in sign more than the items in easiness, and a model
    between the parties agrees with nobody in the right order, too.
    """
    against = is_known & (pairs.correlation * np.sqrt(pairs.n_common) < -_CERTAIN)
    own, n_own = against.sum(axis=1), is_known.sum(axis=1)
    n_others = np.maximum(is_known.sum() / 2 - n_own, 1)
    return (against.sum() / 2 - own) / n_others <= _FEW


def _belonging(
    pairs: Pairs,
    is_known: Bool[np.ndarray, "models models"],
    main: Agreement,
    group: Bool[np.ndarray, " models"],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Each model's agreement with a group, the z of the gap to the rest, the p of belonging."""
    # Expectations without guessing: what a low accuracy hides, it hides from both, and a common
    # latent correlation cancels.
    level, steepness = np.ones(len(group)), pairs.steepness()
    own = agreement_with(pairs, is_known, group.astype(np.float64), level, steepness)
    rest = agreement_with(pairs, is_known, main.weight, level, steepness)
    (inside, inside_error), (outside, outside_error) = _relative(own), _relative(rest)
    gap = outside - INNOCENT_SHARE * inside
    gap_error = np.hypot(outside_error, INNOCENT_SHARE * inside_error)
    z = gap / gap_error
    return own.seen, z, np.maximum(norm.sf(inside / inside_error), norm.cdf(z))


def _relative(agreement: Agreement) -> tuple[np.ndarray, np.ndarray]:
    """Agreement and its error per expectation; 0 and 1 where nothing is expected."""
    is_expected = (agreement.expected > 0) & (agreement.error > 0)
    safe = np.where(is_expected, agreement.expected, 1)
    ratio = np.where(is_expected, agreement.seen / safe, 0)
    return ratio, np.where(is_expected, agreement.error / safe, 1)

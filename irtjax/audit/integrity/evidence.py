"""One benchmark's evidence: agreements, copies and orders, kept without the matrices of pairs."""

import dataclasses

import numpy as np
from jaxtyping import Bool, Float, Int

from irtjax.audit.integrity.agreement import Agreement, main_agreement
from irtjax.audit.integrity.blocks import Benchmark, Columns
from irtjax.audit.integrity.copies import Copy, Similarity, copies_in, expected_difference
from irtjax.audit.integrity.orders import Order, is_inverted, is_out_of_order, other_orders, parties
from irtjax.audit.integrity.pairs import Pairs, compare_models
from irtjax.audit.integrity.testing import FALSE_ALARMS

__all__ = ["Evidence", "gather_evidence"]


@dataclasses.dataclass(frozen=True)
class Evidence:
    """What the pairs of models say about the blocks of a benchmark.

    Attributes:
        benchmark: the items.
        model: rows of the matrix that answered enough of it; the order of all that follows.
        n_cells: observed cells of each.
        share: mean response of each.
        spread: standard deviation of its responses.
        main: agreement with the order that most share.
        is_out: certainly not in that order.
        is_inverted: certainly right where they should be wrong.
        orders: groups of models with an order of their own.
        copies: blocks that differ too little.
        closest: place of the model whose answers correlate most.
        closest_correlation: that correlation.
    """

    benchmark: Benchmark
    model: Int[np.ndarray, " models"]
    n_cells: Float[np.ndarray, " models"]
    share: Float[np.ndarray, " models"]
    spread: Float[np.ndarray, " models"]
    main: Agreement
    is_out: Bool[np.ndarray, " models"]
    is_inverted: Bool[np.ndarray, " models"]
    orders: list[Order]
    copies: list[Copy]
    closest: Int[np.ndarray, " models"]
    closest_correlation: Float[np.ndarray, " models"]


def gather_evidence(
    columns: Columns,
    benchmark: Benchmark,
    *,
    n_blocks: int,
    n_pairs: int,
    similarity: Similarity | None,
) -> Evidence:
    """Compare all models that answered a benchmark.

    Args:
        columns: the responses.
        benchmark: the items.
        n_blocks: how many blocks are tested in all benchmarks together.
        n_pairs: how many pairs of blocks.
        similarity: where differences of pairs are added up; None to leave them.
    """
    pairs = compare_models(columns, benchmark)
    is_known, p_limit = pairs.is_known, FALSE_ALARMS / max(n_blocks, 1)
    expected = expected_difference(pairs, main_agreement(pairs, is_known).weight)
    if similarity is not None:
        similarity.add(pairs, expected)
    copies = copies_in(pairs, expected, n_pairs)
    independent = _without_copies(pairs, is_known, copies)
    main = main_agreement(pairs, independent)
    party = parties(pairs, independent, main)
    is_out = is_out_of_order(pairs, independent, main, party, p_limit)
    orders = other_orders(pairs, independent, main, party, is_out, p_limit)
    closest = np.argmax(pairs.correlation, axis=1) if len(is_out) else np.zeros(0, np.intp)
    return Evidence(
        benchmark,
        pairs.model,
        pairs.n_cells,
        pairs.share,
        pairs.spread,
        main,
        is_out,
        is_inverted(pairs, independent, main, p_limit),
        orders,
        copies,
        closest,
        pairs.correlation[np.arange(len(closest)), closest],
    )


def _without_copies(
    pairs: Pairs, is_known: Bool[np.ndarray, "models models"], copies: list[Copy]
) -> Bool[np.ndarray, "models models"]:
    """Pairs that count as evidence of an order: a copy agrees with its original in any."""
    independent = is_known.copy()
    place = {int(model): at for at, model in enumerate(pairs.model)}
    for copy in copies:
        first, second = place[copy.first], place[copy.second]
        independent[first, second] = independent[second, first] = False
    return independent

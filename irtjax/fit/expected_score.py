"""Mean predicted probability of each model over all items, answered or not.

Every model meets every item here, also where few cells are observed. Where a model is to a group of
items no more than two numbers (its abilities at one or two dims, or its ability and its effect at
one), the score is a smooth function of these, and an interpolant (`smooth_score`) of it serves any
number of models; otherwise models are taken in chunks, and the cost is that of all cells.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from irtjax.data.blocks import Blocks
from irtjax.fit.blockwise import BlockSums, BlockView, scan_blocks
from irtjax.fit.item_pass import ItemPosteriors, PassContext, item_asymptotes
from irtjax.fit.kernel import FixedSide, Posterior, logit_moments
from irtjax.fit.smooth_score import Seen, interpolant, points_for
from irtjax.model.quadrature import normal_expectation
from irtjax.model.response import response_probability

__all__ = ["expected_scores"]

# Cells at a time: a block of a sparse matrix may have thousands of items.
_CELLS = 1 << 20
# An interpolant that may be off by more than this is not used. (Sums of 100,000 items are off by
# 1e-7 and 1e-16.)
_TOLERANCE = {"float32": 3e-6, "float64": 1e-10}


def expected_scores(
    blocks: Blocks, items: ItemPosteriors, context: PassContext
) -> Float[Array, " models"]:
    """`mean_j E[P_ij]` over the items' posteriors, at the abilities and effects held fixed."""
    models = Seen(context.design, context.effect)

    def mean(seen: Seen) -> Float[Array, "groups models"]:
        return _sums(blocks, items, context, seen) / blocks.n_items.astype(seen.design.dtype)

    points = points_for(models)
    if points is None:
        return jnp.sum(mean(models), axis=0)
    found = interpolant(points, mean(points.seen))
    return jax.lax.cond(
        found.error < _TOLERANCE[found.error.dtype.name],
        lambda: found.at_models(points),
        lambda: jnp.sum(mean(models), axis=0),
    )


def _sums(
    blocks: Blocks, items: ItemPosteriors, context: PassContext, seen: Seen
) -> Float[Array, "groups models"]:
    """Sums of the probabilities over the items of each group; over all where effects have none."""
    n_models = seen.design.shape[0]
    size = max(min(_CELLS // blocks.items_per_block, n_models), 1)
    pad = -n_models % size

    def chunked(leaf: Array) -> Array:
        padded = jnp.pad(leaf, ((0, pad), (0, 0)))
        return padded.reshape(-1, size, leaf.shape[1])

    chunks = jax.tree.map(chunked, seen)

    def visit(
        view: BlockView, items: ItemPosteriors, context: tuple[PassContext, Seen]
    ) -> tuple[BlockSums, None]:
        passed, chunks = context
        found = jax.lax.map(lambda chunk: _score(view, items, passed, chunk), chunks)
        by_slot = jnp.moveaxis(found, 0, 1).reshape(found.shape[1], -1)
        if seen.effect is None:
            return BlockSums(by_slot, None), None
        return BlockSums(None, by_slot), None

    sums, _ = scan_blocks(visit, blocks, items, (context, chunks), seen.design.dtype)
    found = sums.total if seen.effect is None else sums.by_group
    return found[:, :n_models]


def _score(
    view: BlockView, items: ItemPosteriors, context: PassContext, seen: Seen
) -> Float[Array, "slots models"]:
    """Sums over the items of each slot; over all items where there are no effects."""
    in_slot = view.is_item.astype(seen.design.dtype)[None]
    offset = None
    if seen.effect is not None:
        in_slot = view.in_slot
        offset = seen.effect[:, view.slot_group] @ in_slot
    fixed = FixedSide(seen.design, offset, item_asymptotes(view, context), context.n_nodes)
    total = jnp.zeros((seen.design.shape[0], view.is_item.shape[0]), seen.design.dtype)
    for mean, covariance, share in zip(items.mean, items.covariance, items.share, strict=True):
        moments = logit_moments(fixed, Posterior(mean, covariance))
        total += share * normal_expectation(
            lambda logit: response_probability(logit, fixed.asymptotes), *moments, fixed.n_nodes
        )
    return in_slot @ total.T

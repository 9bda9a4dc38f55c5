"""Items of which the data say more than the nodes of a grid can tell apart.

A posterior narrower than the nodes' distance lies at one node, wherever between them the item is:
its mean is off by up to half the distance, and its covariance is nothing (300 models x 100 items,
one dim: errors of slopes .06 instead of .16, some 1e-4 or NaN). Where the data outweigh the item
distribution the normal posterior, which needs no nodes, takes its place. Where they do not, the
distribution's shape is what a grid is for (W1: log-loss .3925 on the grid, .4072 with normals):
such a posterior stays, and its error has what a place within the cell around a node leaves open,
`distance^2 / 12`.
"""

import dataclasses

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from irtjax.data.blocks import Blocks
from irtjax.fit.hyperparameters import ItemDistribution
from irtjax.fit.item_pass import ItemPosteriors, PassContext, prior_group, renew_items
from irtjax.fit.kernel import pinned
from irtjax.fit.packed import pack, positive_definite_inverse
from irtjax.fit.uncertainty import collapse

__all__ = ["refined_items"]

# Newton steps from the node's place to the normal posterior.
_STEPS = 5
# Squared share of the nodes' distance: sums over nodes are right for posteriors of half of it.
_NARROW = 0.25
# The data outweigh the distribution where they leave this share of its variance, in the direction
# in which they say least. With it and W2 at two dims the log-loss is .47350 (grid .47398, normal
# distribution .47363); no item of W1's 12 models is so well known.
_KNOWN = 0.3


def refined_items(
    blocks: Blocks,
    items: ItemPosteriors,
    context: PassContext,
    distribution: ItemDistribution,
    cell: Float[Array, "coordinates coordinates"],
) -> tuple[ItemPosteriors, Float[Array, "blocks pairs items"]]:
    """Posteriors with those replaced that the grid is too coarse for, and what it leaves open.

    Args:
        blocks: the data.
        items: posteriors on the grid, one normal a level of the intercept.
        context: with the moments of the item distribution as prior, in the frame of `items`.
        distribution: those moments.
        cell: `T D^2 T'`, with D the distances of neighbouring nodes and T what has been made of
            the nodes: a cell's size as a covariance.

    Returns:
        Posteriors, and a covariance to add to their errors (not to predictions).
    """
    once = dataclasses.replace(context, bounds=False)
    on_grid = collapse(items)

    def renewed(_: int, posteriors: ItemPosteriors) -> ItemPosteriors:
        return renew_items(blocks, posteriors, once)[1]

    normal = jax.lax.fori_loop(0, _STEPS, renewed, on_grid)
    size = pack(cell[None])[None]
    prior = pack(distribution.covariance[:, 0])
    prior = prior[:, prior_group(blocks.group, prior)].swapaxes(0, 1)
    is_free = context.is_free
    is_narrow = ~_exceeds(normal.covariance[:, 0], _NARROW * size, is_free)
    is_known = _exceeds(_KNOWN * prior, normal.covariance[:, 0], is_free)
    is_replaced = is_narrow & is_known
    chosen = ItemPosteriors(
        jnp.where(is_replaced[:, None, None], normal.mean, items.mean),
        jnp.where(is_replaced[:, None, None], normal.covariance, items.covariance),
        items.share,
    )
    is_open = ~is_replaced & ~_exceeds(on_grid.covariance[:, 0], _NARROW * size, is_free)
    return chosen, jnp.where(is_open[:, None], size / 12, 0)


def _exceeds(
    larger: Float[Array, "blocks pairs items"],
    smaller: Float[Array, "blocks pairs items"],
    is_free: tuple[bool, ...],
) -> Bool[Array, "blocks items"]:
    """Whether a covariance is larger than another in every direction that is free."""
    difference = (larger - smaller).swapaxes(0, 1)
    flat = pinned(difference.reshape(len(difference), -1), is_free)
    is_positive = positive_definite_inverse(flat, len(is_free))[2]
    return is_positive.reshape(difference.shape[1:])

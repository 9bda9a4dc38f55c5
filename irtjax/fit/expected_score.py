"""Mean predicted probability of each model over all items, answered or not.

Every model meets every item here, also where few cells are observed. At one dim without effects
the score is one smooth function of the ability, and a Chebyshev interpolant of it serves any
number of models; otherwise models are taken in chunks, and the cost is that of all cells.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from irtjax.data.blocks import Blocks
from irtjax.fit.blockwise import BlockSums, BlockView, scan_blocks
from irtjax.fit.item_pass import ItemPosteriors, PassContext, item_asymptotes
from irtjax.fit.kernel import FixedSide, Posterior, logit_moments
from irtjax.model.pytree import pytree_dataclass
from irtjax.model.quadrature import normal_expectation
from irtjax.model.response import response_probability

__all__ = ["expected_scores"]

# Points of the interpolant. Curves of slope 4 over abilities from -4 to 4 converge by 1.2 a point:
# 128 leave an error of 1e-11.
_POINTS = 128
# More models than this are interpolated where that is possible.
_MOST_MODELS = 512
# Cells at a time: a block of a sparse matrix may have thousands of items.
_CELLS = 1 << 20


@pytree_dataclass
class _Seen:
    """Models (or points) as they meet the items."""

    design: Float[Array, "models coordinates"]
    effect: Float[Array, "models groups"] | None


def expected_scores(
    blocks: Blocks, items: ItemPosteriors, context: PassContext
) -> Float[Array, " models"]:
    """`mean_j E[P_ij]` over the items' posteriors, at the abilities and effects held fixed."""
    design = context.design
    n_models, size = design.shape
    n_items = blocks.n_items.astype(design.dtype)
    is_smooth = size == 2 and context.effect is None and n_models > _MOST_MODELS
    if not is_smooth:
        return _sums(blocks, items, context, _Seen(design, context.effect)) / n_items
    low, high = jnp.min(design[:, 0]), jnp.max(design[:, 0])
    centre, half = (low + high) / 2, jnp.maximum((high - low) / 2, 1e-3)
    angle = np.pi * (np.arange(_POINTS) + 0.5) / _POINTS
    points = centre + half * jnp.asarray(np.cos(angle), design.dtype)
    at_points = _sums(
        blocks, items, context, _Seen(jnp.stack([points, jnp.ones_like(points)], axis=1), None)
    )
    order = np.arange(_POINTS)
    to_coefficients = 2 / _POINTS * np.cos(order[:, None] * angle)
    to_coefficients[0] /= 2
    coefficients = jnp.asarray(to_coefficients, design.dtype) @ (at_points / n_items)
    place = jnp.arccos(jnp.clip((design[:, 0] - centre) / half, -1, 1))
    return jnp.cos(place[:, None] * jnp.asarray(order, design.dtype)) @ coefficients


def _sums(
    blocks: Blocks, items: ItemPosteriors, context: PassContext, seen: _Seen
) -> Float[Array, " models"]:
    """Sums of the probabilities over all items."""
    n_models = seen.design.shape[0]
    size = max(min(_CELLS // blocks.items_per_block, n_models), 1)
    pad = -n_models % size

    def chunked(leaf: Array) -> Array:
        padded = jnp.pad(leaf, ((0, pad), (0, 0)))
        return padded.reshape(-1, size, leaf.shape[1])

    chunks = jax.tree.map(chunked, seen)

    def visit(
        view: BlockView, items: ItemPosteriors, context: tuple[PassContext, _Seen]
    ) -> tuple[BlockSums, None]:
        passed, chunks = context
        total = jax.lax.map(lambda chunk: _score(view, items, passed, chunk), chunks)
        return BlockSums(total.reshape(-1), None), None

    sums, _ = scan_blocks(visit, blocks, items, (context, chunks), seen.design.dtype)
    return sums.total[:n_models]


def _score(
    view: BlockView, items: ItemPosteriors, context: PassContext, seen: _Seen
) -> Float[Array, " models"]:
    offset = None if seen.effect is None else seen.effect[:, view.slot_group] @ view.in_slot
    fixed = FixedSide(seen.design, offset, item_asymptotes(view, context), context.n_nodes)
    total = jnp.zeros((seen.design.shape[0], view.is_item.shape[0]), seen.design.dtype)
    for mean, covariance, share in zip(items.mean, items.covariance, items.share, strict=True):
        moments = logit_moments(fixed, Posterior(mean, covariance))
        total += share * normal_expectation(
            lambda logit: response_probability(logit, fixed.asymptotes), *moments, fixed.n_nodes
        )
    return total @ view.is_item.astype(total.dtype)

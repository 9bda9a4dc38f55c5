"""Where items start that are estimated: from the items' covariances over the models."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from irtjax.data.blocks import Blocks
from irtjax.fit.blockwise import BlockSums, BlockView, scan_blocks
from irtjax.fit.held_parameters import HeldParameters
from irtjax.fit.item_step import ItemModel, ItemParameters
from irtjax.fit.node_pass import answers
from irtjax.model.response import Asymptotes

__all__ = ["start_items", "start_levels"]

_EXTRA_VECTORS = 4
_ITERATIONS = 12
# Slopes start at this size; other starts vary it by `_JITTER` (log), intercepts by `_SHIFT`.
_FIRST_SLOPE = 1.0
_JITTER = 0.3
_SHIFT = 0.5


def start_items(
    blocks: Blocks,
    model: ItemModel,
    key: jax.Array,
    *,
    is_jittered: bool = False,
    is_loading: Float[Array, "items dims"] | None = None,
    held: HeldParameters | None = None,
) -> ItemParameters:
    """Intercepts from the items' means, slopes from the leading directions of their covariance.

    Args:
        blocks: of the transposed matrix (models are the blocked side).
        model: coordinates and priors.
        key: of the directions' first guess and of the jitter.
        is_jittered: move everything at random: another start.
        is_loading: 1 where an item may have a slope.
        held: items that stay as they are, on whose scale the others start.
    """
    right, seen = _item_totals(blocks)
    dtype = right.dtype
    mean = right / jnp.maximum(seen, 1)
    direction_key, slope_key, shift_key = jax.random.split(key, 3)
    slope = _directions(blocks, jnp.where(seen > 0, mean, 0), model.spec.dims, direction_key)
    if model.spec.has_common_slope:
        slope = jnp.full_like(slope, _FIRST_SLOPE)
    if is_loading is not None:
        slope = _FIRST_SLOPE * is_loading
    intercept, asymptotes = start_levels(model, right, seen)
    if is_jittered:
        size = 1 if model.spec.has_common_slope else slope.shape[0]
        noise = jax.random.normal(slope_key, (size, slope.shape[1]), dtype)
        slope = slope * jnp.exp(_JITTER * noise)
        intercept = intercept + _SHIFT * jax.random.normal(shift_key, intercept.shape, dtype)
    items = ItemParameters(slope, intercept, asymptotes)
    return items if held is None else _beside(model, items, held)


def _beside(model: ItemModel, items: ItemParameters, held: HeldParameters) -> ItemParameters:
    """New items beside those that are held.

    In several dims the directions found in the data are not those of the scale, so that all new
    items start at the mean slopes of the others; in one dim their sign is kept, and their size is
    that of the others.
    """
    slope, weight = held.items.slope, held.is_held[:, None].astype(items.slope.dtype)
    count = jnp.sum(weight)
    mean = jnp.sum(weight * slope, axis=0) / count
    if model.spec.dims == 1 and not model.spec.has_common_slope:
        mean = jnp.sign(items.slope) * jnp.sum(weight * jnp.abs(slope)) / count
    start = ItemParameters(jnp.broadcast_to(mean, slope.shape), items.intercept, items.asymptotes)
    return held.within(start)


def start_levels(
    model: ItemModel, right: Float[Array, " items"], seen: Float[Array, " items"]
) -> tuple[Float[Array, " items"], Asymptotes | None]:
    """Intercepts from the items' right answers out of all, asymptotes at their priors' means."""
    if not model.spec.has_asymptotes:
        return jnp.log(right + 0.5) - jnp.log(seen - right + 0.5), None
    mean = right / jnp.maximum(seen, 1)
    guessing = _prior_mean(model.priors.guessing) if model.spec.has_guessing else 0.0
    missed = _prior_mean(model.priors.infeasibility) if model.spec.has_feasibility else 0.0
    share = jnp.clip((mean - guessing) / (1 - guessing - missed), 0.05, 0.95)
    full = jnp.ones_like(mean)
    asymptotes = Asymptotes.from_natural(full * guessing, full * (1 - missed))
    return jnp.log(share) - jnp.log1p(-share), asymptotes


def _prior_mean(beta: tuple[float, float]) -> float:
    """Mean of a Beta prior; a flat one starts at .15, not at a half."""
    return 0.15 if beta == (1.0, 1.0) else beta[0] / sum(beta)


def _item_totals(blocks: Blocks) -> tuple[Float[Array, " items"], Float[Array, " items"]]:
    def visit(view: BlockView, _: None, __: None) -> tuple[BlockSums, None]:
        right, wrong = answers(view)
        return BlockSums((jnp.sum(right, axis=1), jnp.sum(right + wrong, axis=1)), None), None

    sums, _ = scan_blocks(visit, blocks, None, None, jnp.zeros(()).dtype)
    return sums.total


def _directions(
    blocks: Blocks, mean: Float[Array, " items"], dims: int, key: jax.Array
) -> Float[Array, "items dims"]:
    """Slopes along the leading eigenvectors of the items' covariance, by subspace iteration.

    In one dim only the sign is taken: whether an item rises with the sum of the others.
    """

    def product(vectors: Array) -> Array:
        def visit(view: BlockView, _: None, context: tuple) -> tuple[BlockSums, None]:
            vectors, mean = context
            away = view.data.weight * (view.data.response - mean[:, None])
            return BlockSums(away @ (away.T @ vectors), None), None

        sums, _ = scan_blocks(visit, blocks, None, (vectors, mean), mean.dtype)
        return sums.total

    n_items = mean.shape[0]
    if dims == 1:
        total = product(jnp.ones((n_items, 1), mean.dtype))
        return jnp.where(total < 0, -_FIRST_SLOPE, _FIRST_SLOPE).astype(mean.dtype)
    width = min(n_items, dims + _EXTRA_VECTORS)
    vectors = jax.random.normal(key, (n_items, width), mean.dtype).at[:, 0].set(1)
    vectors = jax.lax.fori_loop(
        0, _ITERATIONS, lambda _, v: jnp.linalg.qr(product(v))[0], jnp.linalg.qr(vectors)[0]
    )
    values, rotation = jnp.linalg.eigh(vectors.T @ product(vectors))
    vectors = (vectors @ rotation[:, ::-1])[:, :dims]
    vectors = vectors * jnp.where(jnp.sum(vectors, axis=0) < 0, -1, 1)
    share = jnp.sqrt(jnp.maximum(values[::-1][:dims], 0) / jnp.maximum(values[-1], 1e-12))
    scale = jnp.sqrt(jnp.mean(vectors**2, axis=0))
    return _FIRST_SLOPE * share * vectors / jnp.maximum(scale, 1e-12)

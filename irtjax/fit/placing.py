"""Place new items among known models, and new models among known items.

What is placed moves nothing else: hyperparameters and the other side stay as they were fitted.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from irtjax.data.blocks import Blocks
from irtjax.fit.item_pass import ItemPosteriors, PassContext, pass_context, renew_items
from irtjax.fit.models_step import ability_covariances, effect_spreads, step_models
from irtjax.fit.outer import OuterParameters
from irtjax.fit.start import model_accuracy, start_posteriors

__all__ = ["place_items", "place_models"]

_T = TypeVar("_T")

# Newton's iteration from a start without any knowledge takes 4 to 8 passes.
_MOST_PASSES = 50
# Placed when nothing moves by more than this power of the rounding, in slopes, logits and standard
# deviations of ability: 1e-5 in float32, 1e-11 in float64.
_STILL = 0.7


def _context(outer: OuterParameters, is_free: tuple[bool, ...], n_nodes: int) -> PassContext:
    """Models and hyperparameters in the form of a pass."""
    return pass_context(
        outer.ability,
        outer.effect,
        outer.distribution,
        outer.asymptotes,
        is_free,
        n_nodes,
        outer.ability_covariance,
        outer.effect_spread,
    )


def _until_still(step: Callable[[_T], tuple[_T, Array]], start: _T, most: int, like: Array) -> _T:
    """Repeat a step, which also returns its largest move, until that is within the tolerance."""

    tolerance = float(jnp.finfo(like.dtype).eps) ** _STILL

    def more(now: tuple[_T, Array, Array]) -> Array:
        _, moved, count = now
        return (moved > tolerance) & (count < most)

    def again(now: tuple[_T, Array, Array]) -> tuple[_T, Array, Array]:
        value, moved = step(now[0])
        return value, moved, now[2] + 1

    first = (start, jnp.asarray(jnp.inf, like.dtype), jnp.zeros((), jnp.int32))
    return jax.lax.while_loop(more, again, first)[0]


@functools.partial(jax.jit, static_argnames=("is_free", "n_nodes", "most_passes"))
def place_items(
    blocks: Blocks,
    outer: OuterParameters,
    *,
    is_free: tuple[bool, ...],
    n_nodes: int,
    most_passes: int = _MOST_PASSES,
) -> ItemPosteriors:
    """Posteriors of items given the models' abilities and effects and the items' distribution.

    Newton's iteration of DESIGN 4.1 from the prior's slopes and the logit of the mean response,
    until nothing moves. An item without responses gets its prior.

    Args:
        blocks: responses of the known models to the items; the items mesh is set by the caller.
        outer: the models, the distribution of items in each group, the asymptotes.
        is_free: which coordinates of `(slope, intercept)` are an item's own.
        n_nodes: Gauss-Hermite nodes.
        most_passes: give up after so many passes over the responses.

    Returns:
        The posteriors, blocked as the responses; shares of components by their evidence.
    """
    context = _context(outer, is_free, n_nodes)
    without_bound = dataclasses.replace(context, bounds=False)

    def step(items: ItemPosteriors) -> tuple[ItemPosteriors, Array]:
        _, renewed = renew_items(blocks, items, without_bound)
        return renewed, jnp.max(jnp.abs(renewed.mean - items.mean))

    start = start_posteriors(blocks, outer.distribution, is_free)
    placed = _until_still(step, start, most_passes, outer.ability)
    if placed.share.shape[1] > 1:
        _, placed = renew_items(blocks, placed, context)
    return placed


@functools.partial(jax.jit, static_argnames=("is_free", "n_nodes", "most_passes"))
def place_models(
    blocks: Blocks,
    items: ItemPosteriors,
    outer: OuterParameters,
    held_scale: Float[Array, "blocks items"] | None = None,
    *,
    is_free: tuple[bool, ...],
    n_nodes: int,
    most_passes: int = _MOST_PASSES,
) -> OuterParameters:
    """Normal posteriors of models' abilities and effects given the items' posteriors.

    The models' steps of the fit (Newton, abilities and effects together, prior N(0, I) and
    N(0, tau^2)) from 0, until nothing moves. A model without responses gets
    its prior.

    Args:
        blocks: responses of the new models to the known items, laid out as `items`; the items mesh
            is set by the caller.
        items: posteriors of the items.
        outer: of the fit that the items are of: asymptotes, variance of effects.
        held_scale: as `renew_items` takes it.
        is_free: which coordinates of `(slope, intercept)` are an item's own.
        n_nodes: Gauss-Hermite nodes.
        most_passes: give up after so many passes over the responses.

    Returns:
        `outer` with the new models in place of those of the fit.
    """
    is_seen = ~jnp.isnan(model_accuracy(blocks))

    def step(models: OuterParameters) -> tuple[OuterParameters, Array]:
        context = _context(models, is_free, n_nodes)
        context = dataclasses.replace(context, renews=False, bounds=False)
        result, _ = renew_items(blocks, items, context, held_scale)
        variance = models.effect_variance
        ability, effect = step_models(models.ability, models.effect, variance, result)
        placed = dataclasses.replace(
            models,
            ability=ability,
            ability_covariance=ability_covariances(result, is_seen),
            effect=effect,
            effect_spread=effect_spreads(result, variance),
        )
        moves = jax.tree.map(
            lambda new, old: jnp.max(jnp.abs(new - old)),
            (ability, effect),
            (models.ability, models.effect),
        )
        return placed, jnp.max(jnp.stack(jax.tree.leaves(moves)))

    return _until_still(step, _unknown_models(outer, blocks.n_models), most_passes, outer.ability)


def _unknown_models(outer: OuterParameters, n_models: int) -> OuterParameters:
    """Models at their prior."""
    dims, dtype = outer.ability.shape[1], outer.ability.dtype
    effect = spread = None
    if outer.effect is not None:
        effect = jnp.zeros((n_models, outer.effect.shape[1]), dtype)
        spread = jnp.full_like(effect, outer.effect_variance)
    return dataclasses.replace(
        outer,
        ability=jnp.zeros((n_models, dims), dtype),
        ability_covariance=jnp.broadcast_to(jnp.eye(dims, dtype=dtype), (n_models, dims, dims)),
        effect=effect,
        effect_spread=spread,
    )

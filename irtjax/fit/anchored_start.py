"""First state of `marginal-items` where items of another fit fix the scale."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from irtjax.data.blocks import Blocks
from irtjax.fit.frame import FrameChange, standardise
from irtjax.fit.items_state import HeldItems, ItemsSettings, State, start_state
from irtjax.fit.models_step import mean_covariance
from irtjax.fit.outer import OuterParameters
from irtjax.fit.placing import place_items, place_models
from irtjax.fit.start import (
    free_coordinates,
    model_accuracy,
    start_asymptotes,
    start_distribution,
)
from irtjax.model.priors import Priors
from irtjax.model.spec import ModelSpec

__all__ = ["anchored_start", "at_anchors"]

# Passes that bring the new items near the models, which the anchors have placed.
_ITEM_PASSES = 2


@functools.partial(jax.jit, static_argnums=(0, 2, 3))
def anchored_start(
    settings: ItemsSettings, blocks: Blocks, spec: ModelSpec, priors: Priors, held: HeldItems
) -> State:
    """Models placed by the anchors alone, then new items by the models.

    Inside the loop abilities are standardised as in any fit, and `OuterParameters.frame` takes the
    anchors along. So the mean and covariance of the models on the anchors' scale are estimated by
    what standardises them.
    """
    is_scored = ~jnp.isnan(model_accuracy(blocks))
    is_free = free_coordinates(spec)
    outer = at_anchors(settings, blocks, spec, priors, held)
    placed = place_models(
        blocks, held.items, outer, held.scale, is_free=is_free, n_nodes=settings.n_nodes
    )
    around = mean_covariance(placed.ability_covariance, is_scored)
    first = _first_frame(spec, held)
    turn = first[:-1, :-1]
    ability = jnp.linalg.solve(turn.T, placed.ability.T).T
    back = jnp.linalg.inv(turn)
    around = back.T @ around @ back
    ability, matrix = standardise(ability, is_scored, ability, around)
    change = FrameChange(matrix, jnp.zeros_like(outer.distribution.mean[:, 0]))
    moved = FrameChange(matrix @ first, change.shift)
    outer = dataclasses.replace(
        placed,
        ability=ability,
        ability_covariance=moved.apply_to_covariance(placed.ability_covariance),
        distribution=change.apply_to_distribution(outer.distribution),
        frame=moved.matrix,
        **_effects(settings, blocks, outer),
    )
    items = place_items(
        blocks, outer, is_free=is_free, n_nodes=settings.n_nodes, most_passes=_ITEM_PASSES
    )
    items = held.within(items, moved.matrix, blocks.group)
    return start_state(settings, outer, items, is_scored, spec, priors, None, held)


def at_anchors(
    settings: ItemsSettings, blocks: Blocks, spec: ModelSpec, priors: Priors, held: HeldItems
) -> OuterParameters:
    """All but the items before anything is known of the models; effects are left out."""
    n_groups = len(held.is_held_group)
    dtype = held.items.mean.dtype
    asymptotes = held.held_asymptotes(start_asymptotes(spec, priors, n_groups, dtype))
    dims = spec.dims
    unit = jnp.broadcast_to(jnp.eye(dims, dtype=dtype), (blocks.n_models, dims, dims))
    return OuterParameters(
        jnp.zeros((blocks.n_models, dims), dtype),
        unit,
        None,
        None,
        jnp.asarray(priors.effect_variance, dtype),
        start_distribution(n_groups, spec, settings.n_components),
        asymptotes,
    )


def _first_frame(spec: ModelSpec, held: HeldItems) -> Float[Array, "coordinates coordinates"]:
    """Where new items start with slopes of 1 that all share, the anchors' must be 1 as well."""
    frame = jnp.eye(spec.dims + 1, dtype=held.items.mean.dtype)
    if not spec.has_common_slope:
        return frame
    weight = held.is_held.astype(frame.dtype)
    slope = jnp.sum(weight[:, None] * held.items.mean[:, 0, :-1], axis=(0, 2)) / jnp.sum(weight)
    return frame.at[jnp.arange(spec.dims), jnp.arange(spec.dims)].set(1 / slope)


def _effects(
    settings: ItemsSettings, blocks: Blocks, outer: OuterParameters
) -> dict[str, Array | None]:
    if not (settings.has_effects and blocks.n_groups > 1):
        return {}
    nothing = jnp.zeros((blocks.n_models, blocks.n_groups), outer.ability.dtype)
    return {"effect": nothing, "effect_spread": nothing + outer.effect_variance}

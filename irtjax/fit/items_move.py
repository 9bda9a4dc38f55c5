"""M-step of `marginal-items`: models and hyperparameters after a pass, in the standard frame."""

import dataclasses

import jax.numpy as jnp
from jaxtyping import Array, Float

from irtjax.fit.blockwise import pooled
from irtjax.fit.frame import FrameChange, rescale, residual_effects, standardise
from irtjax.fit.hyperparameters import (
    update_asymptotes,
    update_distribution,
    update_effect_variance,
)
from irtjax.fit.item_pass import PassResult
from irtjax.fit.items_state import ItemsSettings, State
from irtjax.fit.models_step import (
    ability_covariances,
    effect_spreads,
    mean_covariance,
    step_models,
)
from irtjax.fit.outer import OuterParameters
from irtjax.fit.start import free_coordinates

__all__ = ["move_outer"]


def move_outer(
    settings: ItemsSettings, state: State, result: PassResult
) -> tuple[OuterParameters, FrameChange]:
    """All parameters but the items after one step, and the change of frame with it."""
    moved = _stepped(settings, state, result)
    ability, matrix = _standard(settings, state, moved)
    moved = dataclasses.replace(moved, ability=ability)
    moved, shift = _with_residual_effects(state, result, moved)
    frame = FrameChange(matrix, shift)
    return _in_frame(state, moved, frame), frame


def _stepped(settings: ItemsSettings, state: State, result: PassResult) -> OuterParameters:
    """A Newton step of the models, and the hyperparameters at the items' moments."""
    outer, priors = state.outer, state.priors
    moments = result.moments if settings.has_distributions else pooled(result.moments)
    ability, effect = step_models(outer.ability, outer.effect, outer.effect_variance, result)
    asymptotes = outer.asymptotes
    if asymptotes is not None and moments.answers is not None:
        asymptotes = update_asymptotes(asymptotes, jnp.sum(moments.answers, axis=1), priors)
        if state.held is not None:
            asymptotes = state.held.held_asymptotes(asymptotes)
    is_free = free_coordinates(state.spec)
    return OuterParameters(
        ability,
        ability_covariances(result, state.is_scored),
        effect,
        effect_spreads(result, outer.effect_variance),
        outer.effect_variance,
        update_distribution(outer.distribution, moments, priors, is_free, state.is_loading),
        asymptotes,
        outer.frame,
    )


def _standard(
    settings: ItemsSettings, state: State, moved: OuterParameters
) -> tuple[Float[Array, "models dims"], Float[Array, "coordinates coordinates"]]:
    """Standardised abilities (with loadings only rescaled), and what moves the items along."""
    around = mean_covariance(moved.ability_covariance, state.is_scored)
    if settings.has_loadings:
        return rescale(moved.ability, state.is_scored, settings.has_general, around)
    return standardise(moved.ability, state.is_scored, state.outer.ability, around)


def _with_residual_effects(
    state: State, result: PassResult, moved: OuterParameters
) -> tuple[OuterParameters, Float[Array, "groups coordinates"]]:
    """Effects without what the abilities explain, which the items of each group take over."""
    effect, spread = moved.effect, moved.effect_spread
    if effect is None or spread is None or result.effects is None:
        return moved, jnp.zeros_like(moved.distribution.mean[:, 0])
    ability = moved.ability
    design = jnp.concatenate([ability, jnp.ones_like(ability[:, :1])], axis=1)
    design = design * jnp.asarray(free_coordinates(state.spec), design.dtype)
    residual, shift = residual_effects(design, effect, state.is_scored)
    if state.held is not None:
        # What items that are held cannot take over is left to the effects.
        stays = state.held.is_held_group
        residual = jnp.where(stays, effect, residual)
        shift = jnp.where(stays[:, None], 0, shift)
    effect = residual
    is_seen = result.effects.information.T > 0
    variance = update_effect_variance(effect, spread, is_seen, state.priors)
    return dataclasses.replace(moved, effect=effect, effect_variance=variance), shift


def _in_frame(state: State, moved: OuterParameters, frame: FrameChange) -> OuterParameters:
    """Distributions and covariances in the frame that the abilities are in already."""
    unit = jnp.eye(moved.ability_covariance.shape[1], dtype=moved.ability_covariance.dtype)
    covariance = frame.apply_to_covariance(moved.ability_covariance)
    return dataclasses.replace(
        moved,
        ability_covariance=jnp.where(state.is_scored[:, None, None], covariance, unit),
        distribution=frame.apply_to_distribution(moved.distribution),
        frame=None if moved.frame is None else frame.matrix @ moved.frame,
    )

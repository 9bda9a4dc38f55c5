"""What a fit with the items integrated out estimates, with errors, in the canonical frame."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from irtjax.data.blocks import Blocks
from irtjax.fit.blockwise import pooled
from irtjax.fit.compiling import compiled_soon
from irtjax.fit.expected_score import expected_scores
from irtjax.fit.frame import FrameChange, rescale, standardise
from irtjax.fit.hyperparameters import ItemDistribution
from irtjax.fit.item_pass import ItemPosteriors
from irtjax.fit.item_spread import item_spreads
from irtjax.fit.items_state import ItemsSettings, State
from irtjax.fit.rotation import canonical_rotation
from irtjax.fit.start import model_accuracy
from irtjax.fit.uncertainty import (
    AbilityErrors,
    ability_errors,
    asymptote_errors,
    collapse,
    uncertainty_sums,
)
from irtjax.model.pytree import pytree_dataclass
from irtjax.model.response import Asymptotes

__all__ = ["Estimates", "canonical_estimates", "compile_estimates", "canonical_turn", "item_slopes"]


@pytree_dataclass
class Estimates:
    """What a fit estimates, in the canonical frame; items as in the blocks.

    `item_spread` is what the abilities' errors add to the items' covariances (None where they are
    not known). `population` is the mean and covariance of the abilities where items of another fit
    fix the scale; without, they are standardised.
    """

    ability: Float[Array, "models dims"]
    ability_errors: AbilityErrors
    effect: Float[Array, "models groups"] | None
    effect_variance: Float[Array, ""]
    expected_score: Float[Array, " models"]
    items: ItemPosteriors
    distribution: ItemDistribution
    asymptotes: Asymptotes | None
    asymptote_errors: tuple[Float[Array, " groups"], Float[Array, " groups"]] | None
    item_spread: Float[Array, "blocks pairs items"] | None = None
    population: tuple[Float[Array, " dims"], Float[Array, "dims dims"]] | None = None


def canonical_estimates(settings: ItemsSettings, blocks: Blocks, state: State) -> Estimates:
    """Estimates in the canonical frame, or on the scale of the items held, with their errors."""
    if state.held is not None and state.outer.frame is not None:
        return _estimates_on_scale(settings, blocks, state)
    slope, ability, matrix = (np.asarray(leaf) for leaf in _standardised(settings, state))
    slope = slope[np.asarray(blocks.is_item)]
    if settings.has_loadings:
        turn = _signs(slope)
    else:
        turn = canonical_turn(slope, ability, np.asarray(model_accuracy(blocks)))
    return _estimates_at(settings, blocks, state, ability @ turn[:-1, :-1].T, turn @ matrix)


def compile_estimates(settings: ItemsSettings, blocks: Blocks, state: State) -> None:
    """Compile most of what `canonical_estimates` runs, given any state of the fit."""
    if state.held is not None and state.outer.frame is not None:
        _estimates_on_scale.lower(settings, blocks, state).compile()
        return
    ability = np.asarray(state.outer.ability)
    matrix = np.eye(ability.shape[1] + 1, dtype=ability.dtype)
    run = _estimates_soon if settings.compiles_soon else _estimates
    run.lower(settings, blocks, state, ability, matrix, None).compile()


@functools.partial(jax.jit, static_argnums=0)
def _standardised(
    settings: ItemsSettings, state: State
) -> tuple[
    Float[Array, "blocks items dims"],
    Float[Array, "models dims"],
    Float[Array, "coordinates coordinates"],
]:
    """Slopes and abilities of sd 1 (in the loop their second moment is), and what leads there."""
    if settings.has_loadings:
        ability, matrix = rescale(state.outer.ability, state.is_scored, settings.has_general)
    else:
        ability, matrix = standardise(state.outer.ability, state.is_scored)
    slope = _block_slopes(state.items) @ matrix[:-1, :-1].T
    return slope, ability, matrix


def item_slopes(blocks: Blocks, items: ItemPosteriors) -> np.ndarray:
    """Slopes of the real items (no padding), on the host, in the order of the blocks."""
    return np.asarray(_block_slopes(items))[np.asarray(blocks.is_item)]


@jax.jit
def _block_slopes(items: ItemPosteriors) -> Float[Array, "blocks items dims"]:
    return collapse(items).mean[:, 0, :-1].transpose(0, 2, 1)


def canonical_turn(slope: np.ndarray, ability: np.ndarray, accuracy: np.ndarray) -> np.ndarray:
    """What turns coordinates into the canonical frame; its block of slopes is a rotation."""
    size = slope.shape[1] + 1
    turn = np.eye(size, dtype=accuracy.dtype)
    turn[:-1, :-1] = canonical_rotation(slope, ability, accuracy).T
    return turn


def _signs(slope: np.ndarray) -> np.ndarray:
    """What flips the dims whose slopes are negative in sum: confirmatory dims do not turn."""
    return np.diag(np.append(np.where(slope.sum(axis=0) < 0, -1, 1), 1)).astype(slope.dtype)


@functools.partial(jax.jit, static_argnums=0)
def _estimates_on_scale(settings: ItemsSettings, blocks: Blocks, state: State) -> Estimates:
    """Back on the scale of the items that are held.

    With `(slope, intercept) = frame z` the abilities there are `theta T + m`, T the frame's block
    of slopes and m its last row: mean 0 and second moment I here are mean m and `T'T` there.
    """
    frame = state.outer.frame
    assert frame is not None
    turn, mean = frame[:-1, :-1], frame[-1, :-1]
    ability = state.outer.ability @ turn + mean
    found = _in_frame(settings, blocks, state, ability, jnp.linalg.inv(frame), turn.T)
    return dataclasses.replace(found, population=(mean, turn.T @ turn))


def _estimates_at(
    settings: ItemsSettings,
    blocks: Blocks,
    state: State,
    ability: Float[Array, "models dims"],
    matrix: Float[Array, "coordinates coordinates"],
    scale: Float[Array, "dims dims"] | None = None,
) -> Estimates:
    """Estimates and errors at the abilities of another frame, which `matrix` leads to."""
    run = _estimates_soon if settings.compiles_soon else _estimates
    found: Estimates = run(settings, blocks, state, ability, matrix, scale)
    return found


def _in_frame(
    settings: ItemsSettings,
    blocks: Blocks,
    state: State,
    ability: Float[Array, "models dims"],
    matrix: Float[Array, "coordinates coordinates"],
    scale: Float[Array, "dims dims"] | None,
) -> Estimates:
    frame = FrameChange(matrix, jnp.zeros_like(state.outer.distribution.mean[:, 0]))
    outer = dataclasses.replace(
        state.outer,
        ability=ability,
        distribution=frame.apply_to_distribution(state.outer.distribution),
    )
    items = frame.apply_to_items(state.items, blocks.group)
    context = settings.context(dataclasses.replace(state, outer=outer))
    known = dataclasses.replace(context, spread=None, effect_spread=None)
    total, groups = uncertainty_sums(blocks, items, known)
    asymptotes, errors = outer.asymptotes, None
    if asymptotes is not None:
        of_groups = groups if settings.has_distributions else pooled(groups)
        errors = asymptote_errors(of_groups, asymptotes, state.priors)
    of_abilities = ability_errors(total, groups, outer.effect, outer.effect_variance, scale)
    return Estimates(
        outer.ability,
        of_abilities,
        outer.effect,
        outer.effect_variance,
        expected_scores(blocks, items, known),
        items,
        outer.distribution,
        asymptotes,
        errors,
        item_spreads(blocks, items, known, of_abilities.covariance),
    )


_estimates = jax.jit(_in_frame, static_argnums=0)
_estimates_soon = compiled_soon(0)(_in_frame)

"""Fits of the same responses without some of them, from where the fit of all of them ended.

A warm start takes over abilities, effects, item distributions and asymptotes. It never takes over
the items' posteriors: they have seen the responses left out, and would hand them on.
"""

import dataclasses
import functools

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from irtjax.data.blocks import Blocks
from irtjax.fit.driver import Look, Status, all_finite, drive, kept
from irtjax.fit.item_pass import renew_items
from irtjax.fit.items_state import State, start_state
from irtjax.fit.marginal_items import MarginalItems
from irtjax.fit.outer import OuterParameters
from irtjax.fit.placing import place_items
from irtjax.fit.start import free_coordinates, model_accuracy
from irtjax.model.pytree import pytree_dataclass

__all__ = ["refit", "warm_state"]

# Passes that bring the items near the abilities taken over: with one W2 takes a step more, a third
# changes nothing.
_ITEM_PASSES = 2
# Steps of half the price (no bound, hence no guard and no acceleration) before the guarded loop:
# as many as cost what that loop needs at least. W2 settles in 7 at two dims, in 15 at one.
_CHEAP_STEPS = 20
# The first of them with half the Gauss-Hermite nodes, at two thirds of the price: what is left of
# the nodes' error is gone after the steps that follow, two at least (with one, a fold of W2 ended
# .00011 from its cold start, the others below .00006).
_COARSE_STEPS = 4
# A warm and a cold fit together stay within 1e-4; cold ones are judged by `Look.tolerance`.
_TOLERANCE = 0.7 * Look.tolerance


@pytree_dataclass
class _Settling:
    """The state, its last largest moves (newest first), the steps, and whether all is finite."""

    state: State
    moves: Float[Array, "four"]
    n_steps: Int[Array, ""]
    is_finite: Bool[Array, ""]

    @property
    def is_settled(self) -> Bool[Array, ""]:
        """Whether the way that is left, at the rate the moves shrink, is within the tolerance.

        Plain steps converge linearly, and the rate rises to that of the slowest part (of a 1PL:
        .02, .11, .31, .71, .85, .85). So it is taken over two steps, and rising as it rose last.
        """
        rate, before = jnp.sqrt(self.moves[:2] / self.moves[2:])
        rate = rate + jnp.maximum(rate - before, 0)
        left = self.moves[0] * rate / (1 - rate)
        is_slow = ~((rate < 1) & (left < _TOLERANCE)) | (self.n_steps <= _COARSE_STEPS + 1)
        return (self.moves[0] == 0) | ~is_slow


def refit(
    estimator: MarginalItems, blocks: Blocks, full: State, *, max_steps: int
) -> tuple[State, Status, int]:
    """Fit other responses of the same models and items, starting from a finished fit.

    Cheap steps first; where they do not settle (few models, many dims), the guarded and
    accelerated loop of every fit goes on from there.

    Args:
        estimator: of the finished fit.
        blocks: the responses, blocked as those of the finished fit; the mesh is set by the caller.
        full: last state of the finished fit.
        max_steps: most steps.

    Returns:
        The last state, how it ended, and the number of steps.
    """
    coarse = dataclasses.replace(estimator, n_nodes=(estimator.n_nodes + 1) // 2)
    start = warm_state(coarse, blocks, full)
    unknown = jnp.full((4,), jnp.inf, start.outer.ability.dtype)
    settling = _Settling(start, unknown, jnp.zeros((), jnp.int32), jnp.array(True))
    settling = _settle(coarse, blocks, settling, min(max_steps, _COARSE_STEPS))
    settling = _settle(estimator, blocks, settling, min(max_steps, _CHEAP_STEPS))
    n_steps = int(settling.n_steps)
    if bool(settling.is_settled):
        return settling.state, Status.converged, n_steps
    look = Look(max_steps=max_steps - n_steps)
    state, progress = drive(estimator, blocks, _without_past(estimator, settling.state), look=look)
    return state, progress.status or Status.max_steps, n_steps + progress.n_steps


@functools.partial(jax.jit, static_argnums=0)
def warm_state(estimator: MarginalItems, blocks: Blocks, full: State) -> State:
    """First state of a fit: all but the items taken over from another, the items placed anew."""
    is_scored = ~jnp.isnan(model_accuracy(blocks))
    is_free = free_coordinates(full.spec)
    outer = _without_unseen(full.outer, is_scored)
    items = place_items(
        blocks, outer, is_free=is_free, n_nodes=estimator.n_nodes, most_passes=_ITEM_PASSES
    )
    return _without_past(
        estimator, dataclasses.replace(full, outer=outer, items=items, is_scored=is_scored)
    )


@functools.partial(jax.jit, static_argnums=0)
def _without_past(estimator: MarginalItems, state: State) -> State:
    return start_state(
        estimator,
        state.outer,
        state.items,
        state.is_scored,
        state.spec,
        state.priors,
        state.is_loading,
    )


@functools.partial(jax.jit, static_argnums=0)
def _settle(
    estimator: MarginalItems, blocks: Blocks, start: _Settling, most_steps: Int[Array, ""]
) -> _Settling:
    """Cheap steps until settled, not finite (the state is then the last good one) or at most."""

    def more(now: _Settling) -> Bool[Array, ""]:
        return (now.n_steps < most_steps) & ~now.is_settled & now.is_finite

    def one(now: _Settling) -> _Settling:
        new, change = _cheap_step(estimator, blocks, now.state)
        is_finite = all_finite(new, now.state)
        moves = jnp.concatenate([change[None], now.moves[:-1]])
        return _Settling(kept(is_finite, new, now.state), moves, now.n_steps + 1, is_finite)

    return jax.lax.while_loop(more, one, start)


def _cheap_step(
    estimator: MarginalItems, blocks: Blocks, state: State
) -> tuple[State, Float[Array, ""]]:
    """A plain step without the bound (but for the shares of a mixture), and the largest move."""
    has_bound = state.items.share.shape[1] > 1
    context = dataclasses.replace(estimator.context(state), bounds=has_bound)
    result, items = renew_items(blocks, state.items, context)
    moved, frame = estimator.move(state, result)
    change = jnp.max(jnp.abs(moved.ability - state.outer.ability))
    items = frame.apply_to_items(items, blocks.group)
    return dataclasses.replace(state, outer=moved, items=items), change


def _without_unseen(outer: OuterParameters, is_scored: Bool[Array, " models"]) -> OuterParameters:
    """Models without responses back at their prior."""
    ability = jnp.where(is_scored[:, None], outer.ability, 0)
    unit = jnp.eye(ability.shape[1], dtype=ability.dtype)
    covariance = jnp.where(is_scored[:, None, None], outer.ability_covariance, unit)
    effect, spread = outer.effect, outer.effect_spread
    if effect is not None and spread is not None:
        effect = jnp.where(is_scored[:, None], effect, 0)
        spread = jnp.where(is_scored[:, None], spread, outer.effect_variance)
    return dataclasses.replace(
        outer, ability=ability, ability_covariance=covariance, effect=effect, effect_spread=spread
    )

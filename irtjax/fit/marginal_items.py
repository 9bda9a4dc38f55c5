"""`marginal-items`: variational EM with the items random and the models parameters (DESIGN 4.1)."""

import dataclasses
import functools
from typing import TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from irtjax.data.blocks import Blocks
from irtjax.fit.acceleration import empty_history, extrapolate
from irtjax.fit.estimator import StepInfo
from irtjax.fit.frame import FrameChange
from irtjax.fit.hyperparameters import asymptotes_log_prior, loading_distribution
from irtjax.fit.item_pass import ItemPosteriors, PassResult, renew_items
from irtjax.fit.items_estimates import Estimates, canonical_estimates
from irtjax.fit.items_move import move_outer
from irtjax.fit.items_state import ItemsSettings, State
from irtjax.fit.models_step import models_log_prior
from irtjax.fit.outer import OuterParameters, vector_form
from irtjax.fit.start import (
    free_coordinates,
    start_abilities,
    start_asymptotes,
    start_distribution,
    start_loading_abilities,
    start_posteriors,
)
from irtjax.model.priors import Priors
from irtjax.model.spec import ModelSpec

__all__ = ["MarginalItems"]

_T = TypeVar("_T")

# A step counts as lowering the bound when it does so by more than this share: the hyperpriors of
# the groups' distributions are not in the bound (their pooled moments move with it), and where it
# is flat they let it sink by up to 3e-6 a step.
_RELATIVE_DROP = 1e-5
# Of abilities and effects, before the first pass tells it: only the first step depends on it.
_FIRST_VARIANCE = 0.01


@dataclasses.dataclass(frozen=True)
class MarginalItems(ItemsSettings):
    """Gaussian variational EM: items are integrated out, models are estimated.

    The settings are those of `ItemsSettings`.
    """

    name = "marginal-items"
    objective_name = "elbo"
    compiles_soon = False

    @functools.partial(jax.jit, static_argnums=(0, 2, 3))
    def init(
        self,
        blocks: Blocks,
        spec: ModelSpec,
        priors: Priors,
        key: jax.Array,
        is_loading: Float[Array, "groups dims"] | None = None,
    ) -> State:
        """Abilities from the singular vectors of the centred matrix, items from their means.

        With loadings, abilities start at the models' accuracies on the items of each dim.
        """
        n_groups = blocks.n_groups if self.has_distributions else 1
        distribution = start_distribution(n_groups, spec, self.n_components)
        if is_loading is None:
            ability, is_scored = start_abilities(blocks, spec.dims, key)
        else:
            ability, is_scored = start_loading_abilities(blocks, is_loading, self.has_general)
            distribution = loading_distribution(distribution, is_loading)
        dtype = ability.dtype
        items = start_posteriors(blocks, distribution, free_coordinates(spec))
        effect = None
        if self.has_effects and blocks.n_groups > 1:
            effect = jnp.zeros((blocks.n_models, blocks.n_groups), dtype)
        unit = jnp.broadcast_to(jnp.eye(spec.dims, dtype=dtype), (len(ability),) + (spec.dims,) * 2)
        outer = OuterParameters(
            ability,
            _FIRST_VARIANCE * unit,
            effect,
            None if effect is None else jnp.full_like(effect, _FIRST_VARIANCE),
            jnp.asarray(priors.effect_variance, dtype),
            distribution,
            start_asymptotes(spec, priors, n_groups, dtype),
        )
        size = vector_form(outer, free_coordinates(spec))[0].shape[0]
        return State(
            outer,
            items,
            plain=outer,
            previous=outer,
            history=empty_history(size, self.acceleration, dtype),
            was_extrapolated=jnp.array(False),
            bound=jnp.asarray(-jnp.inf, dtype),
            is_scored=is_scored,
            spec=spec,
            priors=priors,
            is_loading=is_loading,
        )

    def step(self, blocks: Blocks, state: State) -> tuple[State, StepInfo]:
        """Renew the items, then the models and the hyperparameters; keep the bound rising.

        Where the bound fell, the extrapolated parameters are given up for the plain ones, or, if
        they were plain, halved towards the previous ones.
        """
        result, items = renew_items(blocks, state.items, self.context(state))
        bound = result.bound + _log_prior(state.outer, result, state.priors)
        fell = bound < state.bound - _RELATIVE_DROP * jnp.abs(bound)
        risen, frame = self._risen(state, result, items, bound)
        halved = jax.tree.map(lambda a, b: (a + b) / 2, state.previous, state.outer)
        retreat = _choose(state.was_extrapolated, state.plain, halved)
        fallen = dataclasses.replace(
            state,
            outer=retreat,
            items=items,
            plain=retreat,
            history=jax.tree.map(jnp.zeros_like, state.history),
            was_extrapolated=jnp.array(False),
        )
        new = _choose(fell, fallen, risen)
        frame = _choose(fell, frame.identity(), frame)
        new = dataclasses.replace(new, items=frame.apply_to_items(items, blocks.group))
        change = jnp.max(jnp.abs(new.outer.ability - state.outer.ability))
        return new, StepInfo(bound, change, fell)

    def _risen(
        self, state: State, result: PassResult, items: ItemPosteriors, bound: Float[Array, ""]
    ) -> tuple[State, FrameChange]:
        """The next state when the bound did not fall (items still in the old frame)."""
        moved, frame = self.move(state, result)
        is_free = free_coordinates(state.spec)
        old, _ = vector_form(state.outer, is_free)
        plain, back = vector_form(moved, is_free)
        vector, was_extrapolated, history = extrapolate(state.history, old, plain)
        outer = _choose(was_extrapolated, back(vector), moved)
        new = dataclasses.replace(
            state,
            outer=outer,
            items=items,
            plain=moved,
            previous=state.outer,
            history=history,
            was_extrapolated=was_extrapolated,
            bound=bound,
        )
        return new, frame

    def finish(self, blocks: Blocks, state: State) -> Estimates:
        """Estimates in the canonical frame, with their errors."""
        return canonical_estimates(self, blocks, state)

    def move(self, state: State, result: PassResult) -> tuple[OuterParameters, FrameChange]:
        """All parameters but the items after one step, and the change of frame with it."""
        return move_outer(self, state, result)


def _log_prior(outer: OuterParameters, result: PassResult, priors: Priors) -> Float[Array, ""]:
    """What priors add to the bound, up to constants: abilities, effects, covariances' traces."""
    trace = jnp.trace(outer.distribution.covariance, axis1=2, axis2=3)
    total = models_log_prior(
        outer.ability,
        outer.ability_covariance,
        outer.effect,
        outer.effect_spread,
        outer.effect_variance,
        result,
        priors,
    )
    total -= 0.5 * priors.trace_penalty * jnp.sum(result.moments.count * trace)
    return total + asymptotes_log_prior(outer.asymptotes, priors)


def _choose(condition: Bool[Array, ""], yes: _T, no: _T) -> _T:
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), yes, no)

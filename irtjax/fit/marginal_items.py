"""`marginal-items`: variational EM with the items random and the models parameters (DESIGN 4.1)."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from irtjax.data.blocks import Blocks
from irtjax.fit.estimator import StepInfo
from irtjax.fit.frame import FrameChange
from irtjax.fit.guarded import advance_guarded
from irtjax.fit.hyperparameters import asymptotes_log_prior, loading_distribution
from irtjax.fit.item_pass import PassResult, renew_items
from irtjax.fit.items_estimates import Estimates, canonical_estimates, compile_estimates
from irtjax.fit.items_move import move_outer
from irtjax.fit.items_state import ItemsSettings, State, start_state
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

# A step counts as lowering the bound when it does so by more than this share: the hyperpriors of
# the groups' distributions are not in the bound (their pooled moments move with it), and where it
# is flat they let it sink by up to 3e-6 a step.
_RELATIVE_DROP = 1e-5
# Of abilities and effects, before the first pass tells it: only the first step depends on it.
_FIRST_VARIANCE = 0.01
# Abilities of standard deviation 1 that are all below this are 0 in their rounding.
_NO_ABILITY = 1e-3


@dataclasses.dataclass(frozen=True)
class MarginalItems(ItemsSettings):
    """Gaussian variational EM: items are integrated out, models are estimated.

    The settings are those of `ItemsSettings`.
    """

    name = "marginal-items"
    objective_name = "elbo"

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
        return start_state(self, outer, items, is_scored, spec, priors, is_loading)

    def step(self, blocks: Blocks, state: State) -> tuple[State, StepInfo]:
        """Renew the items, then the models and the hyperparameters; keep the bound rising.

        Where the bound fell, the extrapolated parameters are given up for the plain ones, or, if
        they were plain, halved towards the previous ones; the items stay in the old frame.
        """
        result, items = renew_items(blocks, state.items, self.context(state), state.held_scale)
        bound = result.bound + _log_prior(state.outer, result, state.priors)
        moved, frame = self.move(state, result)
        plain, back = vector_form(moved, free_coordinates(state.spec))
        guarded, fell = advance_guarded(state.guarded, bound, plain, _RELATIVE_DROP)
        outer = back(guarded.current)
        frame = jax.tree.map(lambda a, b: jnp.where(fell, a, b), frame.identity(), frame)
        items = frame.apply_to_items(items, blocks.group)
        if state.held is not None and outer.frame is not None:
            items = state.held.within(items, outer.frame, blocks.group)
        change = _largest_change(state.outer, outer)
        new = dataclasses.replace(state, outer=outer, items=items, guarded=guarded)
        return new, StepInfo(bound, change, fell)

    def compile_finish(self, blocks: Blocks, state: State) -> None:
        """Compile the estimates and their errors."""
        compile_estimates(self, blocks, state)

    def finish(self, blocks: Blocks, state: State) -> Estimates:
        """Estimates in the canonical frame, with their errors."""
        return canonical_estimates(self, blocks, state)

    def move(self, state: State, result: PassResult) -> tuple[OuterParameters, FrameChange]:
        """All parameters but the items after one step, and the change of frame with it."""
        return move_outer(self, state, result)


def _largest_change(old: OuterParameters, new: OuterParameters) -> Float[Array, ""]:
    """Of an ability; where there are none (all models answered alike), of the mean item."""
    change = jnp.max(jnp.abs(new.ability - old.ability))
    of_items = jnp.max(jnp.abs(new.distribution.mean - old.distribution.mean))
    return jnp.where(jnp.max(jnp.abs(new.ability)) < _NO_ABILITY, of_items, change)


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

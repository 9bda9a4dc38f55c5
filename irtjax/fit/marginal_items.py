"""`marginal-items`: variational EM with the items random and the models parameters (DESIGN 4.1)."""

import dataclasses
import functools
from typing import TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from irtjax.data.blocks import Blocks
from irtjax.fit.acceleration import History, empty_history, extrapolate
from irtjax.fit.estimator import StepInfo
from irtjax.fit.expected_score import expected_scores
from irtjax.fit.frame import FrameChange, rescale, residual_effects, standardise
from irtjax.fit.hyperparameters import (
    ItemDistribution,
    asymptotes_log_prior,
    loading_distribution,
    update_asymptotes,
    update_distribution,
    update_effect_variance,
)
from irtjax.fit.item_pass import ItemPosteriors, PassContext, PassResult, pass_context, renew_items
from irtjax.fit.item_spread import item_spreads
from irtjax.fit.models_step import (
    ability_covariances,
    effect_spreads,
    models_log_prior,
    step_models,
)
from irtjax.fit.outer import OuterParameters, vector_form
from irtjax.fit.rotation import canonical_rotation
from irtjax.fit.start import (
    free_coordinates,
    model_accuracy,
    start_abilities,
    start_distribution,
    start_loading_abilities,
    start_posteriors,
)
from irtjax.fit.uncertainty import (
    AbilityErrors,
    ability_errors,
    asymptote_errors,
    collapse,
    uncertainty_sums,
)
from irtjax.model.priors import Priors
from irtjax.model.pytree import pytree_dataclass, static_field
from irtjax.model.response import Asymptotes
from irtjax.model.spec import ModelSpec

__all__ = [
    "Estimates",
    "MarginalItems",
    "OuterParameters",
    "State",
    "item_slopes",
    "mean_covariance",
    "pooled",
    "start_asymptotes",
]

_T = TypeVar("_T")

# A step counts as lowering the bound when it does so by more than this share: the hyperpriors of
# the groups' distributions are not in the bound (their pooled moments move with it), and where it
# is flat they let it sink by up to 3e-6 a step.
_RELATIVE_DROP = 1e-5
# Of abilities and effects, before the first pass tells it: only the first step depends on it.
_FIRST_VARIANCE = 0.01


@pytree_dataclass
class State:
    """What continues from step to step.

    `outer` is what the next pass holds fixed: the plain result of the last step, or its
    extrapolation (`was_extrapolated`), which is given up for `plain` where the bound falls.
    `previous` is the last one whose bound held, `is_scored` marks models with responses.
    """

    outer: OuterParameters
    items: ItemPosteriors
    plain: OuterParameters
    previous: OuterParameters
    history: History
    was_extrapolated: Bool[Array, ""]
    bound: Float[Array, ""]
    is_scored: Bool[Array, " models"]
    spec: ModelSpec = static_field()
    priors: Priors = static_field()
    is_loading: Float[Array, "groups dims"] | None = None


@pytree_dataclass
class Estimates:
    """What a fit estimates, in the canonical frame; items as in the blocks.

    `item_spread` is what the abilities' errors add to the items' covariances (None where they are
    not known).
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


@dataclasses.dataclass(frozen=True)
class MarginalItems:
    """Gaussian variational EM: items are integrated out, models are estimated.

    Args:
        has_effects: estimate model x group effects (with more than one group) and one item
            distribution a group; without, all share one distribution, and groups only serve
            the clustered errors.
        has_loadings: confirmatory: groups are of items that load on the same dims, each with an
            item distribution of its own.
        has_general: the first dim is a general factor, and the others are its residuals.
        n_components: normals in each group's item distribution; 1 is the normal distribution.
        n_nodes: Gauss-Hermite nodes for the expectations over a logit.
        acceleration: past steps that Anderson acceleration looks at.
    """

    has_effects: bool = False
    has_loadings: bool = False
    has_general: bool = False
    n_components: int = 1
    n_nodes: int = 9
    acceleration: int = 5

    name = "marginal-items"
    objective_name = "elbo"
    compiles_soon = False

    @property
    def has_distributions(self) -> bool:
        """Whether each group has an item distribution of its own."""
        return self.has_effects or self.has_loadings

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
        accuracy = np.asarray(model_accuracy(blocks))
        dims = state.spec.dims
        # Published abilities have sd 1 themselves; in the loop their second moment is 1.
        if self.has_loadings:
            ability, matrix = rescale(state.outer.ability, state.is_scored, self.has_general)
            slope = item_slopes(blocks, collapse(state.items)) @ np.asarray(matrix[:dims, :dims]).T
            sign = np.where(slope.sum(axis=0) < 0, -1, 1).astype(slope.dtype)
            flip = jnp.asarray(np.append(sign, 1).astype(slope.dtype))
            return self._estimates(blocks, state, ability * sign, flip[:, None] * matrix)
        ability, matrix = standardise(state.outer.ability, state.is_scored)
        slope = item_slopes(blocks, collapse(state.items)) @ np.asarray(matrix[:dims, :dims]).T
        rotation = canonical_rotation(slope, np.asarray(ability), accuracy).astype(accuracy.dtype)
        turn = np.eye(dims + 1, dtype=accuracy.dtype)
        turn[:dims, :dims] = rotation.T
        return self._estimates(blocks, state, ability @ rotation, turn @ matrix)

    @functools.partial(jax.jit, static_argnums=0)
    def _estimates(
        self,
        blocks: Blocks,
        state: State,
        ability: Float[Array, "models dims"],
        matrix: Float[Array, "coordinates coordinates"],
    ) -> Estimates:
        """Estimates and errors at the abilities of another frame, which `matrix` leads to."""
        frame = FrameChange(matrix, jnp.zeros_like(state.outer.distribution.mean[:, 0]))
        outer = dataclasses.replace(
            state.outer,
            ability=ability,
            distribution=frame.apply_to_distribution(state.outer.distribution),
        )
        items = frame.apply_to_items(state.items, blocks.group)
        known = dataclasses.replace(
            self.context(dataclasses.replace(state, outer=outer)), spread=None, effect_spread=None
        )
        total, groups = uncertainty_sums(blocks, items, known)
        asymptotes, errors = outer.asymptotes, None
        if asymptotes is not None:
            of_groups = groups if self.has_distributions else pooled(groups)
            errors = asymptote_errors(of_groups, asymptotes)
        of_abilities = ability_errors(total, groups, outer.effect, outer.effect_variance)
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

    def context(self, state: State) -> PassContext:
        """The parameters of a state in the form the blocks use."""
        outer = state.outer
        return pass_context(
            outer.ability,
            outer.effect,
            outer.distribution,
            outer.asymptotes,
            free_coordinates(state.spec),
            self.n_nodes,
            outer.ability_covariance,
            outer.effect_spread,
        )

    def move(self, state: State, result: PassResult) -> tuple[OuterParameters, FrameChange]:
        """All parameters but the items after one step, and the change of frame with it."""
        outer, priors = state.outer, state.priors
        moments = result.moments if self.has_distributions else pooled(result.moments)
        is_free = free_coordinates(state.spec)
        ability, effect = step_models(outer.ability, outer.effect, outer.effect_variance, result)
        covariance = ability_covariances(result, state.is_scored)
        spread = effect_spreads(result, outer.effect_variance)
        variance, asymptotes = outer.effect_variance, outer.asymptotes
        if asymptotes is not None and moments.answers is not None:
            asymptotes = update_asymptotes(asymptotes, jnp.sum(moments.answers, axis=1), priors)
        distribution = update_distribution(
            outer.distribution, moments, priors, is_free, state.is_loading
        )
        around = mean_covariance(covariance, state.is_scored)
        if self.has_loadings:
            ability, matrix = rescale(ability, state.is_scored, self.has_general, around)
        else:
            ability, matrix = standardise(ability, state.is_scored, outer.ability, around)
        shift = jnp.zeros_like(distribution.mean[:, 0])
        if effect is not None and spread is not None and result.effects is not None:
            design = jnp.concatenate([ability, jnp.ones_like(ability[:, :1])], axis=1)
            design = design * jnp.asarray(is_free, design.dtype)
            effect, shift = residual_effects(design, effect, state.is_scored)
            is_seen = result.effects.information.T > 0
            variance = update_effect_variance(effect, spread, is_seen, priors)
        frame = FrameChange(matrix, shift)
        distribution = frame.apply_to_distribution(distribution)
        unit = jnp.eye(covariance.shape[1], dtype=covariance.dtype)
        covariance = frame.apply_to_covariance(covariance)
        covariance = jnp.where(state.is_scored[:, None, None], covariance, unit)
        moved = OuterParameters(
            ability, covariance, effect, spread, variance, distribution, asymptotes
        )
        return moved, frame


def mean_covariance(
    covariance: Float[Array, "models dims dims"], is_scored: Bool[Array, " models"]
) -> Float[Array, "dims dims"]:
    """Mean covariance of the abilities of the models with responses."""
    weight = is_scored.astype(covariance.dtype)
    return jnp.einsum("i,ikl->kl", weight, covariance) / jnp.maximum(jnp.sum(weight), 1)


def item_slopes(blocks: Blocks, collapsed: ItemPosteriors) -> np.ndarray:
    """Slopes of the real items (no padding), on the host, in the order of the blocks."""
    slope = np.asarray(collapsed.mean[:, 0, :-1]).transpose(0, 2, 1)
    return slope[np.asarray(blocks.is_item)]


def pooled(sums: _T) -> _T:
    """Sums over all groups, as one group."""
    return jax.tree.map(lambda leaf: jnp.sum(leaf, axis=0, keepdims=True), sums)


def start_asymptotes(
    spec: ModelSpec, priors: Priors, n_groups: int, dtype: jnp.dtype
) -> Asymptotes | None:
    """Every group's asymptotes at the means of their priors, None where the family has none."""
    if not spec.has_asymptotes:
        return None
    guessing = _beta_mean(priors.guessing) if spec.has_guessing else 0.0
    infeasibility = _beta_mean(priors.infeasibility) if spec.has_feasibility else 0.0
    return Asymptotes.from_natural(
        jnp.full(n_groups, guessing, dtype), jnp.full(n_groups, 1 - infeasibility, dtype)
    )


def _beta_mean(parameters: tuple[float, float]) -> float:
    return parameters[0] / sum(parameters)


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

"""`marginal-items` with an empirical item distribution: variational EM over a grid.

Each group of items has weights at the nodes of a grid of (slopes, intercept), which are estimated
(DESIGN 4.1): with few models what is lost to a normal distribution is its shape, not its width.
Models have normal posteriors of abilities and effects, as in `marginal_items`: every step raises
one bound, in which the posteriors of items are exact on the grid.

The nodes carry the frame. Standardising abilities and making effects residuals (`frame.py`) change
no logit only if the items move along; so the nodes of group g lie at `matrix node + shift_g`, and
matrix and shifts are parameters that every change of frame is added to. With nodes that stay, a
change of frame would have to be undone by the weights, which can only follow it in steps of a
node's distance: the likelihood would fall at every step. The grid's place and width are thereby
estimated too, which is why a coarse grid does.
"""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from irtjax.data.blocks import Blocks
from irtjax.fit.blockwise import pooled
from irtjax.fit.estimator import StepInfo
from irtjax.fit.expected_score import expected_scores
from irtjax.fit.frame import FrameChange, residual_effects, standardise
from irtjax.fit.grid_parameters import GridParameters, grid_vector
from irtjax.fit.grid_pass import (
    GridPass,
    GridSums,
    GridTables,
    ModelSpread,
    NodeLogits,
    grid_counts,
    grid_posteriors,
    grid_sums,
    grid_tables,
    node_logits,
)
from irtjax.fit.grid_refine import refined_items
from irtjax.fit.guarded import Guarded, advance_guarded, start_guarded
from irtjax.fit.hyperparameters import (
    asymptotes_log_prior,
    update_asymptotes,
    update_effect_variance,
)
from irtjax.fit.item_grid import ItemGrid, grid_moments, update_weights, weights_log_prior
from irtjax.fit.item_pass import ItemPosteriors, pass_context
from irtjax.fit.item_spread import item_spreads
from irtjax.fit.items_estimates import Estimates, canonical_turn, item_slopes
from irtjax.fit.models_step import (
    ability_covariances,
    effect_spreads,
    mean_covariance,
    models_log_prior,
    step_models,
)
from irtjax.fit.start import (
    free_coordinates,
    model_accuracy,
    start_abilities,
    start_asymptotes,
)
from irtjax.fit.uncertainty import ability_errors, asymptote_errors, uncertainty_sums
from irtjax.model.priors import Priors
from irtjax.model.pytree import pytree_dataclass, static_field
from irtjax.model.spec import ModelSpec

__all__ = ["GridItems", "GridState"]

# A step counts as lowering the bound when it does so by more than this share: float32's rounding.
# In float64 plain steps never do.
_RELATIVE_DROP = 1e-6
# Of abilities and effects, before the first pass tells it: only the first step depends on it.
_FIRST_VARIANCE = 0.01


@pytree_dataclass
class GridState:
    """What continues from step to step.

    `start` holds what never moves (fixed asymptotes); `spread` is that of the models' posteriors,
    which follows from the rest; `is_scored` marks models with responses.
    """

    guarded: Guarded
    spread: ModelSpread
    start: GridParameters
    is_scored: Bool[Array, " models"]
    spec: ModelSpec = static_field()
    priors: Priors = static_field()


@dataclasses.dataclass(frozen=True)
class GridItems:
    """Variational EM with items integrated out over a grid: models are estimated.

    Args:
        n_slopes: nodes of the slope in each dim.
        has_effects: estimate model x group effects (with more than one group) and each group's
            weights; without, all share one distribution, and groups only serve the clustered
            errors.
        n_nodes: Gauss-Hermite nodes for the errors' expectations over a logit.
        acceleration: past steps that Anderson acceleration looks at.
    """

    n_slopes: int
    has_effects: bool = False
    n_nodes: int = 9
    acceleration: int = 5

    name = "marginal-items"
    objective_name = "elbo"
    compiles_soon = False

    def grid(self, spec: ModelSpec) -> ItemGrid:
        """The nodes before any change of frame."""
        return ItemGrid(spec.dims, self.n_slopes, spec.has_common_slope)

    @functools.partial(jax.jit, static_argnums=(0, 2, 3))
    def init(self, blocks: Blocks, spec: ModelSpec, priors: Priors, key: jax.Array) -> GridState:
        """Abilities from the singular vectors of the centred matrix, weights of a wide normal."""
        ability, is_scored = start_abilities(blocks, spec.dims, key)
        dtype = ability.dtype
        n_groups = blocks.n_groups if self.has_effects else 1
        effect = jnp.zeros((blocks.n_models, n_groups), dtype) if n_groups > 1 else None
        size = spec.dims + 1
        weight = self._start_weight(spec, dtype)
        start = GridParameters(
            ability,
            effect,
            jnp.asarray(priors.effect_variance, dtype),
            FrameChange(jnp.eye(size, dtype=dtype), jnp.zeros((n_groups, size), dtype)),
            jnp.broadcast_to(weight, (n_groups, len(weight))),
            start_asymptotes(spec, priors, n_groups, dtype),
        )
        unit = jnp.broadcast_to(jnp.eye(spec.dims, dtype=dtype), (len(ability),) + (spec.dims,) * 2)
        spread = ModelSpread(
            _FIRST_VARIANCE * unit,
            None if effect is None else jnp.full_like(effect, _FIRST_VARIANCE),
        )
        guarded = start_guarded(grid_vector(start)[0], self.acceleration)
        return GridState(guarded, spread, start, is_scored, spec, priors)

    def step(self, blocks: Blocks, state: GridState) -> tuple[GridState, StepInfo]:
        """One E-step and M-step, accelerated; the bound never falls."""
        now = grid_vector(state.start)[1](state.guarded.current)
        node, logit, tables = self._tables(state.spec, now, state.spread)
        found = grid_counts(blocks, tables)
        sums = grid_sums(found, logit, node, now.asymptotes, now.effect is not None)
        objective = found.log_likelihood + models_log_prior(
            now.ability,
            state.spread.ability,
            now.effect,
            state.spread.effect,
            now.effect_variance,
            sums,
            state.priors,
        )
        objective += asymptotes_log_prior(now.asymptotes, state.priors)
        start = self._start_weight(state.spec, now.log_weight.dtype)
        objective += weights_log_prior(now.log_weight, start, state.priors)
        plain, spread = self._improved(state, now, found, sums)
        vector = grid_vector(plain)[0]
        guarded, fell = advance_guarded(state.guarded, objective, vector, _RELATIVE_DROP)
        # What the iteration goes back to is of the spread that it was found with.
        spread = jax.tree.map(lambda old, new: jnp.where(fell, old, new), state.spread, spread)
        change = jnp.max(jnp.abs(plain.ability - now.ability))
        new = dataclasses.replace(state, guarded=guarded, spread=spread)
        return new, StepInfo(objective, change, fell)

    def parameters(self, state: GridState) -> GridParameters:
        """Those after the last step whose result was not extrapolated."""
        return grid_vector(state.start)[1](state.guarded.plain)

    def compile_finish(self, blocks: Blocks, state: GridState) -> None:
        """Nothing: `finish` compiles as it goes."""

    def finish(self, blocks: Blocks, state: GridState) -> Estimates:
        """Estimates in the canonical frame, with effects that are residuals, and their errors."""
        found = self.parameters(state)
        # Published abilities have sd 1 themselves; in the loop their second moment is 1.
        ability, matrix = standardise(found.ability, state.is_scored)
        effect, shift = found.effect, jnp.zeros_like(found.frame.shift)
        if effect is not None:
            design = _design(ability, free_coordinates(state.spec))
            effect, shift = residual_effects(design, effect, state.is_scored)
        change = FrameChange(matrix, shift)
        slope = item_slopes(blocks, self._posteriors(blocks, state, change))
        turn = canonical_turn(slope, np.asarray(ability), np.asarray(model_accuracy(blocks)))
        change = FrameChange(jnp.asarray(turn), jnp.zeros_like(shift)).after(change)
        return self._estimates(blocks, state, ability @ turn[:-1, :-1].T, effect, change)

    @functools.partial(jax.jit, static_argnums=0)
    def _posteriors(self, blocks: Blocks, state: GridState, change: FrameChange) -> ItemPosteriors:
        """Every item's posterior after a change of frame."""
        found = self.parameters(state)
        tables = self._tables(state.spec, found, state.spread)[2]
        items = grid_posteriors(blocks, tables, self.grid(state.spec))
        return change.after(found.frame).apply_to_items(items, blocks.group)

    @functools.partial(jax.jit, static_argnums=0)
    def _estimates(
        self,
        blocks: Blocks,
        state: GridState,
        ability: Float[Array, "models dims"],
        effect: Float[Array, "models groups"] | None,
        change: FrameChange,
    ) -> Estimates:
        """Estimates and errors at the abilities of another frame, which `change` leads to."""
        found, spec = self.parameters(state), state.spec
        items = self._posteriors(blocks, state, change)
        frame = change.after(found.frame)
        grid = self.grid(spec)
        distribution = grid_moments(grid, frame, found.log_weight, state.priors)
        context = pass_context(
            ability,
            effect,
            distribution,
            found.asymptotes,
            free_coordinates(spec),
            self.n_nodes,
            change.apply_to_covariance(state.spread.ability),
            state.spread.effect,
        )
        scaled = frame.matrix * jnp.asarray(grid.distance, ability.dtype)
        items, left_open = refined_items(blocks, items, context, distribution, scaled @ scaled.T)
        known = dataclasses.replace(context, spread=None, effect_spread=None)
        total, groups = uncertainty_sums(blocks, items, known)
        asymptotes, errors = found.asymptotes, None
        if asymptotes is not None:
            of_groups = groups if self.has_effects else pooled(groups)
            errors = asymptote_errors(of_groups, asymptotes, state.priors)
        of_abilities = ability_errors(total, groups, effect, found.effect_variance)
        return Estimates(
            ability,
            of_abilities,
            effect,
            found.effect_variance,
            expected_scores(blocks, items, known),
            items,
            distribution,
            asymptotes,
            errors,
            left_open + item_spreads(blocks, items, known, of_abilities.covariance),
        )

    def _start_weight(self, spec: ModelSpec, dtype: jnp.dtype) -> Float[Array, " nodes"]:
        return jnp.asarray(self.grid(spec).log_weight, dtype)

    def _tables(
        self, spec: ModelSpec, parameters: GridParameters, spread: ModelSpread
    ) -> tuple[Float[Array, "groups nodes coordinates"], NodeLogits, GridTables]:
        """Nodes and logits of each group, and the tables of a pass."""
        base = jnp.asarray(self.grid(spec).node, parameters.ability.dtype)
        node = parameters.frame.apply_to_nodes(base)
        logit = node_logits(parameters.ability, parameters.effect, spread, node)
        return node, logit, grid_tables(logit, parameters.log_weight, parameters.asymptotes)

    def _improved(
        self,
        state: GridState,
        now: GridParameters,
        found: GridPass,
        sums: GridSums,
    ) -> tuple[GridParameters, ModelSpread]:
        """The M-step: models on their expected counts, weights, variance, asymptotes; the frame."""
        priors, is_scored = state.priors, state.is_scored
        asymptotes = now.asymptotes
        if asymptotes is not None and sums.answers is not None:
            asymptotes = update_asymptotes(asymptotes, sums.answers, priors)
        ability, effect = step_models(now.ability, now.effect, now.effect_variance, sums)
        covariance = ability_covariances(sums, is_scored)
        spread = effect_spreads(sums, now.effect_variance)
        ability, matrix = standardise(
            ability, is_scored, now.ability, mean_covariance(covariance, is_scored)
        )
        shift, variance = jnp.zeros_like(now.frame.shift), now.effect_variance
        if effect is not None and spread is not None and sums.effects is not None:
            # Of the means only: what effects have in common with uncertain abilities cannot move
            # into slopes without a change of the logits' variances (the bound fell by 1.5 at 24
            # models and no fit converged). `finish` moves it.
            only_mean = (False,) * state.spec.dims + (True,)
            effect, shift = residual_effects(_design(ability, only_mean), effect, is_scored)
            is_seen = sums.effects.information.T > 0
            variance = update_effect_variance(effect, spread, is_seen, priors)
        change = FrameChange(matrix, shift)
        unit = jnp.eye(covariance.shape[1], dtype=covariance.dtype)
        covariance = change.apply_to_covariance(covariance)
        covariance = jnp.where(is_scored[:, None, None], covariance, unit)
        start = self._start_weight(state.spec, now.log_weight.dtype)
        weight = update_weights(now.log_weight, found.mass, start, priors)
        frame = change.after(now.frame)
        new = GridParameters(ability, effect, variance, frame, weight, asymptotes)
        return new, ModelSpread(covariance, spread)


def _design(
    ability: Float[Array, "models dims"], is_used: tuple[bool, ...]
) -> Float[Array, "models coordinates"]:
    """`(theta, 1)`, with 0 for what is not regressed on."""
    design = jnp.concatenate([ability, jnp.ones_like(ability[:, :1])], axis=1)
    return design * jnp.asarray(is_used, ability.dtype)

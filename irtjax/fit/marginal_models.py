"""`marginal-models`: EM with the models integrated out on nodes (Bock & Aitkin 1981)."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from irtjax.data.blocks import Blocks
from irtjax.fit.compiling import compiled_soon
from irtjax.fit.estimator import StepInfo
from irtjax.fit.guarded import Guarded, advance_guarded, start_guarded
from irtjax.fit.held_parameters import HeldParameters
from irtjax.fit.item_information import (
    InformationSums,
    Method,
    information_sums,
    item_covariances,
    second_part,
)
from irtjax.fit.item_step import (
    ItemModel,
    ItemParameters,
    climb_items,
    log_prior,
)
from irtjax.fit.model_posteriors import ModelPosteriors, model_posteriors
from irtjax.fit.models_vector import ModelsParameters, Moving, from_vector, to_vector
from irtjax.fit.node_pass import NodePass, expected_counts
from irtjax.fit.populations import (
    Grid,
    Populations,
    moments_of_nodes,
    populations_move,
    start_populations,
    update_populations,
)
from irtjax.fit.start_items import start_items
from irtjax.model.priors import Priors
from irtjax.model.pytree import pytree_dataclass, static_field
from irtjax.model.spec import ModelSpec

__all__ = [
    "MarginalModels",
    "RELATIVE_DROP",
    "ModelsEstimates",
    "ModelsState",
    "start_with_own_posteriors",
]

# Newton steps of the items on each E-step's counts: more gain nothing, since the counts change.
_ITEM_STEPS = 3
# Multiplications that Louis' information may take (W3's 2PL takes 2e8: .03 CPU seconds).
_MOST_WORK = 3e8
# What rounding may take from the log-likelihood, as a share of it.
RELATIVE_DROP = {"float32": 1e-6, "float64": 1e-12}


@pytree_dataclass
class ModelsState:
    """What continues from step to step.

    `start` holds what never moves (the signs of slopes on a logarithmic scale, fixed asymptotes);
    `multiplicity` counts the models of each pattern of responses.
    """

    guarded: Guarded
    start: ModelsParameters
    multiplicity: Float[Array, "blocks models"]
    is_loading: Float[Array, "items dims"] | None
    spec: ModelSpec = static_field()
    priors: Priors = static_field()
    held: HeldParameters | None = None

    @property
    def model(self) -> ItemModel:
        """Coordinates and priors of the items."""
        return ItemModel(self.spec, self.priors)

    @property
    def may_move(self) -> Float[Array, "items columns"] | None:
        """1 where a slope (where items are held, a coordinate) is estimated; None: everywhere."""
        return self.is_loading if self.held is None else self.held.may_move(self.model)

    def with_held_errors(
        self, covariance: Float[Array, "items coordinates coordinates"]
    ) -> Float[Array, "items coordinates coordinates"]:
        """Covariances of the items, of those held as the other fit has them."""
        return covariance if self.held is None else self.held.within_covariance(covariance)


def start_with_own_posteriors(
    blocks: Blocks,
    model: ItemModel,
    key: jax.Array,
    multiplicity: Float[Array, "blocks models"],
    is_loading: Float[Array, "items dims"] | None,
    *,
    is_jittered: bool,
    n_populations: int,
    moving: Moving,
    acceleration: int,
    held: HeldParameters | None = None,
) -> ModelsState:
    """First state of an estimator whose models have posteriors of their own, not shared nodes.

    Items are as `start_items` has them, populations standard normal and without nodes.
    """
    items = start_items(
        blocks, model, key, is_jittered=is_jittered, is_loading=is_loading, held=held
    )
    dtype, dims = items.slope.dtype, model.spec.dims
    unit = jnp.broadcast_to(jnp.eye(dims, dtype=dtype), (n_populations, dims, dims))
    nothing = jnp.zeros((n_populations, 0), dtype)
    populations = Populations(jnp.zeros((n_populations, dims), dtype), unit, nothing)
    start = ModelsParameters(items, populations)
    guarded = start_guarded(to_vector(model, start, moving), acceleration)
    return ModelsState(guarded, start, multiplicity, is_loading, model.spec, model.priors, held)


@pytree_dataclass
class ModelsEstimates:
    """What a fit estimates: items and their covariances, populations, models in their blocks."""

    items: ItemParameters
    item_covariance: Float[Array, "items coordinates coordinates"]
    populations: Populations
    models: ModelPosteriors
    log_likelihood: Float[Array, ""]
    error_method: str = static_field()


@dataclasses.dataclass(frozen=True)
class MarginalModels:
    """Expectation-maximisation over items with the abilities integrated out.

    Args:
        n_nodes: nodes a dim.
        is_empirical: estimate the weights of the nodes (empirical histogram) instead of a normal.
        is_correlated: dims may correlate (confirmatory models).
        is_jittered: start elsewhere, by the key.
        n_populations: populations of models, each with its own mean and standard deviation.
        acceleration: past steps that Anderson acceleration looks at.
        is_complete: every cell of the data is one answer: half of the work.
        is_anchored: items that are held fix the scale, and all populations are estimated.
    """

    n_nodes: int = 61
    is_empirical: bool = False
    is_correlated: bool = False
    is_jittered: bool = False
    n_populations: int = 1
    acceleration: int = 5
    is_complete: bool = False
    is_anchored: bool = False

    name = "marginal-models"
    objective_name = "marginal"
    compiles_soon = True

    @property
    def moving(self) -> Moving:
        """What of the populations is estimated."""
        has_moments = self.n_populations > 1 or self.is_correlated or self.is_anchored
        return Moving(has_moments, self.is_empirical)

    def grid(self, spec: ModelSpec) -> Grid:
        """The nodes."""
        return Grid(spec.dims, self.n_nodes, self.is_empirical)

    @compiled_soon(0, 2, 3)
    def init(
        self,
        blocks: Blocks,
        spec: ModelSpec,
        priors: Priors,
        key: jax.Array,
        multiplicity: Float[Array, "blocks models"] | None = None,
        is_loading: Float[Array, "items dims"] | None = None,
        held: HeldParameters | None = None,
    ) -> ModelsState:
        """Items from their means and covariances, populations standard normal."""
        model = ItemModel(spec, priors)
        items = start_items(
            blocks, model, key, is_jittered=self.is_jittered, is_loading=is_loading, held=held
        )
        dtype = items.slope.dtype
        populations = start_populations(self.n_populations, self.grid(spec), dtype)
        if multiplicity is None:
            multiplicity = blocks.is_item.astype(dtype)
        start = ModelsParameters(items, populations)
        guarded = start_guarded(to_vector(model, start, self.moving), self.acceleration)
        return ModelsState(guarded, start, multiplicity, is_loading, spec, priors, held)

    def step(self, blocks: Blocks, state: ModelsState) -> tuple[ModelsState, StepInfo]:
        """One E-step and M-step, accelerated; the penalised likelihood never falls."""
        model = state.model
        parameters = from_vector(model, state.start, state.guarded.current, self.moving)
        items, populations = parameters.items, parameters.populations
        found = expected_counts(
            blocks,
            state.multiplicity,
            items,
            populations,
            self.grid(state.spec),
            is_complete=self.is_complete,
        )
        objective = found.log_likelihood + jnp.sum(log_prior(model, items))
        plain = self._improved(model, parameters, found, state.may_move)
        drop = RELATIVE_DROP[items.slope.dtype.name]
        vector = to_vector(model, plain, self.moving)
        guarded, fell = advance_guarded(state.guarded, objective, vector, drop)
        change = largest_move(items, plain.items)
        if self.is_anchored:
            change = jnp.maximum(change, populations_move(populations, plain.populations))
        return dataclasses.replace(state, guarded=guarded), StepInfo(objective, change, fell)

    def parameters(self, state: ModelsState) -> ModelsParameters:
        """Items and populations after the last step whose result was not extrapolated."""
        return from_vector(state.model, state.start, state.guarded.plain, self.moving)

    def compile_finish(self, blocks: Blocks, state: ModelsState) -> None:
        """Compile the errors of the items and the posteriors of the models."""
        cls, method = type(self), self.error_method(blocks, state)
        cls._at_the_end.lower(self, blocks, state, method).compile()
        slope = state.start.items.slope
        unknown = np.zeros((len(slope), *[state.model.n_coordinates] * 2), slope.dtype)
        covariance = state.with_held_errors(jnp.asarray(unknown))
        cls._posteriors.lower(self, blocks, state, covariance).compile()

    def finish(self, blocks: Blocks, state: ModelsState) -> ModelsEstimates:
        """Estimates with their errors, in the canonical frame."""
        model, method = state.model, self.error_method(blocks, state)
        parameters, found, sums, second = self._at_the_end(blocks, state, method)
        loading = None if state.may_move is None else np.asarray(state.may_move)
        errors = item_covariances(model, parameters.items, sums, second, method, loading)
        covariance = jnp.asarray(errors.covariance, parameters.items.slope.dtype)
        covariance = state.with_held_errors(covariance)
        posteriors = self._posteriors(blocks, state, covariance)
        return ModelsEstimates(
            parameters.items,
            covariance,
            parameters.populations,
            posteriors,
            found.log_likelihood,
            method,
        )

    def error_method(self, blocks: Blocks, state: ModelsState) -> Method:
        """Louis' information where it is cheap; beyond, each item by itself.

        With 50 items the errors of each by itself are 2% smaller than the whole matrix's, with 5
        items 8%.
        """
        n_items, dims = state.start.items.slope.shape
        n_kinds = state.model.n_coordinates - dims
        n_units = blocks.n_blocks * blocks.items_per_block
        work = n_units * len(self.grid(state.spec).log_weight) * (n_kinds * n_items) ** 2
        return "observed" if work <= _MOST_WORK else "by-item"

    @compiled_soon(0, 3)
    def _at_the_end(
        self, blocks: Blocks, state: ModelsState, method: Method
    ) -> tuple[ModelsParameters, NodePass, InformationSums, Array]:
        parameters, model = self.parameters(state), state.model
        items, populations = parameters.items, parameters.populations
        found, sums = information_sums(
            blocks,
            state.multiplicity,
            items,
            populations,
            self.grid(state.spec),
            model,
            method,
            is_complete=self.is_complete,
        )
        return parameters, found, sums, second_part(model, items, found.counts)

    @compiled_soon(0)
    def _posteriors(
        self,
        blocks: Blocks,
        state: ModelsState,
        covariance: Float[Array, "items coordinates coordinates"],
    ) -> ModelPosteriors:
        parameters = self.parameters(state)
        return model_posteriors(
            blocks,
            parameters.items,
            covariance,
            parameters.populations,
            self.grid(state.spec),
            state.model,
            is_complete=self.is_complete,
        )

    def _improved(
        self,
        model: ItemModel,
        parameters: ModelsParameters,
        found: NodePass,
        is_loading: Float[Array, "items dims"] | None,
    ) -> ModelsParameters:
        """The M-step: items on their expected counts, populations on their masses."""

        items = climb_items(model, parameters.items, found.counts, _ITEM_STEPS, is_loading)
        if not self.moving.any:
            return ModelsParameters(items, parameters.populations)
        moments = moments_of_nodes(parameters.populations, found.mass, self.grid(model.spec))
        populations, items = update_populations(
            parameters.populations,
            items,
            moments,
            self.is_correlated,
            found.mass if self.is_empirical else None,
            is_anchored=self.is_anchored,
        )
        return ModelsParameters(items, populations)


def largest_move(old: ItemParameters, new: ItemParameters) -> Float[Array, ""]:
    """Largest change of a slope or intercept (relative above 1 logit) or of an asymptote."""

    def rows(items: ItemParameters) -> Array:
        rows = [*items.slope.T, items.intercept]
        if items.asymptotes is not None:
            rows += [items.asymptotes.guessing, items.asymptotes.feasibility]
        return jnp.stack(rows)

    before, after = rows(old), rows(new)
    return jnp.max(jnp.abs(before - after) / jnp.maximum(jnp.abs(before), 1))

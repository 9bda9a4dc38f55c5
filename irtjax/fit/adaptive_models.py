"""`marginal-models` with nodes of each model's own, for posteriors narrower than fixed nodes."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from irtjax.data.blocks import Blocks
from irtjax.fit.adaptive_pass import (
    AdaptivePass,
    Placement,
    adaptive_pass,
    adaptive_posteriors,
    start_placement,
)
from irtjax.fit.compiling import compiled_soon
from irtjax.fit.estimator import StepInfo
from irtjax.fit.held_parameters import HeldParameters
from irtjax.fit.item_step import ItemModel, ItemParameters, log_prior, step_items
from irtjax.fit.marginal_models import RELATIVE_DROP, ModelsEstimates, ModelsState
from irtjax.fit.model_posteriors import ModelPosteriors
from irtjax.fit.models_vector import ModelsParameters
from irtjax.fit.own_posteriors import OwnPosteriors, item_errors
from irtjax.fit.packed import unpack
from irtjax.fit.populations import expanded_move, shifted
from irtjax.model.priors import Priors
from irtjax.model.pytree import pytree_dataclass
from irtjax.model.spec import ModelSpec

__all__ = ["AdaptiveModels"]

# Passes that only move the nodes, before the first step: from the standard normal to posteriors
# 100 times narrower.
_FIRST_PASSES = 6


@pytree_dataclass
class AdaptiveState:
    """What continues from step to step: the parameters' state, and where the nodes are."""

    models: ModelsState
    placement: Placement


@dataclasses.dataclass(frozen=True)
class AdaptiveModels(OwnPosteriors):
    """Expectation-maximisation with adaptive quadrature: one Newton step of the items a pass.

    The settings are those of `OwnPosteriors`; nodes are a dim, around each model's own posterior.
    """

    n_nodes: int = 15

    objective_name = "marginal"
    compiles_soon = True

    @compiled_soon(0, 2, 3)
    def init(
        self,
        blocks: Blocks,
        spec: ModelSpec,
        priors: Priors,
        key: jax.Array,
        multiplicity: Float[Array, "blocks models"],
        is_loading: Float[Array, "items dims"] | None = None,
        held: HeldParameters | None = None,
    ) -> AdaptiveState:
        """Items from their means and covariances, nodes around the posteriors these give."""
        state = self.first(blocks, spec, priors, key, multiplicity, is_loading, held)
        dtype = state.start.items.slope.dtype

        def closer(_: int, placement: Placement) -> Placement:
            return self._pass(blocks, state, state.start, placement)[1]

        placement = start_placement(blocks, spec.dims, dtype)
        return AdaptiveState(state, jax.lax.fori_loop(0, _FIRST_PASSES, closer, placement))

    def step(self, blocks: Blocks, state: AdaptiveState) -> tuple[AdaptiveState, StepInfo]:
        """One pass and one Newton step of the items, accelerated and guarded."""
        models, model = state.models, state.models.model
        current = self.current(models)
        found, placement = self._pass(blocks, models, current, state.placement)
        objective = found.log_likelihood + jnp.sum(log_prior(model, current.items))
        items = step_items(model, current.items, found.derivatives, models.may_move)
        if not self.moving.any:
            mean, sd = expanded_move(model, items, found.moments)
            items = shifted(items, mean, sd)
            # The nodes go with their models: else the next pass would look where these were.
            moved = (placement.mean - mean) / sd
            placement = Placement(moved, placement.factor / sd[:, None])
        new = self.with_populations(current, items, found.moments)
        drop = RELATIVE_DROP[items.slope.dtype.name]
        advanced, info = self.advanced(models, current, new, objective, drop)
        return AdaptiveState(advanced, placement), info

    def compile_finish(self, blocks: Blocks, state: AdaptiveState) -> None:
        """Nothing: `finish` compiles as it goes."""

    def finish(self, blocks: Blocks, state: AdaptiveState) -> ModelsEstimates:
        """Estimates with their errors.

        Errors of the items are those of the complete data: where posteriors are as narrow as here,
        the abilities are as good as known.
        """
        models, model = state.models, state.models.model
        parameters = self.settled(models)
        found, placement = self._settled(blocks, models, parameters, state.placement)
        packed = unpack(found.derivatives.information, model.n_coordinates)
        information = _natural(model, parameters.items, np.asarray(packed, np.float64))
        covariance = item_errors(models, parameters.items, information)
        return ModelsEstimates(
            parameters.items,
            covariance,
            parameters.populations,
            self._posteriors(blocks, models, parameters, placement, covariance),
            found.log_likelihood,
            "complete-data",
        )

    def _pass(
        self, blocks: Blocks, models: ModelsState, current: ModelsParameters, placement: Placement
    ) -> tuple[AdaptivePass, Placement]:
        return adaptive_pass(
            blocks,
            models.multiplicity,
            models.model,
            current.items,
            current.populations,
            placement,
            self.n_nodes,
        )

    @compiled_soon(0)
    def _settled(
        self, blocks: Blocks, models: ModelsState, current: ModelsParameters, placement: Placement
    ) -> tuple[AdaptivePass, Placement]:
        return self._pass(blocks, models, current, placement)

    @compiled_soon(0)
    def _posteriors(
        self,
        blocks: Blocks,
        models: ModelsState,
        current: ModelsParameters,
        placement: Placement,
        covariance: Float[Array, "items coordinates coordinates"],
    ) -> ModelPosteriors:
        return adaptive_posteriors(
            blocks,
            models.model,
            current.items,
            covariance,
            current.populations,
            placement,
            self.n_nodes,
        )


def _natural(model: ItemModel, items: ItemParameters, information: np.ndarray) -> np.ndarray:
    """Information in natural slopes where the steps are on the scale of their logarithms."""
    if not model.has_log_slopes:
        return information
    scale = np.ones(information.shape[1:])
    scale[: model.spec.dims] = 1 / np.asarray(items.slope, np.float64).T
    return information * scale[:, None] * scale[None]

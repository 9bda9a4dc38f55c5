"""What estimators of `marginal-models` share whose models have posteriors of their own.

They differ in these posteriors, and in what a pass over them says of the items. How the parameters
start, move with the populations, are accelerated and guarded, and get their errors is the same.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from irtjax.data.blocks import Blocks
from irtjax.fit.estimator import StepInfo
from irtjax.fit.guarded import advance_guarded
from irtjax.fit.held_parameters import HeldParameters
from irtjax.fit.item_information import by_item, prior_information
from irtjax.fit.item_step import ItemModel, ItemParameters
from irtjax.fit.marginal_models import ModelsState, largest_move, start_with_own_posteriors
from irtjax.fit.models_vector import ModelsParameters, Moving, from_vector, to_vector
from irtjax.fit.populations import (
    PopulationMoments,
    populations_move,
    update_populations,
)
from irtjax.model.priors import Priors
from irtjax.model.spec import ModelSpec

__all__ = ["OwnPosteriors", "item_errors"]


@dataclasses.dataclass(frozen=True)
class OwnPosteriors:
    """Settings, and the steps around the pass.

    Args:
        n_nodes: of the pass.
        is_correlated: dims may correlate (confirmatory models).
        is_jittered: start elsewhere, by the key.
        n_populations: populations of models, each with its own mean and covariance.
        acceleration: past steps that Anderson acceleration looks at.
        is_anchored: items that are held fix the scale, and all populations are estimated.
    """

    n_nodes: int
    is_correlated: bool = False
    is_jittered: bool = False
    n_populations: int = 1
    acceleration: int = 5
    is_anchored: bool = False

    name = "marginal-models"
    is_empirical = False

    @property
    def moving(self) -> Moving:
        """What of the populations is estimated."""
        return Moving(self.n_populations > 1 or self.is_correlated or self.is_anchored, False)

    def first(
        self,
        blocks: Blocks,
        spec: ModelSpec,
        priors: Priors,
        key: jax.Array,
        multiplicity: Float[Array, "blocks models"],
        is_loading: Float[Array, "items dims"] | None,
        held: HeldParameters | None,
    ) -> ModelsState:
        """The parameters' first state: items from their means and covariances."""
        return start_with_own_posteriors(
            blocks,
            ItemModel(spec, priors),
            key,
            multiplicity,
            is_loading,
            is_jittered=self.is_jittered,
            n_populations=self.n_populations,
            moving=self.moving,
            acceleration=self.acceleration,
            held=held,
        )

    def current(self, models: ModelsState) -> ModelsParameters:
        """The parameters that the next pass is at: a plain step's, or extrapolated."""
        return from_vector(models.model, models.start, models.guarded.current, self.moving)

    def settled(self, models: ModelsState) -> ModelsParameters:
        """Those after the last step whose result was not extrapolated."""
        return from_vector(models.model, models.start, models.guarded.plain, self.moving)

    def with_populations(
        self, current: ModelsParameters, items: ItemParameters, moments: PopulationMoments
    ) -> ModelsParameters:
        """Moved items, and the populations moved to the posteriors' moments where they may."""
        if not self.moving.any:
            return ModelsParameters(items, current.populations)
        populations, items = update_populations(
            current.populations,
            items,
            moments,
            self.is_correlated,
            is_anchored=self.is_anchored,
        )
        return ModelsParameters(items, populations)

    def advanced(
        self,
        models: ModelsState,
        current: ModelsParameters,
        moved: ModelsParameters,
        objective: Float[Array, ""],
        largest_drop: float,
    ) -> tuple[ModelsState, StepInfo]:
        """The next state after a plain step from `current` (of this objective) to `moved`."""
        vector = to_vector(models.model, moved, self.moving)
        guarded, fell = advance_guarded(models.guarded, objective, vector, largest_drop)
        change = largest_move(current.items, moved.items)
        if self.is_anchored:
            away = populations_move(current.populations, moved.populations)
            change = jnp.maximum(change, away)
        return dataclasses.replace(models, guarded=guarded), StepInfo(objective, change, fell)


def item_errors(
    models: ModelsState,
    items: ItemParameters,
    information: Float[np.ndarray, "items coordinates coordinates"],
) -> Float[Array, "items coordinates coordinates"]:
    """Covariance of each item's parameters: of the inverse of its information and its priors'."""
    total = information + prior_information(models.model, items)
    loading = None if models.may_move is None else np.asarray(models.may_move)
    covariance = by_item(models.model, total, loading)
    return models.with_held_errors(jnp.asarray(covariance, items.slope.dtype))

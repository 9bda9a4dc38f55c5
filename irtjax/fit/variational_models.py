"""`marginal-models` in any number of dims: the Gaussian variational EM with the models random."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from irtjax.data.blocks import Blocks
from irtjax.fit.estimator import StepInfo
from irtjax.fit.held_parameters import HeldParameters
from irtjax.fit.hyperparameters import update_asymptotes
from irtjax.fit.item_step import ItemModel, ItemParameters, log_prior, on_log_scale, step_items
from irtjax.fit.kernel import Posterior
from irtjax.fit.marginal_models import ModelsEstimates, ModelsState
from irtjax.fit.model_posteriors import ModelPosteriors
from irtjax.fit.models_vector import ModelsParameters
from irtjax.fit.own_posteriors import OwnPosteriors, item_errors
from irtjax.fit.variational_pass import (
    VariationalPass,
    score_products,
    start_posteriors,
    variational_pass,
    variational_posteriors,
)
from irtjax.model.priors import Priors
from irtjax.model.pytree import pytree_dataclass
from irtjax.model.spec import ModelSpec

__all__ = ["VariationalModels"]

# Passes that only renew the posteriors, before the first step.
_FIRST_PASSES = 4
# A pass renews the posteriors by one Newton step, so the bound may lag behind by this share.
_RELATIVE_DROP = 1e-5


@pytree_dataclass
class VariationalState:
    """What continues from step to step: the parameters' state, and the models' posteriors."""

    models: ModelsState
    posteriors: Posterior


@dataclasses.dataclass(frozen=True)
class VariationalModels(OwnPosteriors):
    """Expectation-maximisation with normal posteriors of the models.

    The settings are those of `OwnPosteriors`; nodes are of Gauss-Hermite, over a logit.
    """

    n_nodes: int = 7

    objective_name = "elbo"
    compiles_soon = False

    @functools.partial(jax.jit, static_argnums=(0, 2, 3))
    def init(
        self,
        blocks: Blocks,
        spec: ModelSpec,
        priors: Priors,
        key: jax.Array,
        multiplicity: Float[Array, "blocks models"],
        is_loading: Float[Array, "items dims"] | None = None,
        held: HeldParameters | None = None,
    ) -> VariationalState:
        """Items from their means and covariances, posteriors after a few passes at these."""
        state = self.first(blocks, spec, priors, key, multiplicity, is_loading, held)
        dtype = state.start.items.slope.dtype

        def renew(_: int, posteriors: Posterior) -> Posterior:
            return self._pass(blocks, state, state.start, posteriors)[1]

        posteriors = start_posteriors(blocks, spec.dims, dtype)
        posteriors = jax.lax.fori_loop(0, _FIRST_PASSES, renew, posteriors)
        return VariationalState(state, posteriors)

    def step(self, blocks: Blocks, state: VariationalState) -> tuple[VariationalState, StepInfo]:
        """One pass, one Newton step of the items; accelerated and guarded by the bound."""
        models, model = state.models, state.models.model
        current = self.current(models)
        found, posteriors = self._pass(blocks, models, current, state.posteriors)
        objective = found.bound + jnp.sum(log_prior(model, current.items))
        items = _stepped(model, current.items, found, models.may_move)
        if models.held is not None:
            items = models.held.within(items)
        new = self.with_populations(current, items, found.moments)
        advanced, info = self.advanced(models, current, new, objective, _RELATIVE_DROP)
        return VariationalState(advanced, posteriors), info

    def compile_finish(self, blocks: Blocks, state: VariationalState) -> None:
        """Nothing: `finish` compiles as it goes."""

    def finish(self, blocks: Blocks, state: VariationalState) -> ModelsEstimates:
        """Estimates with their errors, each item's by the cross-product of its scores."""
        models, parameters = state.models, self.settled(state.models)
        found, posteriors, products = self._settled(blocks, models, parameters, state.posteriors)
        information = np.asarray(products, np.float64)
        covariance = item_errors(models, parameters.items, information)
        return ModelsEstimates(
            parameters.items,
            covariance,
            parameters.populations,
            self._posteriors(blocks, parameters, posteriors, covariance),
            found.bound,
            "cross-product",
        )

    def _pass(
        self, blocks: Blocks, models: ModelsState, current: ModelsParameters, posteriors: Posterior
    ) -> tuple[VariationalPass, Posterior]:
        return variational_pass(
            blocks,
            models.multiplicity,
            current.items,
            current.populations,
            posteriors,
            self.n_nodes,
        )

    @functools.partial(jax.jit, static_argnums=0)
    def _settled(
        self, blocks: Blocks, models: ModelsState, current: ModelsParameters, posteriors: Posterior
    ) -> tuple[VariationalPass, Posterior, Array]:
        found, posteriors = self._pass(blocks, models, current, posteriors)
        products = score_products(
            blocks,
            models.multiplicity,
            models.model,
            current.items,
            current.populations,
            posteriors,
            self.n_nodes,
        )
        return found, posteriors, products

    @functools.partial(jax.jit, static_argnums=0)
    def _posteriors(
        self,
        blocks: Blocks,
        current: ModelsParameters,
        posteriors: Posterior,
        covariance: Float[Array, "items coordinates coordinates"],
    ) -> ModelPosteriors:
        return variational_posteriors(
            blocks, current.items, covariance, current.populations, posteriors, self.n_nodes
        )


def _stepped(
    model: ItemModel,
    items: ItemParameters,
    found: VariationalPass,
    is_loading: Float[Array, "items dims"] | None,
) -> ItemParameters:
    """Slopes and intercepts by a Newton step; asymptotes in closed form, from the answers."""
    family = "1pl" if model.spec.has_common_slope else "2pl"
    core = ItemModel(
        ModelSpec(family, model.spec.dims),
        dataclasses.replace(model.priors, slope=model.priors.of_slopes(model.spec)),
    )
    without = ItemParameters(items.slope, items.intercept, None)
    derivatives = on_log_scale(core, without, found.derivatives)
    if is_loading is not None:
        is_loading = is_loading[:, : core.n_coordinates]
    moved = step_items(core, without, derivatives, is_loading)
    asymptotes = items.asymptotes
    if asymptotes is not None and found.answers is not None:
        asymptotes = update_asymptotes(asymptotes, found.answers, model.priors)
    return ItemParameters(moved.slope, moved.intercept, asymptotes)

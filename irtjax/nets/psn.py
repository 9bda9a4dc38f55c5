"""`psn` and `deep-irt`: towers trained by minibatches, stopped by validation responses."""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from irtjax.fit.estimator import StepInfo
from irtjax.fit.item_step import ItemModel, ItemParameters
from irtjax.fit.joint_map import JointEstimates, conditional_estimates
from irtjax.fit.start import model_accuracy
from irtjax.model.priors import Priors
from irtjax.model.pytree import pytree_dataclass, static_field
from irtjax.model.response import log_likelihood, response_probability
from irtjax.model.spec import ModelSpec
from irtjax.nets.cells import NetBlocks
from irtjax.nets.scores import stopping_score
from irtjax.nets.settings import Network
from irtjax.nets.towers import TowerShape, item_width, tower
from irtjax.nets.training import Moments, Towers, Weights, epoch, first_moments, outputs

__all__ = ["Psn", "PsnState"]


@pytree_dataclass
class PsnState:
    """What continues from epoch to epoch.

    `best` is what scored best on the validation cells, `since_best` the epochs since; `curves` are
    the mean log-losses of training (on the way) and validation cells by epoch, 0 for those to come.
    """

    weights: Weights
    moments: Moments
    best: Weights
    best_score: Float[Array, ""]
    since_best: Int[Array, ""]
    n_epochs: Int[Array, ""]
    ability: Float[Array, "models dims"]
    key: Array
    curves: Float[Array, "2 epochs"]
    spec: ModelSpec = static_field()
    priors: Priors = static_field()


@dataclasses.dataclass(frozen=True)
class Psn:
    """Pseudo-Siamese networks: one step is one epoch.

    Args:
        network: towers and training.
        name: of the estimator, as the command line has it.
    """

    network: Network = dataclasses.field(default_factory=Network)
    name: str = "psn"

    objective_name = "validation"
    compiles_soon = False

    def towers(self, data: NetBlocks, spec: ModelSpec, priors: Priors) -> Towers:
        """What is trained, for these data."""
        network = self.network
        sizes = (network.embedding, network.hidden, network.layers)

        def shape(n_ids: int, features: Array | None, n_out: int) -> TowerShape:
            return TowerShape(n_ids, 0 if features is None else features.shape[1], n_out, *sizes)

        n_models, n_items = data.blocks.n_models, data.share.shape[0]
        return Towers(
            shape(n_models, data.model_features, spec.dims),
            shape(n_items + 1, data.item_features, item_width(spec)),
            ItemModel(spec, priors),
            network,
        )

    @functools.partial(jax.jit, static_argnums=(0, 2, 3))
    def init(self, blocks: NetBlocks, spec: ModelSpec, priors: Priors, key: jax.Array) -> PsnState:
        """New towers."""
        towers = self.towers(blocks, spec, priors)
        model_key, item_key, key = jax.random.split(key, 3)
        model_tower, model_table = tower(towers.model_shape, model_key)
        item_tower, item_table = tower(towers.item_shape, item_key)
        weights = Weights(model_tower, model_table, item_tower, item_table)
        n_cells = blocks.train.model.shape[0] - 1
        n_steps = -(-n_cells // self.network.batch_size)
        dtype = item_table.dtype
        return PsnState(
            weights,
            first_moments(towers, weights, n_steps),
            weights,
            jnp.asarray(-jnp.inf, dtype),
            jnp.zeros((), jnp.int32),
            jnp.zeros((), jnp.int32),
            outputs(towers, weights, blocks)[0],
            jax.random.key_data(key),
            jnp.zeros((2, self.network.epochs), dtype),
            spec,
            priors,
        )

    def step(self, blocks: NetBlocks, state: PsnState) -> tuple[PsnState, StepInfo]:
        """One epoch; none once patience or epochs are used up (then nothing moves any more)."""
        network = self.network
        is_over = (state.since_best >= network.patience) | (state.n_epochs >= network.epochs)
        return jax.lax.cond(
            is_over, lambda s: (s, self._rest(s)), lambda s: self._trained(blocks, s), state
        )

    def _rest(self, state: PsnState) -> StepInfo:
        zero = jnp.zeros((), state.ability.dtype)
        return StepInfo(state.best_score, zero, jnp.array(False))

    def _trained(self, blocks: NetBlocks, state: PsnState) -> tuple[PsnState, StepInfo]:
        towers = self.towers(blocks, state.spec, state.priors)
        key = jax.random.fold_in(jax.random.wrap_key_data(state.key), state.n_epochs)
        weights, moments, missed = epoch(towers, state.weights, state.moments, blocks, key)
        ability, items = outputs(towers, weights, blocks)
        score, validation = self._validated(blocks, ability, items)
        is_best = score > state.best_score
        best = jax.tree.map(lambda a, b: jnp.where(is_best, a, b), weights, state.best)
        column = jnp.stack([missed, validation])
        new = dataclasses.replace(
            state,
            weights=weights,
            moments=moments,
            best=best,
            best_score=jnp.where(is_best, score, state.best_score),
            since_best=jnp.where(is_best, 0, state.since_best + 1),
            n_epochs=state.n_epochs + 1,
            ability=ability,
            curves=state.curves.at[:, state.n_epochs].set(column),
        )
        change = jnp.max(jnp.abs(ability - state.ability))
        return new, StepInfo(score, change, jnp.array(False))

    def _validated(
        self, blocks: NetBlocks, ability: Float[Array, "models dims"], items: ItemParameters
    ) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """Score of the validation cells, and their log-loss."""
        cells = blocks.validation
        at = jax.tree.map(lambda leaf: leaf[cells.item], items)
        logit = jnp.sum(at.slope * ability[cells.model], axis=1) + at.intercept
        likelihood = log_likelihood(logit, cells.response, at.asymptotes)
        probability = response_probability(logit, at.asymptotes)
        by = self.network.stop_by
        score, validation = (
            stopping_score(how, probability, likelihood, cells.response, cells.weight)
            for how in (by, "log_loss")
        )
        return score, -validation

    @functools.partial(jax.jit, static_argnums=0)
    def finish(self, blocks: NetBlocks, state: PsnState) -> JointEstimates:
        """What the best towers put out, with the errors of each side given the other."""
        towers = self.towers(blocks, state.spec, state.priors)
        ability, items = outputs(towers, state.best, blocks)
        ability, items = _turned(ability, items)
        placed = jax.tree.map(lambda leaf: leaf[blocks.order], items)
        is_scored: Bool[Array, " models"] = ~jnp.isnan(model_accuracy(blocks.blocks))
        has_features = blocks.model_features is not None
        return conditional_estimates(
            blocks.blocks,
            placed,
            ability,
            towers.item_model,
            is_scored | has_features,
            n_steps=0,
        )


def _turned(ability: Any, items: ItemParameters) -> tuple[Any, ItemParameters]:
    """The sign in which slopes are positive in sum (more dims are turned with the frame)."""
    sign = jnp.where(jnp.sum(items.slope, axis=0) < 0, -1, 1).astype(ability.dtype)
    return ability * sign, dataclasses.replace(items, slope=items.slope * sign)

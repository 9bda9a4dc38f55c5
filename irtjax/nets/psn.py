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
from irtjax.model.spec import ModelSpec
from irtjax.nets.cells import NetBlocks
from irtjax.nets.judged import by_means, predicted, sums_by_item, totals_by_model, validated
from irtjax.nets.settings import Network, Start
from irtjax.nets.towers import TowerShape, item_width, tower
from irtjax.nets.training import Moments, Towers, Weights, epoch, first_moments, outputs

__all__ = ["Psn", "PsnEstimates", "PsnState"]

# Rows of items start small, as the one-hot layer of a network with thousands of ids does; rows of
# models so that abilities start about 1 apart.
_ITEM_ROWS, _MODEL_ROWS = 0.01, 1.0
# Towers whose log-loss is this many times that before the training are not kept, whatever their
# score: steps too long have thrown them about.
_THROWN = 2.0


def _row_scales(start: Start, n_models: int, n_items: int) -> tuple[float, float]:
    """Standard deviations that the rows of models and of items start with.

    PyTorch draws the weights of a linear layer of n inputs from U(-n^-1/2, n^-1/2).
    """
    if start == "apart":
        return _MODEL_ROWS, _ITEM_ROWS
    return (3 * n_models) ** -0.5, (3 * n_items) ** -0.5


@pytree_dataclass
class PsnState:
    """What continues from epoch to epoch.

    `first` are the weights before training, `best` what scored best on the validation cells with a
    log-loss below `most_loss`, `since_best` the epochs since; in a refit `best` is the newest.
    `curves` are mean log-losses by epoch, 0 for those to come: of the training cells (on the way),
    of the validation cells, and of all cells in the refit; then the score of the validation cells.
    """

    weights: Weights
    moments: Moments
    first: Weights
    best: Weights
    best_score: Float[Array, ""]
    most_loss: Float[Array, ""]
    since_best: Int[Array, ""]
    n_epochs: Int[Array, ""]
    n_refit: Int[Array, ""]
    ability: Float[Array, "models dims"]
    key: Array
    curves: Float[Array, "4 epochs"]
    spec: ModelSpec = static_field()
    priors: Priors = static_field()


@pytree_dataclass
class PsnEstimates:
    """What the towers put out, and how their training went (see `PsnState`).

    `towers` are the weights of the models' and the items' tower, `raw` what these put out:
    abilities with a 1 and items' slopes with intercepts, before `joint` puts them into its frame.
    `baselines` are the score and the log-loss of the validation cells before the training, and by
    the mean of the training cells, each model's and each item's. `sums` are of all cells, by what
    the towers put out (see `sums_by_item` and `totals_by_model`).
    """

    joint: JointEstimates
    curves: Float[Array, "4 epochs"]
    n_epochs: Int[Array, ""]
    n_best: Int[Array, ""]
    n_refit: Int[Array, ""]
    towers: tuple[Any, Any]
    raw: tuple[Float[Array, "models coordinates"], Float[Array, "items coordinates"]]
    baselines: Float[Array, "4 2"]
    sums: tuple[Float[Array, "5 items"], Float[Array, "2 models"]]


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

    def shapes(
        self, spec: ModelSpec, n_ids: tuple[int, int], n_features: tuple[int, int]
    ) -> tuple[TowerShape, TowerShape]:
        """Towers of models and of items (which have a row more), each with so many features."""
        network = self.network
        sizes = (network.embedding, network.hidden, network.layers)
        return (
            TowerShape(n_ids[0], n_features[0], spec.dims, *sizes, network.looks_up("models")),
            TowerShape(
                n_ids[1] + 1, n_features[1], item_width(spec), *sizes, network.looks_up("items")
            ),
        )

    def towers(self, data: NetBlocks, spec: ModelSpec, priors: Priors) -> Towers:
        """What is trained, for these data."""
        tables = (data.model_features, data.item_features)
        of_models, of_items = (0 if table is None else table.shape[1] for table in tables)
        n_ids = (data.blocks.n_models, data.share.shape[1])
        shapes = self.shapes(spec, n_ids, (of_models, of_items))
        return Towers(*shapes, ItemModel(spec, priors), self.network)

    @functools.partial(jax.jit, static_argnums=(0, 2, 3))
    def init(self, blocks: NetBlocks, spec: ModelSpec, priors: Priors, key: jax.Array) -> PsnState:
        """New towers."""
        zero = jnp.zeros((), jnp.int32)
        model_key, item_key, key = jax.random.split(key, 3)
        towers = self.towers(blocks, spec, priors)
        model_shape, item_shape = towers.model_shape, towers.item_shape
        of_models, of_items = _row_scales(self.network.start, model_shape.n_ids, item_shape.n_ids)
        model_tower, model_table = tower(model_shape, model_key, of_models)
        item_tower, item_table = tower(item_shape, item_key, of_items)
        weights = Weights(model_tower, model_table, item_tower, item_table)
        dtype = item_table.dtype
        ability, items = outputs(towers, weights, blocks)
        return PsnState(
            weights,
            first_moments(towers, weights, self._n_steps(blocks)),
            weights,
            weights,
            jnp.asarray(-jnp.inf, dtype),
            _THROWN * self._validated(blocks, ability, items)[1],
            zero,
            zero,
            zero,
            ability,
            jax.random.key_data(key),
            jnp.zeros((4, self.network.epochs), dtype),
            spec,
            priors,
        )

    def _n_steps(self, blocks: NetBlocks) -> int:
        return -(-(blocks.cells.model.shape[0] - 1) // self.network.steps[0])

    def step(self, blocks: NetBlocks, state: PsnState) -> tuple[PsnState, StepInfo]:
        """One epoch; none once all are done (then nothing moves any more)."""
        network = self.network
        is_stopped = (state.since_best >= network.patience) | (state.n_epochs >= network.epochs)
        n_best = state.n_epochs - state.since_best
        is_over = is_stopped & (not network.refit or state.n_refit >= n_best)
        return jax.lax.cond(
            is_over,
            lambda s: (s, self._rest(s)),
            lambda s: self._trained(blocks, s, is_stopped),
            state,
        )

    def _rest(self, state: PsnState) -> StepInfo:
        zero = jnp.zeros((), state.ability.dtype)
        return StepInfo(_objective(state), zero, jnp.array(False))

    def _trained(
        self, blocks: NetBlocks, state: PsnState, is_refit: Bool[Array, ""]
    ) -> tuple[PsnState, StepInfo]:
        towers = self.towers(blocks, state.spec, state.priors)
        weights, moments, ability = self._begun(towers, blocks, state, is_refit)
        key = jax.random.wrap_key_data(state.key)
        key = jax.random.fold_in(key, state.n_epochs + state.n_refit)
        weights, moments, missed = epoch(towers, weights, moments, blocks, key, ability, is_refit)
        ability, items = outputs(towers, weights, blocks)
        score, validation = self._validated(blocks, ability, items)
        # A refit has learnt the validation cells: their score says nothing any more.
        is_best = is_refit | ((score > state.best_score) & (validation < state.most_loss))
        best = jax.tree.map(lambda a, b: jnp.where(is_best, a, b), weights, state.best)
        epochs, refits = state.n_epochs, state.n_refit
        curves = jnp.where(
            is_refit,
            state.curves.at[2, refits].set(missed),
            state.curves.at[jnp.array([0, 1, 3]), epochs].set(
                jnp.stack([missed, validation, score])
            ),
        )
        one = is_refit.astype(jnp.int32)
        new = dataclasses.replace(
            state,
            weights=weights,
            moments=moments,
            best=best,
            best_score=jnp.where(is_best & ~is_refit, score, state.best_score),
            since_best=jnp.where(
                is_refit, state.since_best, jnp.where(is_best, 0, state.since_best + 1)
            ),
            n_epochs=epochs + 1 - one,
            n_refit=refits + one,
            ability=ability,
            curves=curves,
        )
        change = jnp.max(jnp.abs(ability - state.ability))
        return new, StepInfo(_objective(new), change, jnp.array(False))

    def _begun(
        self, towers: Towers, blocks: NetBlocks, state: PsnState, is_refit: Bool[Array, ""]
    ) -> tuple[Weights, Moments, Float[Array, "models dims"]]:
        """Where an epoch starts: a refit's first one where the training had started."""
        fresh = first_moments(towers, state.first, self._n_steps(blocks))
        now = (state.weights, state.moments, state.ability)
        anew = (state.first, fresh, outputs(towers, state.first, blocks)[0])
        is_first = is_refit & (state.n_refit == 0)
        return jax.tree.map(lambda a, b: jnp.where(is_first, a, b), anew, now)

    def _validated(
        self, blocks: NetBlocks, ability: Float[Array, "models dims"], items: ItemParameters
    ) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """Score of the validation cells, and their log-loss."""
        return validated(self.network.stop_by, blocks, *predicted(blocks, ability, items))

    def compile_finish(self, blocks: NetBlocks, state: PsnState) -> None:
        """Compile the estimates and their errors: one program."""
        type(self).finish.lower(self, blocks, state).compile()

    @functools.partial(jax.jit, static_argnums=0)
    def finish(self, blocks: NetBlocks, state: PsnState) -> PsnEstimates:
        """What the best towers put out, with the errors of each side given the other."""
        towers = self.towers(blocks, state.spec, state.priors)
        ability, items = outputs(towers, state.best, blocks)
        sums = sums_by_item(blocks, *predicted(blocks, ability, items))
        raw = (_with_one(ability), jnp.concatenate([items.slope, items.intercept[:, None]], axis=1))
        ability, items = _turned(ability, items)
        placed = jax.tree.map(lambda leaf: leaf[blocks.order], items)
        is_scored: Bool[Array, " models"] = ~jnp.isnan(model_accuracy(blocks.blocks))
        has_features = blocks.model_features is not None
        estimates = conditional_estimates(
            blocks.blocks,
            placed,
            ability,
            towers.item_model,
            is_scored | has_features,
            n_steps=0,
        )
        return PsnEstimates(
            estimates,
            state.curves,
            state.n_epochs,
            state.n_epochs - state.since_best,
            state.n_refit,
            (state.best.model_tower, state.best.item_tower),
            raw,
            jnp.stack(
                [
                    jnp.stack(self._validated(blocks, *outputs(towers, state.first, blocks))),
                    *by_means(self.network.stop_by, blocks),
                ]
            ),
            (sums, totals_by_model(blocks)),
        )


def _objective(state: PsnState) -> Float[Array, ""]:
    """The best score, or the newest while none is worth keeping (the driver wants it finite)."""
    newest = state.curves[3, jnp.maximum(state.n_epochs - 1, 0)]
    return jnp.where(jnp.isfinite(state.best_score), state.best_score, newest)


def _with_one(ability: Float[Array, "models dims"]) -> Float[Array, "models coordinates"]:
    return jnp.concatenate([ability, jnp.ones_like(ability[:, :1])], axis=1)


def _turned(ability: Any, items: ItemParameters) -> tuple[Any, ItemParameters]:
    """The sign in which slopes are positive in sum (more dims are turned with the frame)."""
    sign = jnp.where(jnp.sum(items.slope, axis=0) < 0, -1, 1).astype(ability.dtype)
    return ability * sign, dataclasses.replace(items, slope=items.slope * sign)

"""One epoch of minibatch training on the device: a loop over shuffled cells."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int

from irtjax.fit.item_step import ItemModel, ItemParameters, log_prior
from irtjax.fit.populations import shifted
from irtjax.model.pytree import pytree_dataclass
from irtjax.model.response import log_likelihood
from irtjax.model.spec import ModelSpec
from irtjax.nets.cells import CellTable, NetBlocks, minibatches
from irtjax.nets.settings import Network
from irtjax.nets.towers import TowerShape, item_parameters, run_tower

__all__ = ["Drawn", "Moments", "Towers", "Weights", "epoch", "first_moments", "outputs"]

# Models that answer alike are not blown apart.
_LEAST_SD = 0.1


@dataclasses.dataclass(frozen=True)
class Towers:
    """What is trained, and how (static)."""

    model_shape: TowerShape
    item_shape: TowerShape
    item_model: ItemModel
    network: Network

    @property
    def spec(self) -> ModelSpec:
        """Family and dims."""
        return self.item_model.spec


@pytree_dataclass
class Weights:
    """All weights: both towers and their tables of rows (the items' with one more, for padding)."""

    model_tower: Any
    model_table: Float[Array, "models embedding"]
    item_tower: Any
    item_table: Float[Array, "items embedding"]


@pytree_dataclass
class Moments:
    """State of Adam: of everything, or of all but the items' rows, which then have their own."""

    rest: Any
    rows: Any


@pytree_dataclass
class Drawn:
    """What an epoch draws from: weight of each cell, shares of the items' priors, their frame."""

    weight: Float[Array, " cells"]
    share: Float[Array, " items"]
    frame: tuple[Float[Array, " dims"], Float[Array, " dims"]]

    def batch(self, data: NetBlocks, places: Int[Array, " batch"]) -> CellTable:
        """The cells at these places."""
        return dataclasses.replace(data.cells.taken(places), weight=self.weight[places])


def _adam(towers: Towers, n_steps: int) -> optax.GradientTransformation:
    """Adam with the weight decay in the gradient, as PyTorch's has it."""
    network = towers.network
    rate: Any = network.steps[1]
    if network.schedule == "cosine":
        rate = optax.cosine_decay_schedule(rate, network.epochs * n_steps)
    return optax.chain(
        optax.add_decayed_weights(network.weight_decay),
        optax.scale_by_adam(),
        optax.scale_by_learning_rate(rate),
    )


def _updates(adam: optax.GradientTransformation, gradient: Any, state: Any, weights: Any) -> Any:
    """optax mixes whole numbers and fractions, which strict promotion refuses."""
    with jax.numpy_dtype_promotion("standard"):
        return adam.update(gradient, state, weights)


def first_moments(towers: Towers, weights: Weights, n_steps: int) -> Moments:
    """Before the first step."""
    if towers.network.updates == "dense":
        return Moments(_adam(towers, n_steps).init(weights), None)
    table = weights.item_table
    rest = _adam(towers, n_steps).init(_without_rows(weights))
    # Each row counts its own steps, for the correction of moments that started at 0.
    count = jnp.zeros((len(table), 1), jnp.int32)
    return Moments(rest, (jnp.zeros_like(table), jnp.zeros_like(table), count))


def _without_rows(weights: Weights) -> Weights:
    return dataclasses.replace(weights, item_table=jnp.zeros((0,), weights.item_table.dtype))


def outputs(
    towers: Towers, weights: Weights, data: NetBlocks
) -> tuple[Float[Array, "models dims"], ItemParameters]:
    """Abilities of all models and parameters of all items."""
    row = weights.model_table
    if data.model_features is not None:
        answers = jnp.zeros_like(row[:, 0]).at[data.cells.model].add(data.cells.weight)
        row = jnp.where(answers[:, None] > 0, row, 0)
    ability = run_tower(towers.model_shape, weights.model_tower, row, data.model_features)
    # Ids never answered were never trained: what is known of them is their features.
    row = jnp.where(data.share[1][:, None] > 0, weights.item_table[:-1], 0)
    out = run_tower(towers.item_shape, weights.item_tower, row, data.item_features)
    return ability, item_parameters(towers.spec, out, towers.network.start)


def _loss(
    towers: Towers,
    weights: Weights,
    row: Float[Array, "batch embedding"],
    data: NetBlocks,
    batch: CellTable,
    drawn: Drawn,
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Negative log-likelihood and log-prior a unit of weight; and the likelihood's part alone.

    Priors are of items for abilities of mean 0 and sd 1, `drawn.frame` is what they are: else the
    abilities would spread, the slopes shrink, and the priors say nothing.
    """
    features = None if data.item_features is None else data.item_features[batch.item]
    out = run_tower(towers.item_shape, weights.item_tower, row, features)
    items = item_parameters(towers.spec, out, towers.network.start)
    features = None if data.model_features is None else data.model_features[batch.model]
    looked_up = weights.model_table[batch.model]
    ability = run_tower(towers.model_shape, weights.model_tower, looked_up, features)
    logit = jnp.sum(items.slope * ability, axis=1) + items.intercept
    total = jnp.maximum(jnp.sum(batch.weight), 1)
    missed = (
        -jnp.sum(batch.weight * log_likelihood(logit, batch.response, items.asymptotes)) / total
    )
    share = jnp.where(batch.weight > 0, drawn.share[batch.item], 0)
    mean, sd = drawn.frame
    prior = jnp.sum(share * log_prior(towers.item_model, shifted(items, mean, sd))) / total
    return missed - prior, missed


def epoch(
    towers: Towers,
    weights: Weights,
    moments: Moments,
    data: NetBlocks,
    key: jax.Array,
    ability: Float[Array, "models dims"],
    is_refit: Bool[Array, ""],
) -> tuple[Weights, Moments, Float[Array, ""]]:
    """One pass over the training cells in a new order; also their mean log-loss on the way.

    `ability` is of all models before it: it gives the frame of the items' priors. A refit takes
    all cells, with the same program: before it the validation cells have no weight.
    """
    drawn = Drawn(
        jnp.where(is_refit, data.cells.weight, data.cells.weight * data.is_training),
        jnp.where(is_refit, data.share[1], data.share[0]),
        (jnp.mean(ability, axis=0), jnp.maximum(jnp.std(ability, axis=0), _LEAST_SD)),
    )
    batches, n_steps = minibatches(key, drawn.weight[:-1] > 0, towers.network.steps[0])
    adam = _adam(towers, len(batches))
    one = _dense_step if towers.network.updates == "dense" else _touched_step

    def step(k: Array, carry: tuple[Weights, Moments, Array]) -> tuple[Weights, Moments, Array]:
        weights, moments, total = carry
        weights, moments, missed = one(towers, adam, weights, moments, data, batches[k], drawn)
        return weights, moments, total + missed

    start = (weights, moments, jnp.zeros((), weights.item_table.dtype))
    weights, moments, total = jax.lax.fori_loop(0, n_steps, step, start)
    return weights, moments, total / n_steps.astype(total.dtype)


def _dense_step(
    towers: Towers,
    adam: optax.GradientTransformation,
    weights: Weights,
    moments: Moments,
    data: NetBlocks,
    places: Int[Array, " batch"],
    drawn: Drawn,
) -> tuple[Weights, Moments, Float[Array, ""]]:
    batch = drawn.batch(data, places)

    def loss(weights: Weights) -> tuple[Array, Array]:
        return _loss(towers, weights, weights.item_table[batch.item], data, batch, drawn)

    gradient, missed = jax.grad(loss, has_aux=True)(weights)
    updates, rest = _updates(adam, gradient, moments.rest, weights)
    return optax.apply_updates(weights, updates), Moments(rest, None), missed


def _touched_step(
    towers: Towers,
    adam: optax.GradientTransformation,
    weights: Weights,
    moments: Moments,
    data: NetBlocks,
    places: Int[Array, " batch"],
    drawn: Drawn,
) -> tuple[Weights, Moments, Float[Array, ""]]:
    """Adam on the rows of the batch's items only; the others stay where they are.

    optax's Adam works on the rows taken out; with 41,871 items a dense update of all rows is two
    thirds of the work of a step.
    """
    batch = drawn.batch(data, places)
    table, size = weights.item_table, len(places)
    # Filled up with the row past the items.
    touched, place = jnp.unique(
        batch.item, size=size, fill_value=len(table) - 1, return_inverse=True
    )
    rows = table[touched]

    def loss(rest: Weights, rows: Array) -> tuple[Array, Array]:
        return _loss(towers, rest, rows[place], data, batch, drawn)

    without = _without_rows(weights)
    (of_rest, of_rows), missed = jax.grad(loss, argnums=(0, 1), has_aux=True)(without, rows)
    updates, rest = _updates(adam, of_rest, moments.rest, without)
    moved = optax.apply_updates(without, updates)
    mean, square, count = (leaf[touched] for leaf in moments.rows)
    decay, scale, rate = _row_states(moments.rest, mean, square, count)
    row_updates, (_, scale, _) = _updates(adam, of_rows, (decay, scale, rate), rows)
    written = (scale.mu, scale.nu, scale.count)
    new_rows = tuple(
        leaf.at[touched].set(value) for leaf, value in zip(moments.rows, written, strict=True)
    )
    table = table.at[touched].set(optax.apply_updates(rows, row_updates))
    return dataclasses.replace(moved, item_table=table), Moments(rest, new_rows), missed


def _row_states(rest: Any, mean: Array, square: Array, count: Array) -> tuple[Any, Any, Any]:
    """The optimiser's state for rows: their own moments and counts, the common learning rate."""
    decay, _, rate = rest
    return decay, optax.ScaleByAdamState(count, mean, square), rate

"""How well towers predict responses, and how well the plainest predictors do: means."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from irtjax.fit.item_step import ItemParameters
from irtjax.model.response import log_likelihood, response_probability
from irtjax.nets.cells import NetBlocks
from irtjax.nets.scores import stopping_score
from irtjax.nets.settings import StopBy

__all__ = ["by_means", "predicted", "sums_by_item", "totals_by_model", "validated"]


def predicted(
    data: NetBlocks, ability: Float[Array, "models dims"], items: ItemParameters
) -> tuple[Float[Array, " cells"], Float[Array, " cells"]]:
    """Probability of a right response in each cell, and the log-likelihood of what is there."""
    cells = data.cells
    at = jax.tree.map(lambda leaf: leaf[cells.item], items)
    logit = jnp.sum(at.slope * ability[cells.model], axis=1) + at.intercept
    likelihood = log_likelihood(logit, cells.response, at.asymptotes)
    return response_probability(logit, at.asymptotes), likelihood


def validated(
    by: StopBy,
    data: NetBlocks,
    probability: Float[Array, " cells"],
    likelihood: Float[Array, " cells"],
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Score of the validation cells (higher is better), and their log-loss."""
    cells = data.cells
    weight = cells.weight * (1 - data.is_training)
    score, validation = (
        stopping_score(how, probability, likelihood, cells.response, weight)
        for how in (by, "log_loss")
    )
    return score, -validation


def by_means(by: StopBy, data: NetBlocks) -> list[Float[Array, "2"]]:
    """`validated` by the mean of the training cells, by each model's and by each item's."""
    cells, found = data.cells, []
    for index, size in (
        (jnp.zeros_like(cells.model), 1),
        (cells.model, data.blocks.n_models),
        (cells.item, data.share.shape[1]),
    ):
        mean = _means(data, index, size)[index]
        likelihood = cells.response * jnp.log(mean) + (1 - cells.response) * jnp.log1p(-mean)
        found.append(jnp.stack(validated(by, data, mean, likelihood)))
    return found


def _means(data: NetBlocks, index: Int[Array, " cells"], size: int) -> Float[Array, " size"]:
    """Mean training response of each index.

    Half an answer of each kind more: a mean of 0 or 1 would lose infinitely much.
    """
    weight = data.cells.weight * data.is_training
    total, right = _totals(index, size, weight, data.cells.response)
    return (right + 0.5) / (total + 1)


def totals_by_model(data: NetBlocks) -> Float[Array, "2 models"]:
    """Weight of each model's cells, and of the right ones."""
    cells = data.cells
    return _totals(cells.model, data.blocks.n_models, cells.weight, cells.response)


def _totals(
    index: Int[Array, " cells"], size: int, weight: Float[Array, " cells"], response: Array
) -> Float[Array, "2 size"]:
    empty = jnp.zeros((2, size), weight.dtype)
    return empty.at[:, index].add(jnp.stack([weight, weight * response]))


def sums_by_item(
    data: NetBlocks, probability: Float[Array, " cells"], likelihood: Float[Array, " cells"]
) -> Float[Array, "5 items"]:
    """Sums over each item's cells: weight, response, probability, its variance, log-likelihood.

    By item, so that they are exact in float32 also of more cells than it counts.
    """
    cells = data.cells
    variance = probability * (1 - probability)
    each = (jnp.ones_like(probability), cells.response, probability, variance, likelihood)
    empty = jnp.zeros((len(each), data.share.shape[1]), probability.dtype)
    return empty.at[:, cells.item].add(cells.weight * jnp.stack(each))

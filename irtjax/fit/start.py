"""Where the estimators start: singular vectors of the centred matrix, means of the items."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from irtjax.data.blocks import Blocks
from irtjax.fit.blockwise import BlockSums, BlockView, scan_blocks
from irtjax.fit.cell_index import (
    gathered,
    spread_out,
    sum_by_slot,
    sum_over_items,
    sum_over_models,
    to_cells,
    total_over_models,
)
from irtjax.fit.frame import rescale, standardise
from irtjax.fit.hyperparameters import ItemDistribution
from irtjax.fit.item_pass import ItemPosteriors, prior_group
from irtjax.fit.packed import pack
from irtjax.model.priors import Priors
from irtjax.model.response import Asymptotes
from irtjax.model.spec import ModelSpec

__all__ = [
    "free_coordinates",
    "model_accuracy",
    "start_abilities",
    "start_asymptotes",
    "start_distribution",
    "start_loading_abilities",
    "start_posteriors",
]

# Up to this many models the models x models product is formed at once; above, it is applied to
# a few vectors again and again (subspace iteration).
_MOST_MODELS_EXACT = 512
_EXTRA_VECTORS = 4
_ITERATIONS = 5
# More vectors than this are not gathered cell by cell: the block is spread out for one product.
_MOST_GATHERED = 32
# Eigenvalues below this many times `sqrt(models)` epsilons of the largest are rounding.
_ROUNDING = 4.0


def free_coordinates(spec: ModelSpec) -> tuple[bool, ...]:
    """Which coordinates of `(slope, intercept)` are an item's own: all, or (1PL) the intercept."""
    return (*(not spec.has_common_slope for _ in range(spec.dims)), True)


def start_abilities(
    blocks: Blocks, dims: int, key: jax.Array
) -> tuple[Float[Array, "models dims"], Bool[Array, " models"]]:
    """Leading left singular vectors of the item-centred matrix, signed to rise with accuracy.

    Returns:
        Abilities with mean 0 and covariance I (0 in dims that the data do not have, all of them
        where all models answered alike), and which models have any response.
    """
    dtype = jnp.zeros(()).dtype
    n_models = blocks.n_models
    if n_models <= _MOST_MODELS_EXACT:
        product, right, seen, size = _apply(blocks, jnp.eye(n_models, dtype=dtype))
        values, vectors = jnp.linalg.eigh(product)
    else:
        width = min(n_models, dims + _EXTRA_VECTORS)
        product = jax.random.normal(key, (n_models, width), dtype)
        zero = jnp.zeros(n_models, dtype)

        def iterate(_: int, carry: tuple[Array, ...]) -> tuple[Array, ...]:
            vectors = jnp.linalg.qr(carry[1])[0]
            return vectors, *_apply(blocks, vectors)

        # One loop with everything in its carry: a pass outside it would be compiled once more.
        start = (product, product, zero, zero, zero[0])
        vectors, product, right, seen, size = jax.lax.fori_loop(0, _ITERATIONS, iterate, start)
        values, rotation = jnp.linalg.eigh(vectors.T @ product)
        vectors = vectors @ rotation
    values, vectors = values[::-1][:dims], vectors[:, ::-1][:, :dims]
    # Of what models have not in common there may be less than dims: the other vectors are any that
    # are orthogonal, and would tell models with the same responses apart.
    epsilon = jnp.finfo(dtype).eps
    rounding = _ROUNDING * n_models**0.5 * epsilon * values[0] + size * epsilon**1.5
    vectors = jnp.where(values > rounding, vectors * n_models**0.5, 0)
    is_scored = seen > 0
    accuracy = jnp.where(is_scored, right / jnp.maximum(seen, 1), 0)
    centre = jnp.sum(accuracy) / jnp.maximum(jnp.sum(is_scored).astype(dtype), 1)
    away = jnp.where(is_scored, accuracy - centre, 0)
    sign = jnp.where(away @ vectors < 0, -1, 1).astype(dtype)
    return standardise(vectors * sign, is_scored)[0], is_scored


def start_loading_abilities(
    blocks: Blocks, is_loading: Float[Array, "groups dims"], has_general: bool
) -> tuple[Float[Array, "models dims"], Bool[Array, " models"]]:
    """Each dim starts at the models' accuracy on the items that load on it, of groups of items.

    Returns:
        Abilities with mean 0 and sd 1 a dim, and which models have any response.
    """

    def visit(view: BlockView, _: None, __: None) -> tuple[BlockSums, None]:
        weight = view.data.weight
        one = jnp.ones((1, view.is_item.shape[0]), weight.dtype)
        right, seen = (
            sum_by_slot(view.index, view.in_slot, cells, one)[:, 0]
            for cells in (weight * view.data.response, weight)
        )
        return BlockSums(None, (right, seen)), None

    dtype = jnp.zeros(()).dtype
    sums, _ = scan_blocks(visit, blocks, None, None, dtype)
    right, seen = (of_groups.T @ is_loading for of_groups in sums.by_group)
    mean = jnp.sum(right, axis=0) / jnp.maximum(jnp.sum(seen, axis=0), 1)
    is_scored = jnp.sum(sums.by_group[1], axis=0) > 0
    accuracy = jnp.where(seen > 0, right / jnp.maximum(seen, 1), mean)
    return rescale(accuracy, is_scored, has_general)[0], is_scored


def _apply(
    blocks: Blocks, vectors: Float[Array, "models width"]
) -> tuple[
    Float[Array, "models width"], Float[Array, " models"], Float[Array, " models"], Float[Array, ""]
]:
    """`C C' vectors` with C the item-centred matrix, each model's right and seen weight.

    And the sum of the squared weights, of which C's squares are a part.
    """

    def visit(view: BlockView, _: None, vectors: Array) -> tuple[BlockSums, None]:
        weight, index = view.data.weight, view.index
        right = weight * view.data.response
        mean = total_over_models(index, right) / jnp.maximum(total_over_models(index, weight), 1)
        centred = weight * (view.data.response - to_cells(index, mean))
        if n_vectors > _MOST_GATHERED:
            centred, index = spread_out(index, centred), None
        of_items = sum_over_models(index, gathered(index, vectors), centred)
        product = sum_over_items(index, centred, of_items)
        of_models = _over_items(view, right), _over_items(view, weight)
        return BlockSums((product, *of_models, jnp.sum(weight**2)), None), None

    n_vectors = vectors.shape[1]
    sums, _ = scan_blocks(visit, blocks, None, vectors, vectors.dtype)
    product, right, seen, size = sums.total
    return product, right, seen, size


def _over_items(view: BlockView, cells: Array) -> Float[Array, " models"]:
    one = jnp.ones((1, view.is_item.shape[0]), cells.dtype)
    return sum_over_items(view.index, cells, one)[:, 0]


@jax.jit
def model_accuracy(blocks: Blocks) -> Float[Array, " models"]:
    """Weighted mean response of each model, NaN without responses."""

    def visit(view: BlockView, _: None, __: None) -> tuple[BlockSums, None]:
        right = _over_items(view, view.data.weight * view.data.response)
        return BlockSums((right, _over_items(view, view.data.weight)), None), None

    sums, _ = scan_blocks(visit, blocks, None, None, jnp.zeros(()).dtype)
    right, seen = sums.total
    return jnp.where(seen > 0, right / jnp.where(seen > 0, seen, 1), jnp.nan)


def start_distribution(n_groups: int, spec: ModelSpec, n_components: int) -> ItemDistribution:
    """The same wide distribution for every group; components spread from easy to hard.

    Components also start with different widths and slopes: identical ones would stay identical.
    """
    dtype = jnp.zeros(()).dtype
    size = spec.dims + 1
    mean = np.zeros((n_components, size))
    mean[:, : spec.dims] = 1.0 if spec.has_common_slope else 0.0
    scale = np.ones(n_components)
    if n_components > 1:
        spread = np.linspace(-1, 1, n_components)
        mean[:, -1] = 2 * spread
        if not spec.has_common_slope:
            phase = np.arange(1, n_components + 1)[:, None] * np.arange(1, size)[None]
            mean[:, : spec.dims] = 0.4 * np.cos(2.4 * phase)
        scale = np.linspace(0.4, 1.0, n_components)
    free = np.array(free_coordinates(spec), float)
    covariance = np.eye(size) * free * scale[:, None, None]
    shape = (n_groups, n_components)
    return ItemDistribution(
        jnp.broadcast_to(jnp.asarray(mean, dtype), (*shape, size)),
        jnp.broadcast_to(jnp.asarray(covariance, dtype), (*shape, size, size)),
        jnp.full(shape, -np.log(n_components), dtype),
    )


def start_posteriors(
    blocks: Blocks, distribution: ItemDistribution, is_free: tuple[bool, ...]
) -> ItemPosteriors:
    """Every item at its prior's slopes, with the logit of its mean response as intercept."""
    dtype = distribution.mean.dtype
    n_components = distribution.mean.shape[1]
    unit = pack(jnp.diag(jnp.asarray(is_free, dtype))[None])

    def visit(view: BlockView, _: None, prior_mean: Array) -> tuple[BlockSums, ItemPosteriors]:
        right = total_over_models(view.index, view.data.weight * view.data.response)
        seen = total_over_models(view.index, view.data.weight)
        logit = jnp.log(right + 0.5) - jnp.log(seen - right + 0.5)
        mean = (
            prior_mean[prior_group(view.group, prior_mean.T)]
            .transpose(1, 2, 0)
            .at[:, -1]
            .set(logit)
        )
        covariance = jnp.broadcast_to(unit, (n_components, unit.shape[0], logit.shape[0]))
        share = jnp.full((n_components, logit.shape[0]), 1 / n_components, dtype)
        return BlockSums(None, None), ItemPosteriors(mean, covariance, share)

    _, items = scan_blocks(visit, blocks, None, distribution.mean, dtype)
    return items


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

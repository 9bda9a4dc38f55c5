"""The mathematics of one block: Gaussian posteriors of the random side, statistics of the fixed.

Notation of DESIGN 4.1: each item is `z_j = (slope_j, intercept_j)` with posterior `N(m_j, V_j)`
and prior `N(mu_g, Sigma_g)`; each model is `x_i = (theta_i, 1)`, with effects `e_ig`. A block's
arrays are `[coordinate, item]`: the item axis last, so that every operation is a small matrix
product or a vector operation over the items. What touches the cells goes through
`irtjax.fit.cell_index`: the mathematics is the same for dense and sparse blocks.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from irtjax.fit.cell_index import (
    CellIndex,
    ModelTable,
    at_cells,
    gathered,
    gathered_products,
    gathered_sum,
    sum_applied_over_items,
    sum_by_slot,
    sum_over_items,
    sum_over_models,
    to_cells,
    total_over_models,
)
from irtjax.fit.expectations import expected_logistic, expected_softplus
from irtjax.fit.packed import (
    pair_index,
    positive_definite_inverse,
    products,
    unpack,
    unpack_index,
)
from irtjax.model.pytree import pytree_dataclass, static_field
from irtjax.model.quadrature import normal_expectation
from irtjax.model.response import Asymptotes, CellDerivatives, cell_derivatives, log_likelihood

__all__ = [
    "BlockData",
    "EffectStatistics",
    "FixedSide",
    "ItemPrior",
    "ModelStatistics",
    "Posterior",
    "effect_statistics",
    "evidence",
    "expected_cells",
    "logit_moments",
    "model_statistics",
    "pinned",
    "update_posterior",
]

# One posterior mean may move by this much a step (Euclidean, in slopes and logits): without a cap
# a Newton step from a poor start overshoots and the whole fit follows it.
_LONGEST_STEP = 2.0


@pytree_dataclass
class BlockData:
    """Responses of one block as numbers: value and weight, both 0 where missing.

    Rows are models and columns items, or (sparse) width and lanes.
    """

    response: Float[Array, "rows columns"]
    weight: Float[Array, "rows columns"]


@pytree_dataclass
class FixedSide:
    """The models as one block sees them: `(theta, 1)`, the effect on each cell, the asymptotes.

    Abilities and effects may have a posterior: `spread` is the packed covariance of `(theta, 1)`,
    `offset_variance` the variance of each cell's effect. Without, they are known. `index` says
    where the cells of a sparse block are; there the last coordinate must be 1.
    """

    design: Float[Array, "models coordinates"]
    offset: Float[Array, "rows columns"] | None
    asymptotes: Asymptotes | None
    n_nodes: int = static_field()
    spread: Float[Array, "models pairs"] | None = None
    offset_variance: Float[Array, "rows columns"] | None = None
    index: CellIndex | None = None


@pytree_dataclass
class ItemPrior:
    """Prior of each item of a block: mean, packed precision, log-determinant of the covariance.

    Pinned coordinates (not `is_free`) have precision 0 here: they stay at their mean.
    """

    mean: Float[Array, "coordinates items"]
    precision: Float[Array, "pairs items"]
    log_determinant: Float[Array, " items"]
    is_free: tuple[bool, ...] = static_field()


@pytree_dataclass
class Posterior:
    """Normal posterior of each item of a block: mean and packed covariance."""

    mean: Float[Array, "coordinates items"]
    covariance: Float[Array, "pairs items"]


@pytree_dataclass
class ModelStatistics:
    """Score and information of the abilities, summed over items."""

    score: Float[Array, "models dims"]
    information: Float[Array, "models pairs"]


@pytree_dataclass
class EffectStatistics:
    """Score and information of the effects, and their coupling with the abilities, by group."""

    score: Float[Array, "groups models"]
    information: Float[Array, "groups models"]
    cross: Float[Array, "groups dims models"]


def logit_moments(
    fixed: FixedSide, posterior: Posterior
) -> tuple[Float[Array, "rows columns"], Float[Array, "rows columns"]]:
    """Mean and variance of each cell's logit under all posteriors.

    The variance is `x' V x + m' W m + tr(V W)`, with W the covariance of x, and the effect's.
    """
    index = fixed.index
    design = _design(fixed)
    mean = at_cells(index, design, posterior.mean)
    if fixed.offset is not None:
        mean = mean + fixed.offset
    form = gathered_products(design, is_form=True)
    variance = at_cells(index, form, posterior.covariance)
    if fixed.spread is not None:
        rows, columns = pair_index(fixed.design.shape[1])
        twice = np.where(rows == columns, 1.0, 2.0).astype(fixed.spread.dtype)
        second_moment = posterior.covariance + products(posterior.mean.T).T
        variance = variance + at_cells(index, _spread(fixed), second_moment * twice[:, None])
    if fixed.offset_variance is not None:
        variance = variance + fixed.offset_variance
    return mean, jnp.maximum(variance, 0)


def expected_cells(data: BlockData, fixed: FixedSide, posterior: Posterior) -> CellDerivatives:
    """Expected derivatives of every cell's log-likelihood under the posterior, times its weight."""
    mean, variance = logit_moments(fixed, posterior)
    if fixed.asymptotes is None:
        known, curvature = expected_logistic(mean, variance, fixed.n_nodes)
        expected = CellDerivatives(data.response - known, curvature, None, None)
    else:
        expected = normal_expectation(
            lambda logit: cell_derivatives(logit, data.response, _at_lanes(fixed)),
            mean,
            variance,
            fixed.n_nodes,
        )
    weighted = jax.tree.map(lambda value: data.weight * value, expected)
    # Of sparse blocks every sum is a loop of its own, into which the compiler would copy the
    # expectations (a matrix product takes no such copy).
    return weighted if fixed.index is None else jax.lax.optimization_barrier(weighted)


def evidence(
    data: BlockData,
    fixed: FixedSide,
    prior: ItemPrior,
    posterior: Posterior,
    met: Posterior | None = None,
) -> Float[Array, " items"]:
    """Each item's part of the evidence bound: expected log-likelihood minus KL to the prior.

    `met` are the items as models meet them, where these are not the posteriors (items held).
    """
    mean, variance = logit_moments(fixed, posterior if met is None else met)
    if fixed.asymptotes is None:
        # log P - log(1 - P) is the logit.
        cells = data.response * mean - expected_softplus(mean, variance, fixed.n_nodes)
    else:
        cells = normal_expectation(
            lambda logit: log_likelihood(logit, data.response, _at_lanes(fixed)),
            mean,
            variance,
            fixed.n_nodes,
        )
    return total_over_models(fixed.index, data.weight * cells) - _divergence(prior, posterior)


def update_posterior(
    data: BlockData, fixed: FixedSide, prior: ItemPrior, posterior: Posterior
) -> Posterior:
    """One damped Newton step of every item's posterior.

    `V^-1 = Sigma^-1 + sum_i E[-l''] (x x' + W)` and
    `m += V (sum_i E[l'] x - E[-l''] W m - Sigma^-1 (m - mu))`.
    With asymptotes `E[-l'']` can be negative; where the sum is then not positive definite, the
    positive part of the cells takes its place (a preconditioner: the gradient stays exact).
    """
    size = len(prior.is_free)
    cells = expected_cells(data, fixed, posterior)
    index, design = fixed.index, _design(fixed)
    outer = gathered_products(design)
    if fixed.spread is not None:
        outer = gathered_sum(outer, _spread(fixed))
    curvature = sum_over_models(index, outer, cells.negative_second)
    inverse, _, is_positive = positive_definite_inverse(
        pinned(prior.precision + curvature, prior.is_free), size
    )
    if fixed.asymptotes is not None:
        curvature = sum_over_models(index, outer, jnp.maximum(cells.negative_second, 0))
        fallback, _, _ = positive_definite_inverse(
            pinned(prior.precision + curvature, prior.is_free), size
        )
        inverse = jnp.where(is_positive, inverse, fallback)
    covariance = pinned(inverse, prior.is_free, diagonal=0.0)
    pull = _times(prior.precision, posterior.mean - prior.mean, size)
    gradient = sum_over_models(index, design, cells.first)
    if fixed.spread is not None:
        spread = sum_over_models(index, _spread(fixed), cells.negative_second)
        gradient -= _times(spread, posterior.mean, size)
    step = _times(covariance, gradient - pull, size)
    length = jnp.sqrt(jnp.sum(step**2, axis=0))
    step = step * (_LONGEST_STEP / jnp.maximum(length, _LONGEST_STEP))
    return Posterior(posterior.mean + step, covariance)


def model_statistics(
    cells: CellDerivatives,
    fixed: FixedSide,
    posterior: Posterior,
    n_estimated: int | None = None,
) -> ModelStatistics:
    """Score and information of the abilities from one block's expected cells.

    `score_i = sum_j E[l'] m - E[-l''] (V x_i)` and `information_i = sum_j E[-l''] (m m' + V)`, both
    over the slope coordinates (the first `n_estimated` of the fixed side; its last one is known
    without). Of `E[-l'']` only the positive part enters the information: it is
    what the Newton step divides by.
    """
    size = fixed.design.shape[1]
    dims = size - 1 if n_estimated is None else n_estimated
    slope = posterior.mean[:dims]
    rows, columns = pair_index(dims)
    position = unpack_index(size)
    second_moment = slope[rows] * slope[columns] + posterior.covariance[position[rows, columns]]
    curvature = jnp.maximum(cells.negative_second, 0)
    spread = posterior.covariance[position[:dims]]
    score = sum_over_items(fixed.index, cells.first, slope) - sum_applied_over_items(
        fixed.index, cells.negative_second, spread, _design(fixed)
    )
    return ModelStatistics(score, sum_over_items(fixed.index, curvature, second_moment))


def effect_statistics(
    cells: CellDerivatives,
    in_slot: Float[Array, "slots items"],
    posterior: Posterior,
    index: CellIndex | None = None,
) -> EffectStatistics:
    """Score, information and coupling of the effects of each slot's group."""
    slope = posterior.mean[:-1]
    one = jnp.ones_like(slope[:1])
    curvature = jnp.maximum(cells.negative_second, 0)
    return EffectStatistics(
        sum_by_slot(index, in_slot, cells.first, one)[:, 0],
        sum_by_slot(index, in_slot, curvature, one)[:, 0],
        sum_by_slot(index, in_slot, curvature, slope),
    )


def _design(fixed: FixedSide) -> ModelTable:
    known = (None,) * (fixed.design.shape[1] - 1) + (1.0,)
    return gathered(fixed.index, fixed.design, known)


def _spread(fixed: FixedSide) -> ModelTable:
    """Covariances of `(theta, 1)`: 0 with the last coordinate."""
    assert fixed.spread is not None
    last = fixed.design.shape[1] - 1
    rows, columns = pair_index(last + 1)
    known = tuple(0.0 if last in (a, b) else None for a, b in zip(rows, columns, strict=True))
    return gathered(fixed.index, fixed.spread, known)


def _at_lanes(fixed: FixedSide) -> Asymptotes | None:
    return jax.tree.map(lambda leaf: to_cells(fixed.index, leaf), fixed.asymptotes)


def _divergence(prior: ItemPrior, posterior: Posterior) -> Float[Array, " items"]:
    """`KL(N(m, V) || N(mu, Sigma))` of each item, over the free coordinates."""
    size = len(prior.is_free)
    rows, columns = pair_index(size)
    twice = np.where(rows == columns, 1.0, 2.0).astype(prior.mean.dtype)[:, None]
    _, log_determinant, _ = positive_definite_inverse(
        pinned(posterior.covariance, prior.is_free), size
    )
    trace = jnp.sum(twice * prior.precision * posterior.covariance, axis=0)
    away = posterior.mean - prior.mean
    distance = jnp.sum(away * _times(prior.precision, away, size), axis=0)
    n_free = sum(prior.is_free)
    return 0.5 * (trace + distance - n_free + prior.log_determinant - log_determinant)


def _times(
    packed: Float[Array, "pairs items"], vector: Float[Array, "coordinates items"], size: int
) -> Float[Array, "coordinates items"]:
    return jnp.sum(unpack(packed, size) * vector[None], axis=1)


def pinned(
    packed: Float[Array, "pairs items"], is_free: tuple[bool, ...], diagonal: float = 1.0
) -> Float[Array, "pairs items"]:
    """Take pinned coordinates out: 0 beside the diagonal, `diagonal` on it."""
    if all(is_free):
        return packed
    rows, columns = pair_index(len(is_free))
    keep = np.array([is_free[a] and is_free[b] for a, b in zip(rows, columns, strict=True)])
    fill = np.where(rows == columns, diagonal, 0.0).astype(packed.dtype)
    return jnp.where(keep[:, None], packed, fill[:, None])

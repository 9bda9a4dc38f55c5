"""One pass with normal posteriors of the models: the kernel with the roles of the sides swapped.

Blocks are of the transposed matrix. The random side is `(theta_i, 1)`, its last coordinate pinned;
the fixed side is `(slope_j, intercept_j)`, all of it estimated. Everything else is the kernel of
`marginal-items` (DESIGN 4): expectations over one logit a cell cost the same in any number of dims.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from irtjax.data.blocks import Blocks
from irtjax.fit.blockwise import BlockSums, BlockView, scan_blocks
from irtjax.fit.hyperparameters import packed_precision
from irtjax.fit.item_step import ItemDerivatives, ItemModel, ItemParameters
from irtjax.fit.kernel import (
    FixedSide,
    ItemPrior,
    ModelStatistics,
    Posterior,
    evidence,
    expected_cells,
    logit_moments,
    model_statistics,
    update_posterior,
)
from irtjax.fit.model_posteriors import ModelPosteriors, at_most_prior
from irtjax.fit.node_pass import answers
from irtjax.fit.packed import products, unpack
from irtjax.fit.populations import PopulationMoments, Populations
from irtjax.model.pytree import pytree_dataclass
from irtjax.model.quadrature import normal_expectation
from irtjax.model.response import CellDerivatives, response_probability

__all__ = [
    "VariationalPass",
    "score_products",
    "start_posteriors",
    "variational_pass",
    "variational_posteriors",
]


@pytree_dataclass
class VariationalPass:
    """Sums of a pass: the bound, and what the M-steps need (`answers` with asymptotes only)."""

    bound: Float[Array, ""]
    derivatives: ItemDerivatives
    answers: Float[Array, "items four"] | None
    moments: PopulationMoments


def start_posteriors(blocks: Blocks, dims: int, dtype: Any) -> Posterior:
    """Every model at the standard normal, blocks first."""
    shape = (blocks.n_blocks, 1, blocks.items_per_block)
    mean = jnp.concatenate([jnp.zeros(shape, dtype)] * dims + [jnp.ones(shape, dtype)], axis=1)
    unit = jnp.zeros((dims + 1, dims + 1), dtype).at[jnp.arange(dims), jnp.arange(dims)].set(1)
    packed = products(jnp.zeros((1, dims + 1), dtype))[0] + unit[jnp.tril_indices(dims + 1)]
    covariance = jnp.broadcast_to(packed[:, None], (shape[0], len(packed), shape[2]))
    return Posterior(mean, covariance)


def variational_pass(
    blocks: Blocks,
    multiplicity: Float[Array, "blocks models"],
    items: ItemParameters,
    populations: Populations,
    posteriors: Posterior,
    n_nodes: int,
) -> tuple[VariationalPass, Posterior]:
    """Renew every model's posterior by one Newton step, then sum the statistics at the new ones.

    Args:
        blocks: of the transposed matrix, grouped by population.
        multiplicity: how many models share each pattern of responses; 0 for padding.
        items: current items.
        populations: current (normal) distributions of ability.
        posteriors: of the models at the last pass, blocks first.
        n_nodes: Gauss-Hermite nodes of the expectations over a logit.
    """

    def visit(view: BlockView, per_block: Any, context: Any) -> tuple[BlockSums, Posterior]:
        count, old = per_block
        items, populations = context
        fixed, prior = _sides(view, items, populations, n_nodes)
        renewed = update_posterior(view.data, fixed, prior, old)
        bound = jnp.sum(count * evidence(view.data, fixed, prior, renewed))
        cells = expected_cells(view.data, fixed, renewed)
        cells = jax.tree.map(lambda leaf: count * leaf, cells)
        size = fixed.design.shape[1]
        statistics = model_statistics(cells, fixed, renewed, size)
        counted = _answers(view, cells, count)
        return BlockSums((bound, statistics, counted), _moments(view, renewed, count)), renewed

    per_block, context = (multiplicity, posteriors), (items, populations)
    sums, renewed = scan_blocks(visit, blocks, per_block, context, items.slope.dtype)
    bound, statistics, counted = sums.total
    return VariationalPass(bound, _as_derivatives(statistics), counted, sums.by_group), renewed


def _as_derivatives(statistics: ModelStatistics) -> ItemDerivatives:
    return ItemDerivatives(statistics.score.T, statistics.information.T)


def _sides(
    view: BlockView, items: ItemParameters, populations: Populations, n_nodes: int
) -> tuple[FixedSide, ItemPrior]:
    dims = items.slope.shape[1]
    is_free = (*(True for _ in range(dims)), False)
    design = jnp.concatenate([items.slope, items.intercept[:, None]], axis=1)
    asymptotes = jax.tree.map(lambda leaf: leaf[:, None], items.asymptotes)
    population = jnp.minimum(view.group, populations.mean.shape[0] - 1)
    covariance = populations.factor @ populations.factor.swapaxes(1, 2)
    padded = jnp.pad(covariance, ((0, 0), (0, 1), (0, 1)))
    precision, log_determinant = packed_precision(padded, is_free)
    mean = jnp.concatenate([populations.mean, jnp.ones_like(populations.mean[:, :1])], axis=1)
    prior = ItemPrior(
        mean[population].T, precision[population].T, log_determinant[population], is_free
    )
    return FixedSide(design, None, asymptotes, n_nodes), prior


def _answers(
    view: BlockView, cells: CellDerivatives, count: Float[Array, " models"]
) -> Float[Array, "items four"] | None:
    if cells.known_right is None or cells.known_wrong is None:
        return None
    right, wrong = answers(view)
    each = [cells.known_right, cells.known_wrong, right * count, wrong * count]
    return jnp.stack([jnp.sum(one, axis=1) for one in each], axis=1)


def _moments(
    view: BlockView, posterior: Posterior, count: Float[Array, " models"]
) -> PopulationMoments:
    size = posterior.mean.shape[0]
    mean = posterior.mean[:-1].T
    spread = unpack(posterior.covariance, size)[:-1, :-1].transpose(2, 0, 1)
    in_slot = view.in_slot * count
    squares = spread + mean[:, :, None] * mean[:, None]
    return PopulationMoments(
        jnp.sum(in_slot, axis=1), in_slot @ mean, jnp.einsum("sn,nkl->skl", in_slot, squares)
    )


def score_products(
    blocks: Blocks,
    multiplicity: Float[Array, "blocks models"],
    model: ItemModel,
    items: ItemParameters,
    populations: Populations,
    posteriors: Posterior,
    n_nodes: int,
) -> Float[Array, "coordinates coordinates items"]:
    """`sum_i E[s_ij] E[s_ij]'` of every item: the cross-product of its marginal scores."""

    def visit(view: BlockView, per_block: Any, context: Any) -> tuple[BlockSums, None]:
        count, posterior = per_block
        items, populations = context
        fixed, _ = _sides(view, items, populations, n_nodes)
        cells = expected_cells(view.data, fixed, posterior)
        score = _cell_scores(view, model, items, cells, posterior)
        return BlockSums(jnp.einsum("ajn,n,bjn->abj", score, count, score), None), None

    per_block, context = (multiplicity, posteriors), (items, populations)
    sums, _ = scan_blocks(visit, blocks, per_block, context, items.slope.dtype)
    return sums.total


def _cell_scores(
    view: BlockView,
    model: ItemModel,
    items: ItemParameters,
    cells: CellDerivatives,
    posterior: Posterior,
) -> Float[Array, "coordinates items models"]:
    """`E[s_ij]`: `E[l'] m - E[-l''] V x` in slopes and intercept; by Fisher's identity in u, v."""
    design = jnp.concatenate([items.slope, items.intercept[:, None]], axis=1)
    full = unpack(posterior.covariance, posterior.mean.shape[0])
    pulled = jnp.einsum("abn,jb->ajn", full, design)
    scores = [cells.first * posterior.mean[:, None] - cells.negative_second * pulled]
    if items.asymptotes is not None and cells.known_right is not None:
        assert cells.known_wrong is not None
        right, wrong = answers(view)
        c, d = items.asymptotes.guessing[:, None], items.asymptotes.feasibility[:, None]
        t = jax.nn.sigmoid(items.asymptotes.upper)[:, None]
        guessed, missed = right - cells.known_right, wrong - cells.known_wrong
        # d d / dv = (1 - c) t (1 - t) and 1 - d = (1 - c)(1 - t): the known wrong need no division.
        upper = cells.known_right * (1 - c) * t * (1 - t) / d - cells.known_wrong * t
        if model.spec.has_guessing:
            through = cells.known_right * (1 - d) / d - cells.known_wrong
            scores.append(((1 - c) * guessed - c * missed + c * through)[None])
        if model.spec.has_feasibility:
            scores.append(upper[None])
    return jnp.concatenate(scores, axis=0)


def variational_posteriors(
    blocks: Blocks,
    items: ItemParameters,
    item_covariance: Float[Array, "items coordinates coordinates"],
    populations: Populations,
    posteriors: Posterior,
    n_nodes: int,
) -> ModelPosteriors:
    """Means, covariances and expected scores at the end, as `model_posteriors` with nodes.

    What the errors of item j add goes through `Cov(theta, s_ij) = V (E[l'] [I, 0] - E[-l''] a m')`.
    """

    def visit(view: BlockView, posterior: Any, context: Any) -> tuple[BlockSums, ModelPosteriors]:
        items, item_covariance, populations = context
        dims = items.slope.shape[1]
        fixed, _ = _sides(view, items, populations, n_nodes)
        cells = expected_cells(view.data, fixed, posterior)
        spread = unpack(posterior.covariance, dims + 1)[:-1, :-1].transpose(2, 0, 1)
        unit = jnp.eye(dims, dims + 1, dtype=spread.dtype)
        inner = jnp.einsum("jn,ka->njka", cells.first, unit) - jnp.einsum(
            "jn,jk,an->njka", cells.negative_second, items.slope, posterior.mean
        )
        core = item_covariance[:, : dims + 1, : dims + 1]
        middle = jnp.einsum("njka,jab,njlb->nkl", inner, core, inner)
        added = spread @ middle @ spread
        population = jnp.minimum(view.group, populations.mean.shape[0] - 1)
        prior = jnp.sum(populations.factor**2, axis=2)[population]
        score = normal_expectation(
            lambda logit: response_probability(logit, fixed.asymptotes),
            *logit_moments(fixed, posterior),
            n_nodes,
        )
        found = ModelPosteriors(
            posterior.mean[:-1].T,
            at_most_prior(spread, added, prior),
            spread,
            jnp.mean(score, axis=0),
        )
        return BlockSums(None, None), found

    context = (items, item_covariance, populations)
    _, found = scan_blocks(visit, blocks, posteriors, context, items.slope.dtype)
    assert isinstance(found, ModelPosteriors)
    return found

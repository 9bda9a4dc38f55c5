"""Observed information of items with the models integrated out, and the errors it gives.

Louis' identity (1982), which is Oakes' (1999) written out: the information of the marginal
likelihood is the complete data's minus the covariance of the complete data's score given the
responses. With `s_ij` the score of cell (i, j) and expectations over model i's posterior nodes,

    I_jj = - sum_i E[P''/P or -P''/(1 - P)] + sum_i E[s_ij] E[s_ij]'
    I_jl = - sum_i (E[s_ij s_il'] - E[s_ij] E[s_il]')        j != l

(`E[s s']` of a right or wrong answer cancels within an item; of fractions and counts it does not,
see `_counts_excess`). The cross-product, `sum_i E[s_i] E[s_i]'`, is cheaper
and right only in large samples. Coordinates are slopes, intercept and asymptotes, natural slopes.
"""

import dataclasses
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.special import expit

from irtjax.data.blocks import Blocks
from irtjax.fit.blockwise import BlockSums, BlockView, scan_blocks
from irtjax.fit.item_step import (
    ExpectedCounts,
    ItemModel,
    ItemParameters,
    has_moving_slope,
    node_curves,
)
from irtjax.fit.node_pass import (
    NodeContext,
    NodePass,
    answers,
    count_block,
    node_context,
    node_posterior,
    node_sums,
    of_slots,
)
from irtjax.fit.packed import products, unpack, unpack_index
from irtjax.fit.populations import Grid, Populations
from irtjax.model.priors import LogNormal
from irtjax.model.pytree import pytree_dataclass

__all__ = [
    "InformationSums",
    "Method",
    "information_sums",
    "by_item",
    "item_covariances",
    "prior_information",
    "second_part",
]

Method = Literal["observed", "cross-product", "by-item"]

# Least eigenvalue of an information matrix scaled to a diagonal of 1.
_LEAST = 1e-7


@pytree_dataclass
class ScoreTables:
    """Scores of right and wrong answers at the nodes, by kind: logit, guessing, feasibility.

    `by_coordinate` has them in every coordinate: the logit's times the node for slopes, times 1 for
    the intercept; right answers first.
    """

    right: Float[Array, "populations kinds items nodes"]
    wrong: Float[Array, "populations kinds items nodes"]
    by_coordinate: Float[Array, "populations 2 coordinates items nodes"]


@pytree_dataclass
class InformationSums:
    """Cross-products of scores over all models.

    `of_means` is `sum_i E[s_i] E[s_i]'` and `of_scores` is `sum_i E[s_i s_i']`, over coordinates
    and items twice; only the blocks within an item (`coordinates coordinates items`) where the
    whole matrix is not asked for. `of_counts` is what fractions and counts add within an item, None
    where every cell is one answer. What a method does not need is None.
    """

    of_means: Float[Array, "..."]
    of_scores: Float[Array, "coordinates items coordinates items"] | None
    of_counts: Float[Array, "coordinates coordinates items"] | None


def score_tables(
    model: ItemModel, items: ItemParameters, node: Float[Array, "populations nodes dims"]
) -> ScoreTables:
    """Tables of the scores at the nodes."""
    curves = [node_curves(model, items, at) for at in node]
    right, wrong = (
        jnp.stack([jnp.stack(getattr(at, name)) for at in curves]) for name in ("right", "wrong")
    )
    each = [
        jnp.stack([jnp.stack(_by_coordinate(scores, at)) for scores in (curve.right, curve.wrong)])
        for curve, at in zip(curves, node, strict=True)
    ]
    return ScoreTables(right, wrong, jnp.stack(each))


def _by_coordinate(
    scores: tuple[Float[Array, "items nodes"], ...], node: Float[Array, "nodes dims"]
) -> list[Float[Array, "items nodes"]]:
    return [*(scores[0] * at for at in node.T), *scores]


def information_sums(
    blocks: Blocks,
    multiplicity: Float[Array, "blocks models"],
    items: ItemParameters,
    populations: Populations,
    grid: Grid,
    model: ItemModel,
    method: Method,
    *,
    is_complete: bool = False,
) -> tuple[NodePass, InformationSums]:
    """The pass over all models that the method needs, and an E-step's sums with it."""
    is_one_answer = blocks.weight is None and jnp.issubdtype(blocks.response.dtype, jnp.integer)
    has_excess = method != "cross-product" and not is_one_answer

    def visit(
        view: BlockView, count: Float[Array, " models"], context: tuple[NodeContext, ScoreTables]
    ) -> tuple[BlockSums, None]:
        nodes, tables = context
        posterior, log_likelihood = node_posterior(view, nodes)
        means = mean_scores(view, posterior, tables)
        weighted, counted = means * count, posterior * count[:, None]
        of_scores = None
        if method == "by-item":
            of_means = jnp.einsum("ajn,bjn->abj", weighted, means)
        else:
            of_means = jnp.einsum("ajn,bln->ajbl", weighted, means)
        if method == "observed":
            of_scores = _score_products(view, counted, nodes, tables)
        of_counts = _counts_excess(view, counted, tables) if has_excess else None
        total = (count @ log_likelihood, of_means, of_scores, of_counts)
        counts = count_block(view, count, posterior, is_complete=is_complete)
        return BlockSums(total, counts), None

    nodes = node_context(items, populations, grid, is_complete=is_complete)
    context = (nodes, score_tables(model, items, nodes.node))
    sums, _ = scan_blocks(visit, blocks, multiplicity, context, items.slope.dtype)
    log_likelihood, *of_scores = sums.total
    found = node_sums(log_likelihood, sums.by_group, nodes)
    return found, InformationSums(*of_scores)


def mean_scores(
    view: BlockView, weight: Float[Array, "models nodes"], tables: ScoreTables
) -> Float[Array, "coordinates items models"]:
    """`sum_q weight_iq s_ijq` of each cell: with posterior weights its expected score."""
    table = of_slots(view, tables.by_coordinate)
    if len(table) == 1:
        each = jnp.einsum("nq,ycjq->ycjn", weight, table[0])
    else:
        each = jnp.einsum("snq,sycjq->ycjn", view.in_slot[..., None] * weight, table)
    right, wrong = answers(view)
    return right * each[0] + wrong * each[1]


def _score_products(
    view: BlockView,
    weight: Float[Array, "models nodes"],
    context: NodeContext,
    tables: ScoreTables,
) -> Float[Array, "coordinates items coordinates items"]:
    """`sum_i E[s_i s_i']`: a matrix product a node, over scores in the logit and the asymptotes."""
    right, wrong = answers(view)
    node = of_slots(view, context.node)
    tables_right, tables_wrong = of_slots(view, tables.right), of_slots(view, tables.wrong)
    n_slots, n_models = view.in_slot.shape
    n_kinds, n_items = tables.right.shape[1:3]
    dims = context.node.shape[-1]
    n_coordinates = dims + n_kinds

    def at_node(total: Array, q: Array) -> tuple[Array, None]:
        for slot in range(n_slots):
            of_right = tables_right[slot, :, :, q]
            of_wrong = tables_wrong[slot, :, :, q]
            score = of_right[:, :, None] * right + of_wrong[:, :, None] * wrong
            flat = score.reshape(-1, n_models)
            mass = weight[:, q] * view.in_slot[slot]
            gram = ((flat * mass) @ flat.T).reshape(n_kinds, n_items, n_kinds, n_items)
            place = node[slot, q]
            lift = jnp.zeros((n_coordinates, n_kinds), gram.dtype)
            lift = lift.at[:dims, 0].set(place).at[dims:].set(jnp.eye(n_kinds, dtype=gram.dtype))
            total = total + jnp.einsum("ak,bm,kjml->ajbl", lift, lift, gram)
        return total, None

    shape = (n_coordinates, n_items, n_coordinates, n_items)
    # One value a device, as the weights are: a plain zero would not be.
    zero = jnp.zeros(shape, weight.dtype) + 0 * weight[0, 0]
    total, _ = jax.lax.scan(at_node, zero, jnp.arange(weight.shape[1]))
    return total


def _counts_excess(
    view: BlockView, weight: Float[Array, "models nodes"], tables: ScoreTables
) -> Float[Array, "coordinates coordinates items"]:
    """`sum_i E[r R R' + w W W' - s s']` of cells with r right and w wrong answers, `s = r R + w W`.

    R and W are the scores of one right and one wrong answer. With one answer in a cell it is 0.
    """
    right, wrong = answers(view)
    mass = view.in_slot[..., None] * weight
    of_right, of_wrong = jnp.moveaxis(of_slots(view, tables.by_coordinate), 1, 0)

    def gram(
        cells: Array, one: Array, other: Array
    ) -> Float[Array, "coordinates coordinates items"]:
        counted = jnp.einsum("jn,snq->sjq", cells, mass)
        return jnp.einsum("sajq,sbjq->abj", counted[:, None] * one, other)

    crossed = gram(right * wrong, of_right, of_wrong)
    within = gram(right - right**2, of_right, of_right) + gram(wrong - wrong**2, of_wrong, of_wrong)
    return within - crossed - crossed.swapaxes(0, 1)


def second_part(
    model: ItemModel, items: ItemParameters, counts: ExpectedCounts
) -> Float[Array, "coordinates coordinates items"]:
    """`sum_q r P''/P - w P''/(1 - P)` of every item.

    Second derivatives of P are its first ones times `1 - 2 s`, `-c`, `1 - t`, ...: with the summed
    scores of a node they need no division.
    """
    curves = node_curves(model, items, counts.node)
    answered = zip(curves.right, curves.wrong, strict=True)
    scores = [counts.right * r + counts.wrong * w for r, w in answered]
    curved = scores[0] * (1 - 2 * curves.s)
    design = jnp.concatenate([counts.node, jnp.ones_like(counts.node[:, :1])], axis=1)
    of_curved, *of_scores = jnp.stack([curved, *scores]) @ products(design)
    rows = list(of_curved.T)
    if items.asymptotes is not None:
        c, t = jax.nn.sigmoid(items.asymptotes.lower), jax.nn.sigmoid(items.asymptotes.upper)
        size = design.shape[1]
        along = list(of_scores[0][:, unpack_index(size)[size - 1]].T)
        totals = [each[:, -1] for each in of_scores[1:]]
        if model.spec.has_guessing:
            rows += [*(-c * each for each in along), (1 - 2 * c) * totals[0]]
        if model.spec.has_feasibility:
            missed = totals[-1]
            between = [-c * missed] if model.spec.has_guessing else []
            rows += [*((1 - t) * each for each in along), *between, (1 - 2 * t) * missed]
    return unpack(jnp.stack(rows), model.n_coordinates)


@dataclasses.dataclass(frozen=True)
class ItemCovariances:
    """Covariance of each item's coordinates (natural slopes), float64, and how it was found."""

    covariance: Float[np.ndarray, "items coordinates coordinates"]
    method: Method


def item_covariances(
    model: ItemModel,
    items: ItemParameters,
    sums: InformationSums,
    second: Float[Array, "coordinates coordinates items"],
    method: Method,
    is_loading: np.ndarray | None = None,
) -> ItemCovariances:
    """Inverse of the information with the priors', on the host in float64.

    Where it is not positive definite along a direction (an unbounded estimate without priors), the
    variance there is infinite.
    """
    n, n_items = model.n_coordinates, len(np.asarray(items.intercept))
    within = -np.asarray(second, np.float64) + prior_information(model, items)
    if sums.of_counts is not None:
        within = within + np.asarray(sums.of_counts, np.float64)
    of_means = np.asarray(sums.of_means, np.float64)
    if method == "by-item":
        return ItemCovariances(by_item(model, within + of_means, is_loading), method)
    every = np.arange(n_items)
    full = of_means.copy()
    if method == "observed":
        of_scores = np.array(sums.of_scores, np.float64)
        of_scores[:, every, :, every] = 0
        full -= of_scores
        full[:, every, :, every] += within.transpose(2, 0, 1)
    else:
        full[:, every, :, every] += prior_information(model, items).transpose(2, 0, 1)
    matrix = full.reshape(n * n_items, n * n_items)
    if is_loading is not None:
        free = np.ones((n, n_items), bool)
        free[: is_loading.shape[1]] = is_loading.T > 0
        matrix = _pin(matrix, free.ravel())
    if has_moving_slope(model, is_loading):
        matrix = _with_common_slope(matrix, n_items)
    else:
        matrix = _inverse(matrix)
    covariance = matrix.reshape(n, n_items, n, n_items)[:, every, :, every]
    return ItemCovariances(covariance, method)


def by_item(
    model: ItemModel,
    information: Float[np.ndarray, "coordinates coordinates items"],
    is_loading: np.ndarray | None = None,
) -> Float[np.ndarray, "items coordinates coordinates"]:
    """Covariances where items inform each other only through a slope that they share.

    With the other coordinates profiled out, the information of a common slope adds up over the
    items; its error then goes on to each item's own coordinates.
    """
    each = information.transpose(2, 0, 1)
    if not has_moving_slope(model, is_loading):
        return inverse_informations(each, is_loading)
    rest = inverse_informations(each[:, 1:, 1:], None)
    through = -np.einsum("jab,jb->ja", rest, each[:, 1:, 0])
    common = np.sum(each[:, 0, 0] + np.einsum("ja,ja->j", each[:, 0, 1:], through))
    variance = 1 / max(float(common), 1e-300)
    direction = np.concatenate([np.ones((len(each), 1)), through], axis=1)
    covariance = variance * direction[:, :, None] * direction[:, None]
    covariance[:, 1:, 1:] += rest
    return covariance


def prior_information(
    model: ItemModel, items: ItemParameters
) -> Float[np.ndarray, "coordinates coordinates items"]:
    """Minus the second derivatives of the log-priors, in natural slopes (float64).

    A common slope has one prior: each item carries its share.
    """
    dims, n_items = model.spec.dims, len(np.asarray(items.intercept))
    slope = np.asarray(items.slope, np.float64)
    prior = model.priors.of_slopes(model.spec)
    found = np.zeros((model.n_coordinates, model.n_coordinates, n_items))
    share = 1 / n_items if model.spec.has_common_slope else 1.0
    scale = slope if isinstance(prior, LogNormal) else np.ones_like(slope)
    for k in range(dims):
        found[k, k] = share / (prior.sd * scale[:, k]) ** 2
    found[dims, dims] = 1 / model.priors.of_intercepts().sd ** 2
    if items.asymptotes is None:
        return found
    lower = np.asarray(items.asymptotes.lower, np.float64)
    upper = np.asarray(items.asymptotes.upper, np.float64)
    c, t = expit(lower), expit(upper)
    missed = expit(-lower) * expit(-upper)
    position = dims + 1
    if model.spec.has_guessing:
        a, b = model.priors.guessing
        found[position, position] += (a + b - 2) * c * (1 - c)
    if model.spec.has_feasibility:
        a, b = model.priors.infeasibility
        weight = (a + b - 2) * missed / (1 - missed)
        places = [(position, c), (position + 1, t)] if model.spec.has_guessing else [(position, t)]
        for k, by_k in places:
            for m, by_m in places:
                found[k, m] += weight * by_k * by_m
    return found


def _pin(matrix: np.ndarray, free: np.ndarray) -> np.ndarray:
    """Coordinates that are not estimated: alone, with a variance of about 0."""
    pinned = np.where(free[:, None] & free[None], matrix, 0.0)
    pinned[~free, ~free] = 1e30
    return pinned


def _with_common_slope(matrix: np.ndarray, n_items: int) -> np.ndarray:
    """Covariance of all coordinates where the first n_items are one parameter."""
    lift = np.zeros((len(matrix), len(matrix) - n_items + 1))
    lift[:n_items, 0] = 1
    lift[n_items:, 1:] = np.eye(len(matrix) - n_items)
    return lift @ _inverse(lift.T @ matrix @ lift) @ lift.T


def _inverse(matrix: np.ndarray) -> np.ndarray:
    return inverse_informations(matrix[None], None)[0]


def inverse_informations(matrices: np.ndarray, is_loading: np.ndarray | None) -> np.ndarray:
    """Inverses of scaled symmetric matrices; directions without information get a huge variance."""
    if is_loading is not None:
        free = np.ones(matrices.shape[:2], bool)
        free[:, : is_loading.shape[1]] = is_loading > 0
        matrices = np.stack([_pin(m, f) for m, f in zip(matrices, free, strict=True)])
    diagonal = np.sqrt(np.maximum(np.abs(np.einsum("jaa->ja", matrices)), 1e-300))
    scaled = matrices / diagonal[:, :, None] / diagonal[:, None]
    inverse = _inverse_of_definite((scaled + scaled.swapaxes(1, 2)) / 2)
    return inverse / diagonal[:, :, None] / diagonal[:, None]


def _inverse_of_definite(
    scaled: Float[np.ndarray, "matrices size size"],
) -> Float[np.ndarray, "matrices size size"]:
    """Inverses of symmetric matrices with eigenvalues below `_LEAST` raised to it.

    By eigenvectors only where one may be: for 50 items of a 4PL they take three times as long.
    """
    try:
        np.linalg.cholesky(scaled)
        inverse = np.linalg.inv(scaled)
        # No eigenvalue of an inverse exceeds its trace.
        if np.einsum("jaa->j", inverse).max(initial=0) < 1 / _LEAST:
            return (inverse + inverse.swapaxes(1, 2)) / 2
    except np.linalg.LinAlgError:
        pass
    values, vectors = np.linalg.eigh(scaled)
    return np.einsum("jab,jb,jcb->jac", vectors, 1 / np.maximum(values, _LEAST), vectors)

"""One pass with nodes of each model's own: adaptive Gauss-Hermite quadrature (Naylor & Smith 1982).

Posteriors of abilities from thousands of responses are narrower than any fixed nodes (12 models of
41,871 items got 8 distinct abilities). Here node q of model i is `m_i + L_i x_q`, with m and `L L'`
the posterior's mean and covariance at the last pass, and its weight is
`w_q p(y_i | theta) p(theta) / N(theta; m_i, L_i L_i')`.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from irtjax.data.blocks import Blocks
from irtjax.fit.blockwise import BlockSums, BlockView, scan_blocks
from irtjax.fit.item_step import (
    ExpectedCounts,
    ItemDerivatives,
    ItemModel,
    ItemParameters,
    item_derivatives,
    node_curves,
    node_probabilities,
)
from irtjax.fit.model_posteriors import ModelPosteriors, at_most_prior
from irtjax.fit.node_pass import answers
from irtjax.fit.populations import PopulationMoments, Populations
from irtjax.model.pytree import pytree_dataclass
from irtjax.model.quadrature import gauss_hermite
from irtjax.model.response import response_probability

__all__ = [
    "AdaptivePass",
    "Placement",
    "adaptive_pass",
    "adaptive_posteriors",
    "start_placement",
]

# Share of the last covariance added to the new one: a posterior that fell between two nodes looks
# like a point, and the nodes may come closer tenfold a pass, not at once.
_WIDENED = 0.01
# Nodes closer than this are the same number of logits in float32.
_SMALLEST_SD = 1e-4


@pytree_dataclass
class Placement:
    """Where each model's nodes are: centre and lower-triangular scale, blocks first."""

    mean: Float[Array, "blocks models dims"]
    factor: Float[Array, "blocks models dims dims"]


@pytree_dataclass
class AdaptivePass:
    """Sums of a pass: what the M-steps need."""

    log_likelihood: Float[Array, ""]
    derivatives: ItemDerivatives
    moments: PopulationMoments


@pytree_dataclass
class _Nodes:
    """A block's nodes with the posterior weights at them."""

    node: Float[Array, "models nodes dims"]
    weight: Float[Array, "models nodes"]
    log_likelihood: Float[Array, " models"]

    def moments(self) -> tuple[Float[Array, "models dims"], Float[Array, "models dims dims"]]:
        """Posterior means and covariances."""
        mean = jnp.einsum("nq,nqk->nk", self.weight, self.node)
        away = self.node - mean[:, None]
        return mean, jnp.einsum("nq,nqk,nql->nkl", self.weight, away, away)


def start_placement(blocks: Blocks, dims: int, dtype: Any) -> Placement:
    """Every model's nodes at the standard normal."""
    shape = (blocks.n_blocks, blocks.items_per_block, dims)
    unit = jnp.broadcast_to(jnp.eye(dims, dtype=dtype), (*shape, dims))
    return Placement(jnp.zeros(shape, dtype), unit)


def adaptive_pass(
    blocks: Blocks,
    multiplicity: Float[Array, "blocks models"],
    model: ItemModel,
    items: ItemParameters,
    populations: Populations,
    placement: Placement,
    n_nodes: int,
) -> tuple[AdaptivePass, Placement]:
    """The E-step at the current parameters.

    Args:
        blocks: of the transposed matrix, grouped by population.
        multiplicity: how many models share each pattern of responses; 0 for padding.
        model: coordinates and priors of the items.
        items: current items.
        populations: current (normal) distributions of ability.
        placement: where the nodes are.
        n_nodes: nodes a dim.

    Returns:
        Sums for the M-steps, and where the nodes should be next time.
    """

    def visit(view: BlockView, per_block: Any, context: Any) -> tuple[BlockSums, Placement]:
        count, placed = per_block
        items, populations = context
        nodes = _posterior(view, items, populations, placed, n_nodes)
        mean, covariance = nodes.moments()
        derivatives = _derivatives(view, model, items, nodes, count)
        in_slot = view.in_slot * count
        squares = covariance + mean[:, :, None] * mean[:, None]
        by_group = PopulationMoments(
            jnp.sum(in_slot, axis=1), in_slot @ mean, jnp.einsum("sn,nkl->skl", in_slot, squares)
        )
        total = (jnp.sum(count * nodes.log_likelihood), derivatives)
        old = jnp.einsum("nkl,nml->nkm", placed.factor, placed.factor)
        least = _SMALLEST_SD**2 * jnp.eye(mean.shape[1], dtype=mean.dtype)
        factor = jnp.linalg.cholesky(covariance + _WIDENED * old + least)
        return BlockSums(total, by_group), Placement(mean, factor)

    per_block, context = (multiplicity, placement), (items, populations)
    sums, moved = scan_blocks(visit, blocks, per_block, context, items.slope.dtype)
    log_likelihood, derivatives = sums.total
    return AdaptivePass(log_likelihood, derivatives, sums.by_group), moved


def adaptive_posteriors(
    blocks: Blocks,
    model: ItemModel,
    items: ItemParameters,
    item_covariance: Float[Array, "items coordinates coordinates"],
    populations: Populations,
    placement: Placement,
    n_nodes: int,
) -> ModelPosteriors:
    """Posteriors of all models at the end, as `model_posteriors` with fixed nodes."""

    def visit(view: BlockView, placed: Any, context: Any) -> tuple[BlockSums, ModelPosteriors]:
        items, item_covariance, populations = context
        nodes = _posterior(view, items, populations, placed, n_nodes)
        mean, spread = nodes.moments()
        coupling = _coupling(view, model, items, nodes, mean)
        added = jnp.einsum("njka,jab,njlb->nkl", coupling, item_covariance, coupling)
        population = jnp.minimum(view.slot_group, populations.mean.shape[0] - 1)
        prior = view.in_slot.T @ jnp.sum(populations.factor**2, axis=2)[population]
        total = at_most_prior(spread, added, prior)
        score = _expected_scores(items, nodes)
        return BlockSums(None, None), ModelPosteriors(mean, total, spread, score)

    context = (items, item_covariance, populations)
    _, found = scan_blocks(visit, blocks, placement, context, items.slope.dtype)
    assert isinstance(found, ModelPosteriors)
    return found


def _posterior(
    view: BlockView,
    items: ItemParameters,
    populations: Populations,
    placed: Placement,
    n_nodes: int,
) -> _Nodes:
    """Nodes around each model's last posterior, weighted by the ratio of the densities."""
    base, log_base = _standard_nodes(placed.mean.shape[-1], n_nodes)
    node = placed.mean[:, None] + jnp.einsum("nkl,ql->nqk", placed.factor, base)
    right, wrong = answers(view)

    def cells(place: Float[Array, "models dims"]) -> Float[Array, "items models"]:
        p, not_p = node_probabilities(items, place)
        return right * jnp.log(p) + wrong * jnp.log(not_p)

    # Cell by cell against the centre: sums of 40,000 log-likelihoods lose the digits by which the
    # nodes differ.
    centre = cells(placed.mean)
    joint = jax.lax.map(
        lambda place: jnp.sum(cells(place) - centre, axis=0), node.transpose(1, 0, 2)
    ).T
    joint = joint + log_base + _log_density(view, populations, node)
    # The constants of both normals cancel.
    joint = joint + _log_diagonal(placed.factor)[:, None]
    total = jax.nn.logsumexp(joint, axis=1)
    weight = jnp.exp(joint - total[:, None])
    return _Nodes(node, weight, total + jnp.sum(centre, axis=0))


def _standard_nodes(dims: int, n_nodes: int) -> tuple[Array, Array]:
    """Nodes of the standard normal, and their log-weights over its density."""
    line, weight = gauss_hermite(n_nodes)
    node = np.stack(np.meshgrid(*[line] * dims, indexing="ij"), axis=-1).reshape(-1, dims)
    logs = np.stack(np.meshgrid(*[np.log(weight)] * dims, indexing="ij"), axis=-1)
    ratio = logs.reshape(-1, dims).sum(axis=1) + 0.5 * np.sum(node**2, axis=1)
    dtype = jnp.zeros(()).dtype
    return jnp.asarray(node, dtype), jnp.asarray(ratio, dtype)


def _log_density(
    view: BlockView, populations: Populations, node: Float[Array, "models nodes dims"]
) -> Float[Array, "models nodes"]:
    """Of each model's population at its nodes, up to the normal's constant."""
    population = jnp.minimum(view.slot_group, populations.mean.shape[0] - 1)
    mean = jnp.einsum("sn,sk->nk", view.in_slot, populations.mean[population])
    inverse = jnp.linalg.inv(populations.factor)[population]
    inverse = jnp.einsum("sn,skl->nkl", view.in_slot, inverse)
    # Padding is of no population: without a density its nodes would run away.
    is_padding = 1 - jnp.sum(view.in_slot, axis=0)
    inverse = inverse + is_padding[:, None, None] * jnp.eye(node.shape[-1], dtype=node.dtype)
    size = view.in_slot.T @ _log_diagonal(populations.factor)[population]
    away = jnp.einsum("nkl,nql->nqk", inverse, node - mean[:, None])
    return -0.5 * jnp.sum(away**2, axis=-1) - size[:, None]


def _log_diagonal(factor: Float[Array, "batch dims dims"]) -> Float[Array, " batch"]:
    return jnp.sum(jnp.log(jnp.diagonal(factor, axis1=1, axis2=2)), axis=1)


def _derivatives(
    view: BlockView,
    model: ItemModel,
    items: ItemParameters,
    nodes: _Nodes,
    count: Float[Array, " models"],
) -> ItemDerivatives:
    """The models at their q-th nodes are so many nodes with one answer each; then all q."""
    right, wrong = answers(view)

    def at_node(total: ItemDerivatives, q: Any) -> tuple[ItemDerivatives, None]:
        weight = count * nodes.weight[:, q]
        counts = ExpectedCounts(nodes.node[:, q], right * weight, wrong * weight)
        found = item_derivatives(model, items, counts)
        return jax.tree.map(jnp.add, total, found), None

    n, n_items = model.n_coordinates, len(items.intercept)
    # One value a device, as the weights are: a plain zero would not be.
    zero = jnp.zeros((n, n_items), count.dtype) + 0 * nodes.weight[0, 0]
    start = ItemDerivatives(zero, jnp.broadcast_to(zero[0], (n * (n + 1) // 2, n_items)))
    return jax.lax.scan(at_node, start, jnp.arange(nodes.weight.shape[1]))[0]


def _coupling(
    view: BlockView,
    model: ItemModel,
    items: ItemParameters,
    nodes: _Nodes,
    mean: Float[Array, "models dims"],
) -> Float[Array, "models items dims coordinates"]:
    """`E[(theta - mean) s_ij]` of every cell."""
    right, wrong = answers(view)

    def at_node(total: Array, q: Any) -> tuple[Array, None]:
        place = nodes.node[:, q]
        curves = node_curves(model, items, place)
        scores = zip(curves.right, curves.wrong, strict=True)
        cells = jnp.stack([right * r + wrong * w for r, w in scores], axis=-1)
        slopes = cells[..., :1] * place
        every = jnp.concatenate([slopes, cells], axis=-1)
        away = nodes.weight[:, q, None] * (place - mean)
        return total + jnp.einsum("nk,jna->njka", away, every), None

    shape = (*right.T.shape, mean.shape[1], model.n_coordinates)
    start = jnp.zeros(shape, mean.dtype) + 0 * nodes.weight[0, 0]
    return jax.lax.scan(at_node, start, jnp.arange(nodes.weight.shape[1]))[0]


def _expected_scores(items: ItemParameters, nodes: _Nodes) -> Float[Array, " models"]:
    asymptotes = jax.tree.map(lambda leaf: leaf[:, None], items.asymptotes)

    def at_node(place: Float[Array, "models dims"]) -> Float[Array, " models"]:
        logit = items.slope @ place.T + items.intercept[:, None]
        return jnp.mean(response_probability(logit, asymptotes), axis=0)

    score = jax.lax.map(at_node, nodes.node.transpose(1, 0, 2)).T
    return jnp.sum(score * nodes.weight, axis=1)

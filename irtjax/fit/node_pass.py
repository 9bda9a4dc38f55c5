"""One pass over all models with their abilities integrated out on nodes (Bock-Aitkin's E-step).

Blocks are of the transposed matrix: models are the blocked side. With shared nodes a block is three
matrix products: log-likelihoods at the nodes, and the expected right and wrong answers there.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from irtjax.data.blocks import Blocks
from irtjax.fit.blockwise import BlockSums, BlockView, scan_blocks
from irtjax.fit.item_step import ExpectedCounts, ItemParameters, node_logarithms
from irtjax.fit.populations import Grid, Populations
from irtjax.model.pytree import pytree_dataclass
from irtjax.model.response import response_probability

__all__ = [
    "NodeContext",
    "NodePass",
    "answers",
    "count_block",
    "expected_counts",
    "node_context",
    "node_posterior",
    "node_sums",
]


@pytree_dataclass
class NodeContext:
    """What a pass holds fixed: every item's curve at every node, by population."""

    log_p: Float[Array, "populations items nodes"]
    log_not_p: Float[Array, "populations items nodes"]
    log_weight: Float[Array, "populations nodes"]
    node: Float[Array, "populations nodes dims"]
    mean_p: Float[Array, "populations nodes"]


@pytree_dataclass
class NodePass:
    """Sums of a pass: the marginal log-likelihood, and what the M-steps need.

    `mass` is the expected number of models at each node of their population.
    """

    log_likelihood: Float[Array, ""]
    mass: Float[Array, "populations nodes"]
    counts: ExpectedCounts


def node_context(items: ItemParameters, populations: Populations, grid: Grid) -> NodeContext:
    """Tables of the curves at the nodes: computed once a pass, not once a block."""
    node = populations.nodes(grid)
    log_p, log_not_p = jax.vmap(lambda at: node_logarithms(items, at))(node)
    logit = jnp.einsum("jk,gqk->gqj", items.slope, node) + items.intercept
    mean_p = jnp.mean(response_probability(logit, items.asymptotes), axis=-1)
    return NodeContext(log_p, log_not_p, populations.log_weight, node, mean_p)


def answers(view: BlockView) -> tuple[Float[Array, "items models"], Float[Array, "items models"]]:
    """Right and wrong answers of each cell, with its weight; fractions are a part of each."""
    right = view.data.weight * view.data.response
    return right, view.data.weight - right


def node_posterior(
    view: BlockView, context: NodeContext
) -> tuple[Float[Array, "models nodes"], Float[Array, " models"]]:
    """Posterior weights of each model at the nodes of its population, and its log-likelihood."""
    right, wrong = answers(view)
    population = jnp.minimum(view.slot_group, context.log_weight.shape[0] - 1)
    each = jnp.einsum("jn,sjq->snq", right, context.log_p[population])
    each = each + jnp.einsum("jn,sjq->snq", wrong, context.log_not_p[population])
    each = each + context.log_weight[population][:, None]
    joint = jnp.sum(each * view.in_slot[..., None], axis=0)
    log_likelihood = jax.nn.logsumexp(joint, axis=1)
    return jnp.exp(joint - log_likelihood[:, None]), log_likelihood


def expected_counts(
    blocks: Blocks,
    multiplicity: Float[Array, "blocks models"],
    items: ItemParameters,
    populations: Populations,
    grid: Grid,
) -> NodePass:
    """The E-step: log-likelihood, masses and expected counts at the current parameters.

    Args:
        blocks: of the transposed matrix, grouped by population.
        multiplicity: how many models share each pattern of responses; 0 for padding.
        items: current items.
        populations: current distributions of ability.
        grid: their nodes.
    """

    def visit(
        view: BlockView, count: Float[Array, " models"], context: NodeContext
    ) -> tuple[BlockSums, None]:
        posterior, log_likelihood = node_posterior(view, context)
        return BlockSums(jnp.sum(count * log_likelihood), count_block(view, count, posterior)), None

    context = node_context(items, populations, grid)
    sums, _ = scan_blocks(visit, blocks, multiplicity, context, items.slope.dtype)
    return node_sums(sums.total, sums.by_group, context.node)


def count_block(
    view: BlockView, count: Float[Array, " models"], posterior: Float[Array, "models nodes"]
) -> tuple[Array, Array, Array]:
    """A block's expected models, right and wrong answers at the nodes, by slot."""
    right, wrong = answers(view)
    in_slot = view.in_slot[..., None] * (posterior * count[:, None])
    return (
        jnp.sum(in_slot, axis=1),
        jnp.einsum("jn,snq->sjq", right, in_slot),
        jnp.einsum("jn,snq->sjq", wrong, in_slot),
    )


def node_sums(
    log_likelihood: Float[Array, ""],
    by_group: tuple[Array, Array, Array],
    node: Float[Array, "populations nodes dims"],
) -> NodePass:
    """The sums of all blocks, with the nodes of all populations side by side."""
    mass, right, wrong = by_group
    n_items = right.shape[1]

    def side_by_side(leaf: Array) -> Array:
        return leaf.transpose(1, 0, 2).reshape(n_items, -1)

    counts = ExpectedCounts(
        node.reshape(-1, node.shape[-1]), side_by_side(right), side_by_side(wrong)
    )
    return NodePass(log_likelihood, mass, counts)

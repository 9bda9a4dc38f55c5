"""One pass over all models with their abilities integrated out on nodes (Bock-Aitkin's E-step).

Blocks are of the transposed matrix: models are the blocked side. With shared nodes a block is three
matrix products: log-likelihoods at the nodes, and the expected right and wrong answers there.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from irtjax.data.blocks import Blocks
from irtjax.fit.blockwise import BlockSums, BlockView, scan_blocks
from irtjax.fit.item_step import ExpectedCounts, ItemParameters, node_probabilities
from irtjax.fit.populations import Grid, Populations
from irtjax.model.pytree import pytree_dataclass

__all__ = [
    "NodeContext",
    "NodePass",
    "answer_rows",
    "answers",
    "count_block",
    "expected_counts",
    "node_context",
    "node_posterior",
    "node_sums",
    "of_slots",
]


@pytree_dataclass
class NodeContext:
    """What a pass holds fixed: every item's curve at every node, by population.

    `table` has the rows that `answer_rows` multiplies: `log P` and `log(1 - P)` of every item, and
    the nodes' log-weights.
    """

    table: Float[Array, "populations rows nodes"]
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
    # Population by population, as the scores are: what is the same is then computed once.
    curves = [node_probabilities(items, at) for at in node]
    table = [
        jnp.concatenate([jnp.log(p), jnp.log(not_p), log_weight[None]])
        for (p, not_p), log_weight in zip(curves, populations.log_weight, strict=True)
    ]
    mean_p = jnp.stack([jnp.mean(p, axis=0) for p, _ in curves])
    return NodeContext(jnp.stack(table), populations.log_weight, node, mean_p)


def answers(view: BlockView) -> tuple[Float[Array, "items models"], Float[Array, "items models"]]:
    """Right and wrong answers of each cell, with its weight; fractions are a part of each."""
    right = view.data.weight * view.data.response
    return right, view.data.weight - right


def answer_rows(view: BlockView) -> Float[Array, "rows models"]:
    """Right answers to every item, wrong ones, and a row of 1: one product instead of three."""
    right, wrong = answers(view)
    return jnp.concatenate([right, wrong, jnp.ones_like(right[:1])])


def node_posterior(
    view: BlockView, context: NodeContext
) -> tuple[Float[Array, "models nodes"], Float[Array, " models"]]:
    """Posterior weights of each model at the nodes of its population, and its log-likelihood."""
    each = jnp.einsum("rn,srq->snq", answer_rows(view), of_slots(view, context.table))
    joint = jnp.sum(each * view.in_slot[..., None], axis=0)
    top = jnp.max(joint, axis=1)
    weight = jnp.exp(joint - top[:, None])
    total = jnp.sum(weight, axis=1)
    return weight / total[:, None], top + jnp.log(total)


def of_slots(view: BlockView, leaf: Float[Array, "populations ..."]) -> Float[Array, "slots ..."]:
    """What the population of each slot has; unused slots get the last population's."""
    if len(leaf) == len(view.slot_group) == 1:
        return leaf
    return leaf[jnp.minimum(view.slot_group, len(leaf) - 1)]


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
        return BlockSums(count @ log_likelihood, count_block(view, count, posterior)), None

    context = node_context(items, populations, grid)
    sums, _ = scan_blocks(visit, blocks, multiplicity, context, items.slope.dtype)
    return node_sums(sums.total, sums.by_group, context.node)


def count_block(
    view: BlockView, count: Float[Array, " models"], posterior: Float[Array, "models nodes"]
) -> Float[Array, "slots rows nodes"]:
    """A block's expected right and wrong answers and models at the nodes, by slot."""
    in_slot = view.in_slot[..., None] * (posterior * count[:, None])
    return jnp.einsum("rn,snq->srq", answer_rows(view), in_slot)


def node_sums(
    log_likelihood: Float[Array, ""],
    by_group: Float[Array, "populations rows nodes"],
    node: Float[Array, "populations nodes dims"],
) -> NodePass:
    """The sums of all blocks, with the nodes of all populations side by side."""
    side_by_side = by_group[:, :-1].transpose(1, 0, 2).reshape(by_group.shape[1] - 1, -1)
    right, wrong = jnp.split(side_by_side, 2)
    counts = ExpectedCounts(node.reshape(-1, node.shape[-1]), right, wrong)
    return NodePass(log_likelihood, by_group[:, -1], counts)

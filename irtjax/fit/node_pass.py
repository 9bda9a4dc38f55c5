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
from irtjax.model.pytree import pytree_dataclass, static_field

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

# Models of one product of matrices. Larger ones are shared out among cores that wait for each other
# in a loop: 2,000 x 50 takes a fifth more CPU seconds then, and no fewer by the clock.
_PIECE = 128


@pytree_dataclass
class NodeContext:
    """What a pass holds fixed: every item's curve at every node, by population.

    `table` has the rows that `answer_rows` multiplies: `log P` and `log(1 - P)` of every item, and
    the nodes' log-weights. Where every cell is one answer (`is_complete`) a wrong one is what is
    not right, and half of the rows do: `log P - log(1 - P)`, and the rest in one row.
    """

    table: Float[Array, "populations rows nodes"]
    log_weight: Float[Array, "populations nodes"]
    node: Float[Array, "populations nodes dims"]
    mean_p: Float[Array, "populations nodes"]
    is_complete: bool = static_field(default=False)


@pytree_dataclass
class NodePass:
    """Sums of a pass: the marginal log-likelihood, and what the M-steps need.

    `mass` is the expected number of models at each node of their population.
    """

    log_likelihood: Float[Array, ""]
    mass: Float[Array, "populations nodes"]
    counts: ExpectedCounts


def node_context(
    items: ItemParameters, populations: Populations, grid: Grid, *, is_complete: bool = False
) -> NodeContext:
    """Tables of the curves at the nodes: computed once a pass, not once a block."""
    node = populations.nodes(grid)
    # Population by population, as the scores are: what is the same is then computed once.
    curves = [node_probabilities(items, at) for at in node]
    table = [
        _table(jnp.log(p), jnp.log(not_p), log_weight, is_complete)
        for (p, not_p), log_weight in zip(curves, populations.log_weight, strict=True)
    ]
    mean_p = jnp.stack([jnp.mean(p, axis=0) for p, _ in curves])
    return NodeContext(jnp.stack(table), populations.log_weight, node, mean_p, is_complete)


def _table(log_p: Array, log_not_p: Array, log_weight: Array, is_complete: bool) -> Array:
    if not is_complete:
        return jnp.concatenate([log_p, log_not_p, log_weight[None]])
    return jnp.concatenate([log_p - log_not_p, (jnp.sum(log_not_p, axis=0) + log_weight)[None]])


def answers(view: BlockView) -> tuple[Float[Array, "items models"], Float[Array, "items models"]]:
    """Right and wrong answers of each cell, with its weight; fractions are a part of each."""
    right = view.data.weight * view.data.response
    return right, view.data.weight - right


def answer_rows(view: BlockView, *, is_complete: bool) -> Float[Array, "rows models"]:
    """Right answers to every item, wrong ones, and a row of 1: one product instead of three.

    Where every cell is one answer, without the wrong ones.
    """
    right, wrong = answers(view)
    rows = [right] if is_complete else [right, wrong]
    return jnp.concatenate([*rows, jnp.ones_like(right[:1])])


def node_posterior(
    view: BlockView, context: NodeContext
) -> tuple[Float[Array, "models nodes"], Float[Array, " models"]]:
    """Posterior weights of each model at the nodes of its population, and its log-likelihood."""
    rows = answer_rows(view, is_complete=context.is_complete)
    table = of_slots(view, context.table)
    if len(table) == 1:
        joint = _at_nodes(rows, table[0])
    else:
        each = jnp.einsum("rn,srq->snq", rows, table)
        joint = jnp.sum(each * view.in_slot[..., None], axis=0)
    top = jnp.max(joint, axis=1)
    weight = jnp.exp(joint - top[:, None])
    total = jnp.sum(weight, axis=1)
    return weight / total[:, None], top + jnp.log(total)


def _at_nodes(
    rows: Float[Array, "rows models"], table: Float[Array, "rows nodes"]
) -> Float[Array, "models nodes"]:
    """`rows' table`, in pieces."""
    pieces = _pieces(rows)
    tables = jnp.broadcast_to(table, (len(pieces), *table.shape))
    return jnp.einsum("prn,prq->pnq", pieces, tables).reshape(-1, table.shape[1])


def _over_models(
    rows: Float[Array, "rows models"], weight: Float[Array, "models nodes"]
) -> Float[Array, "rows nodes"]:
    """`rows weight`, in pieces."""
    pieces = _pieces(rows)
    weights = weight.reshape(len(pieces), -1, weight.shape[1])
    return jnp.sum(jnp.einsum("prn,pnq->prq", pieces, weights), axis=0)


def _pieces(rows: Float[Array, "rows models"]) -> Float[Array, "pieces rows piece"]:
    """Models by `_PIECE` where they divide: XLA takes such a product of matrices on one core."""
    n_rows, n_models = rows.shape
    size = _PIECE if n_models % _PIECE == 0 else n_models
    return rows.reshape(n_rows, -1, size).transpose(1, 0, 2)


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
    *,
    is_complete: bool = False,
) -> NodePass:
    """The E-step: log-likelihood, masses and expected counts at the current parameters.

    Args:
        blocks: of the transposed matrix, grouped by population.
        multiplicity: how many models share each pattern of responses; 0 for padding.
        items: current items.
        populations: current distributions of ability.
        grid: their nodes.
        is_complete: every cell (but those of padding) is one answer.
    """

    def visit(
        view: BlockView, count: Float[Array, " models"], context: NodeContext
    ) -> tuple[BlockSums, None]:
        posterior, log_likelihood = node_posterior(view, context)
        counts = count_block(view, count, posterior, is_complete=is_complete)
        return BlockSums(count @ log_likelihood, counts), None

    context = node_context(items, populations, grid, is_complete=is_complete)
    sums, _ = scan_blocks(visit, blocks, multiplicity, context, items.slope.dtype)
    return node_sums(sums.total, sums.by_group, context)


def count_block(
    view: BlockView,
    count: Float[Array, " models"],
    posterior: Float[Array, "models nodes"],
    *,
    is_complete: bool,
) -> Float[Array, "slots rows nodes"]:
    """A block's expected right and wrong answers and models at the nodes, by slot."""
    rows, counted = answer_rows(view, is_complete=is_complete), posterior * count[:, None]
    if len(view.in_slot) == 1:
        return _over_models(rows, counted)[None]
    return jnp.einsum("rn,snq->srq", rows, view.in_slot[..., None] * counted)


def node_sums(
    log_likelihood: Float[Array, ""],
    by_group: Float[Array, "populations rows nodes"],
    context: NodeContext,
) -> NodePass:
    """The sums of all blocks, with the nodes of all populations side by side."""
    answered, mass = by_group[:, :-1], by_group[:, -1]
    if context.is_complete:
        wrong = jnp.maximum(mass[:, None] - answered, 0)
        answered = jnp.concatenate([answered, wrong], axis=1)
    side_by_side = answered.transpose(1, 0, 2).reshape(answered.shape[1], -1)
    right, wrong = jnp.split(side_by_side, 2)
    node = context.node
    counts = ExpectedCounts(node.reshape(-1, node.shape[-1]), right, wrong)
    return NodePass(log_likelihood, mass, counts)

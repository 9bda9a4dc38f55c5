"""One pass over all items integrated out on a grid: two matrix products around one exponential.

With tables of `log P` and `log(1 - P)` of every model at every node, `[items, answers] @ [answers,
nodes]` are a block's log-likelihoods and `[answers, items] @ [items, nodes]` the expected right and
wrong answers at the nodes. It is `node_pass` with the sides swapped, but for two things: items of
one group meet other tables than those of another (the effects), and there are many items and nodes,
so that every pass over `[items, nodes]` counts.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from irtjax.data.blocks import Blocks
from irtjax.fit.blockwise import BlockSums, BlockView, scan_blocks
from irtjax.fit.item_grid import ItemGrid
from irtjax.fit.item_pass import ItemPosteriors
from irtjax.fit.kernel import EffectStatistics, ModelStatistics
from irtjax.fit.node_pass import answers
from irtjax.fit.packed import pair_index, quadratic
from irtjax.model.pytree import pytree_dataclass
from irtjax.model.quadrature import normal_expectation
from irtjax.model.response import Asymptotes, cell_derivatives, log_probabilities

__all__ = [
    "GridPass",
    "GridSums",
    "GridTables",
    "ModelSpread",
    "NodeLogits",
    "grid_counts",
    "grid_posteriors",
    "grid_sums",
    "grid_tables",
    "items_per_block",
    "node_logits",
]

# Likelihoods a block: larger ones leave the second-level cache, smaller ones add up the groups'
# sums too often.
_CELLS_PER_BLOCK = 1 << 18
_ITEMS_PER_BLOCK = (64, 1024)
# Gauss-Hermite nodes over the posterior of a model's logit, whose sd is hardly ever above a half.
_N_NODES = 5


@pytree_dataclass
class ModelSpread:
    """Posteriors of abilities and effects around their means: covariances and variances."""

    ability: Float[Array, "models dims dims"]
    effect: Float[Array, "models groups"] | None


@pytree_dataclass
class NodeLogits:
    """Mean and variance of each model's logit at the nodes, by group."""

    mean: Float[Array, "groups models nodes"]
    variance: Float[Array, "groups models nodes"]


@pytree_dataclass
class GridTables:
    """Rows that a block's answers meet, by group (one for all where they share all parameters).

    `log P` of each model at the nodes, `log(1 - P)` of each (both expected under the posteriors of
    the models), and the log-weights of the nodes.
    """

    row: Float[Array, "groups rows nodes"]


@pytree_dataclass
class GridPass:
    """Sums of a pass: the marginal log-likelihood, expected answers, and items at each node."""

    log_likelihood: Float[Array, ""]
    right: Float[Array, "groups models nodes"]
    wrong: Float[Array, "groups models nodes"]
    mass: Float[Array, "groups nodes"]


@pytree_dataclass
class GridSums:
    """What the M-steps need of the expected answers: see `FixedSums` and `GroupMoments`."""

    models: ModelStatistics
    effects: EffectStatistics | None
    answers: Float[Array, "groups four"] | None


def items_per_block(n_nodes: int, n_items: int, n_shards: int) -> int:
    """Items a block, a power of two, so that likelihoods stay in cache."""
    low, high = _ITEMS_PER_BLOCK
    size = min(max(1 << (_CELLS_PER_BLOCK // n_nodes).bit_length() - 1, low), high)
    return min(size, max(8, 1 << (-(-n_items // n_shards) - 1).bit_length()))


def node_logits(
    ability: Float[Array, "models dims"],
    effect: Float[Array, "models groups"] | None,
    spread: ModelSpread,
    node: Float[Array, "groups nodes coordinates"],
) -> NodeLogits:
    """Logits of every model at each group's nodes, under the posteriors of the models."""
    slope = node[..., :-1]
    mean = jnp.einsum("nk,gqk->gnq", ability, slope) + node[:, None, :, -1]
    rows, columns = pair_index(ability.shape[1])
    coefficients = quadratic(slope.reshape(-1, slope.shape[-1])).reshape(*slope.shape[:2], -1)
    variance = jnp.einsum("np,gqp->gnq", spread.ability[:, rows, columns], coefficients)
    if effect is not None and spread.effect is not None:
        mean = mean + effect.T[:, :, None]
        variance = variance + spread.effect.T[:, :, None]
    return NodeLogits(mean, jnp.maximum(variance, 0))


def grid_tables(
    logit: NodeLogits, log_weight: Float[Array, "groups nodes"], asymptotes: Asymptotes | None
) -> GridTables:
    """Computed once a pass, not once a block."""
    at_nodes = _at_nodes(asymptotes)
    log_p, log_not_p = normal_expectation(
        lambda value: log_probabilities(value, at_nodes), logit.mean, logit.variance, _N_NODES
    )
    return GridTables(jnp.concatenate([log_p, log_not_p, log_weight[:, None]], axis=1))


def grid_counts(blocks: Blocks, tables: GridTables) -> GridPass:
    """The E-step over all items."""
    is_shared = tables.row.shape[0] == 1

    def visit(view: BlockView, _: None, tables: GridTables) -> tuple[BlockSums, None]:
        cells, likelihood, log_likelihood = _evaluated(view, tables)
        counts = cells.reshape(-1, cells.shape[-1]) @ likelihood
        counts = counts.reshape(*cells.shape[:2], -1)
        total = jnp.sum(jnp.where(view.is_item, log_likelihood, jnp.zeros_like(log_likelihood)))
        if is_shared:
            return BlockSums((total, counts), None), None
        return BlockSums((total, None), counts), None

    sums, _ = scan_blocks(visit, blocks, None, tables, tables.row.dtype)
    counts = sums.total[1] if is_shared else sums.by_group
    n = blocks.n_models
    return GridPass(sums.total[0], counts[:, :n], counts[:, n : 2 * n], counts[:, 2 * n])


def _evaluated(
    view: BlockView, tables: GridTables
) -> tuple[Float[Array, "slots rows items"], Float[Array, "items nodes"], Float[Array, " items"]]:
    """Answers over the likelihood of their item, likelihoods at the nodes, log-likelihoods.

    The likelihoods are relative to the item's largest, and the answers are divided by their sum:
    a product of the two sums over posteriors without another pass over `[items, nodes]`.
    """
    right, wrong = answers(view)
    cells = jnp.concatenate([right, wrong, jnp.ones_like(right[:1])])
    row = tables.row
    if row.shape[0] == 1:
        cells = jnp.where(view.is_item, cells, jnp.zeros_like(cells))[None]
    else:
        # Unused slots point past the last group; no item is in them.
        row = row[jnp.minimum(view.slot_group, row.shape[0] - 1)]
        cells = view.in_slot[:, None] * cells[None]
    joint = cells.reshape(-1, cells.shape[-1]).T @ row.reshape(-1, row.shape[-1])
    largest = jnp.max(joint, axis=1)
    likelihood = jnp.exp(joint - largest[:, None])
    total = jnp.sum(likelihood, axis=1)
    return cells / total, likelihood, largest + jnp.log(total)


def grid_posteriors(blocks: Blocks, tables: GridTables, grid: ItemGrid) -> ItemPosteriors:
    """Every item's posterior before any change of frame: one normal a level of the intercept.

    Share, mean and covariance of a level are those of its nodes, so that the moments of the whole
    posterior are kept; lost is the shape among the slopes of one level.
    """
    size, n_levels = grid.dims + 1, grid.n_intercepts
    base = grid.node.reshape(-1, n_levels, size)
    n_pairs = len(pair_index(size)[0])
    rows, columns = pair_index(grid.dims)

    def visit(view: BlockView, _: None, tables: GridTables) -> tuple[BlockSums, ItemPosteriors]:
        cells, likelihood = _evaluated(view, tables)[:2]
        posterior = likelihood * jnp.sum(cells[:, -1], axis=0)[:, None]
        posterior = posterior.reshape(len(posterior), -1, n_levels)
        share = jnp.sum(posterior, axis=1)
        within = posterior / jnp.maximum(share, jnp.finfo(share.dtype).tiny)[:, None]
        place = jnp.asarray(base[:, 0, :-1], share.dtype)
        slope = jnp.einsum("jsl,sk->lkj", within, place)
        # About the mean: `E[a a'] - E[a] E[a]'` is negative in its rounding at a single node.
        away = place.T[:, :, None, None] - slope.transpose(1, 0, 2)[:, None]
        weighted = within.transpose(1, 2, 0)
        spread = jnp.stack(
            [
                jnp.sum(weighted * away[a] * away[b], axis=0)
                for a, b in zip(rows, columns, strict=True)
            ],
            axis=1,
        )
        intercept = jnp.asarray(base[0, :, -1], share.dtype)[:, None, None]
        intercept = jnp.broadcast_to(intercept, (n_levels, 1, slope.shape[-1]))
        covariance = jnp.zeros((n_levels, n_pairs, slope.shape[-1]), share.dtype)
        covariance = covariance.at[:, : len(rows)].set(spread)
        mean = jnp.concatenate([slope, intercept], axis=1)
        return BlockSums(None, None), ItemPosteriors(mean, covariance, share.T)

    _, items = scan_blocks(visit, blocks, None, tables, tables.row.dtype)
    assert isinstance(items, ItemPosteriors)
    return items


def grid_sums(
    found: GridPass,
    logit: NodeLogits,
    node: Float[Array, "groups nodes coordinates"],
    asymptotes: Asymptotes | None,
    has_effects: bool,
) -> GridSums:
    """Score and information of abilities and effects from the expected answers.

    Args:
        found: the E-step.
        logit: of the abilities and effects to step from.
        node: each group's nodes.
        asymptotes: of each group.
        has_effects: whether to sum for effects.
    """
    answers = jnp.ones((), logit.mean.dtype), jnp.zeros((), logit.mean.dtype)
    at_nodes = _at_nodes(asymptotes)
    of_right, of_wrong = normal_expectation(
        lambda value: [cell_derivatives(value, answer, at_nodes) for answer in answers],
        logit.mean,
        logit.variance,
        _N_NODES,
    )
    first = found.right * of_right.first + found.wrong * of_wrong.first
    second = found.right * of_right.negative_second + found.wrong * of_wrong.negative_second
    # As in the kernel: of what the Newton step divides by, the positive part.
    second = jnp.maximum(second, 0)
    slope = node[..., :-1]
    rows, columns = pair_index(slope.shape[-1])
    models = ModelStatistics(
        jnp.einsum("gnq,gqk->nk", first, slope),
        jnp.einsum("gnq,gqp->np", second, slope[..., rows] * slope[..., columns]),
    )
    effects, known = None, None
    if has_effects:
        cross = jnp.einsum("gnq,gqk->gkn", second, slope)
        effects = EffectStatistics(jnp.sum(first, axis=2), jnp.sum(second, axis=2), cross)
    if of_right.known_right is not None and of_wrong.known_wrong is not None:
        counts = (
            found.right * of_right.known_right,
            found.wrong * of_wrong.known_wrong,
            found.right,
            found.wrong,
        )
        known = jnp.stack([jnp.sum(each, axis=(1, 2)) for each in counts], axis=1)
    return GridSums(models, effects, known)


def _at_nodes(asymptotes: Asymptotes | None) -> Asymptotes | None:
    return jax.tree.map(lambda leaf: leaf[:, None, None], asymptotes)

"""Abilities of models that are integrated out: posterior mean (EAP), covariance, expected score."""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from irtjax.data.blocks import Blocks
from irtjax.fit.blockwise import BlockSums, BlockView, scan_blocks
from irtjax.fit.item_information import ScoreTables, mean_scores, score_tables
from irtjax.fit.item_step import ItemModel, ItemParameters
from irtjax.fit.node_pass import NodeContext, node_context, node_posterior, of_slots
from irtjax.fit.populations import Grid, Populations
from irtjax.model.pytree import pytree_dataclass

__all__ = ["ModelPosteriors", "at_most_prior", "model_posteriors"]


@pytree_dataclass
class ModelPosteriors:
    """Posterior of each model, blocks first: mean and covariance of its abilities.

    `covariance` is the posterior's and what the errors of the items add to it (at most up to the
    population's variance), `posterior_only` the posterior's alone, never less than what nodes leave
    open: a place in the cell around one of them, uniform, has the variance `distance^2 / 12`.
    """

    mean: Float[Array, "blocks models dims"]
    covariance: Float[Array, "blocks models dims dims"]
    posterior_only: Float[Array, "blocks models dims dims"]
    expected_score: Float[Array, "blocks models"]


def model_posteriors(
    blocks: Blocks,
    items: ItemParameters,
    item_covariance: Float[Array, "items coordinates coordinates"],
    populations: Populations,
    grid: Grid,
    model: ItemModel,
    *,
    is_complete: bool = False,
) -> ModelPosteriors:
    """The pass over all models.

    The mean depends on item j's parameters through `d mean / d z_j = Cov(theta, s_ij)`, the
    posterior covariance of the ability with the cell's score: its errors add
    `sum_j Cov(theta, s_ij) V_j Cov(theta, s_ij)'` (DESIGN 4.4).
    """

    def visit(view: BlockView, _: Any, context: tuple) -> tuple[BlockSums, ModelPosteriors]:
        nodes, tables, item_covariance, open_variance = context
        posterior = node_posterior(view, nodes)[0]
        node = of_slots(view, nodes.node)
        mean = jnp.einsum("sn,nq,sqk->nk", view.in_slot, posterior, node)
        away = jnp.einsum("sn,sqk->knq", view.in_slot, node) - mean.T[:, :, None]
        score = jnp.einsum("sn,nq,sq->n", view.in_slot, posterior, of_slots(view, nodes.mean_p))
        # About the mean, not `E[theta^2] - mean^2`: that is negative in its rounding where a
        # posterior is at one node.
        spread = jnp.einsum("nq,knq,lnq->nkl", posterior, away, away)
        spread = _at_least(spread, view.in_slot.T @ of_slots(view, open_variance))
        coupling = _coupling(view, posterior, away, tables)
        spread_out = jnp.einsum("kajn,jab->kbjn", coupling, item_covariance)
        # As sums: a product of each model's own matrices takes XLA four times as long.
        added = jnp.sum(spread_out[:, None] * coupling, axis=(2, 3)).transpose(2, 0, 1)
        total = at_most_prior(spread, added, _prior_variance(view, nodes))
        return BlockSums(None, None), ModelPosteriors(mean, total, spread, score)

    nodes = node_context(items, populations, grid, is_complete=is_complete)
    scale = jnp.sum(populations.factor**2, axis=2)
    tables = score_tables(model, items, nodes.node)
    context = (nodes, tables, item_covariance, scale * (grid.distance**2 / 12))
    _, found = scan_blocks(visit, blocks, None, context, items.slope.dtype)
    assert isinstance(found, ModelPosteriors)
    return found


def _at_least(
    spread: Float[Array, "models dims dims"], least: Float[Array, "models dims"]
) -> Float[Array, "models dims dims"]:
    """Covariances whose variances are no smaller than these."""
    missing = jnp.maximum(least - jnp.diagonal(spread, axis1=1, axis2=2), 0)
    return spread + missing[:, :, None] * jnp.eye(spread.shape[1], dtype=spread.dtype)


def _prior_variance(view: BlockView, context: NodeContext) -> Float[Array, "models dims"]:
    """Variance of each model's population."""
    weight, node = jnp.exp(context.log_weight), context.node
    mean = jnp.einsum("gq,gqk->gk", weight, node)
    variance = jnp.einsum("gq,gqk->gk", weight, (node - mean[:, None]) ** 2)
    return view.in_slot.T @ of_slots(view, variance)


def at_most_prior(
    spread: Float[Array, "models dims dims"],
    added: Float[Array, "models dims dims"],
    prior: Float[Array, "models dims"],
) -> Float[Array, "models dims dims"]:
    """`spread + added`, with no more of `added` than leaves a variance below the prior's.

    What the errors of the items add is linear in them. An item of which nothing is known (one item:
    its slope has the prior's error, 10) would otherwise make an ability less known than without
    responses.
    """
    have, more = (jnp.diagonal(part, axis1=1, axis2=2) for part in (spread, added))
    room = jnp.maximum(prior - have, 0)
    share = jnp.min(room / jnp.maximum(more, jnp.maximum(room, 1e-12)), axis=1)
    return spread + share[:, None, None] * added


def _coupling(
    view: BlockView,
    posterior: Float[Array, "models nodes"],
    away: Float[Array, "dims models nodes"],
    tables: ScoreTables,
) -> Float[Array, "dims coordinates items models"]:
    """`E[(theta - mean) s_ij]` of every cell, dim by dim."""
    return jnp.stack([mean_scores(view, posterior * each, tables) for each in away])

"""One pass over all items: every posterior renewed, every model's statistics summed.

The items of a group come from a normal distribution of `(slope, intercept)`, or from a mixture of
normals: then an item has one posterior a component, and a share in each.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from irtjax.data.blocks import Blocks
from irtjax.fit.blockwise import BlockSums, BlockView, scan_blocks
from irtjax.fit.hyperparameters import GroupMoments, ItemDistribution, packed_precision
from irtjax.fit.kernel import (
    EffectStatistics,
    FixedSide,
    ItemPrior,
    ModelStatistics,
    Posterior,
    effect_statistics,
    evidence,
    expected_cells,
    model_statistics,
    update_posterior,
)
from irtjax.fit.packed import products
from irtjax.model.pytree import pytree_dataclass, static_field
from irtjax.model.response import Asymptotes, CellDerivatives

__all__ = [
    "ItemPosteriors",
    "PassContext",
    "PassResult",
    "item_priors",
    "pass_context",
    "renew_items",
    "seen_by_block",
]


@pytree_dataclass
class ItemPosteriors:
    """Posteriors of all items, blocks first: one normal a component, and its share."""

    mean: Float[Array, "blocks components coordinates items"]
    covariance: Float[Array, "blocks components pairs items"]
    share: Float[Array, "blocks components items"]


@pytree_dataclass
class PassContext:
    """What a pass holds fixed, in the form the blocks use."""

    design: Float[Array, "models coordinates"]
    effect: Float[Array, "models groups"] | None
    prior_mean: Float[Array, "components coordinates groups"]
    precision: Float[Array, "components pairs groups"]
    log_determinant: Float[Array, "components groups"]
    log_weight: Float[Array, "components groups"]
    asymptotes: Asymptotes | None
    is_free: tuple[bool, ...] = static_field()
    n_nodes: int = static_field()


@pytree_dataclass
class PassResult:
    """Sums of a pass; the bound is of the renewed posteriors under the parameters held fixed."""

    models: ModelStatistics
    effects: EffectStatistics | None
    moments: GroupMoments
    bound: Float[Array, ""]


def pass_context(
    ability: Float[Array, "models dims"],
    effect: Float[Array, "models groups"] | None,
    distribution: ItemDistribution,
    asymptotes: Asymptotes | None,
    is_free: tuple[bool, ...],
    n_nodes: int,
) -> PassContext:
    """Prepare the parameters for the blocks: precisions once a group, not once an item."""
    precision, log_determinant = packed_precision(distribution.covariance, is_free)
    return PassContext(
        jnp.concatenate([ability, jnp.ones_like(ability[:, :1])], axis=1),
        effect,
        distribution.mean.transpose(1, 2, 0),
        precision.transpose(1, 2, 0),
        log_determinant.T,
        distribution.log_weight.T,
        asymptotes,
        is_free,
        n_nodes,
    )


def seen_by_block(view: BlockView, context: PassContext) -> FixedSide:
    """The fixed side as one block sees it."""
    asymptotes = context.asymptotes
    if asymptotes is not None:
        asymptotes = jax.tree.map(lambda leaf: leaf[view.group], asymptotes)
    offset = None
    if context.effect is not None:
        # Out-of-range slots are clipped to the last group; no item is in them.
        offset = context.effect[:, view.slot_group] @ view.in_slot
    return FixedSide(context.design, offset, asymptotes, context.n_nodes)


def item_priors(view: BlockView, context: PassContext) -> list[ItemPrior]:
    """Prior of the block's items under each component."""
    return [
        ItemPrior(
            context.prior_mean[c][:, view.group],
            context.precision[c][:, view.group],
            context.log_determinant[c][view.group],
            context.is_free,
        )
        for c in range(context.prior_mean.shape[0])
    ]


def renew_items(
    blocks: Blocks, posteriors: ItemPosteriors, context: PassContext
) -> tuple[PassResult, ItemPosteriors]:
    """Renew each item's posterior by one Newton step, then sum the statistics at the new ones."""
    sums, renewed = scan_blocks(_renew_block, blocks, posteriors, context, context.design.dtype)
    models, bound = sums.total
    effects, moments = sums.by_group
    return PassResult(models, effects, moments, bound), renewed


def _renew_block(
    view: BlockView, old: ItemPosteriors, context: PassContext
) -> tuple[BlockSums, ItemPosteriors]:
    fixed = seen_by_block(view, context)
    priors = item_priors(view, context)
    renewed = [
        update_posterior(view.data, fixed, prior, Posterior(mean, covariance))
        for prior, mean, covariance in zip(priors, old.mean, old.covariance, strict=True)
    ]
    bounds = jnp.stack(
        [
            evidence(view.data, fixed, prior, posterior)
            for prior, posterior in zip(priors, renewed, strict=True)
        ]
    )
    bounds = bounds + context.log_weight[:, view.group]
    share = jax.nn.softmax(bounds, axis=0)
    bound = jnp.sum(jnp.where(view.is_item, jax.nn.logsumexp(bounds, axis=0), 0))
    models, effects, moments = None, None, []
    for prior, posterior, part in zip(priors, renewed, share, strict=True):
        cells = expected_cells(view.data, fixed, posterior)
        cells = jax.tree.map(lambda leaf, part=part: leaf * part, cells)
        models = _plus(models, model_statistics(cells, fixed, posterior))
        if fixed.offset is not None:
            effects = _plus(effects, effect_statistics(cells, view.in_slot, posterior))
        moments.append(_moments(view, prior, posterior, cells, part))
    new = ItemPosteriors(
        jnp.stack([posterior.mean for posterior in renewed]),
        jnp.stack([posterior.covariance for posterior in renewed]),
        share,
    )
    # Components become the second axis: slots, and then groups, stay first.
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves, axis=1), *moments)
    return BlockSums((models, bound), (effects, stacked)), new


def _plus(total, part):  # type: ignore[no-untyped-def]
    return part if total is None else jax.tree.map(jnp.add, total, part)


def _moments(
    view: BlockView,
    prior: ItemPrior,
    posterior: Posterior,
    cells: CellDerivatives,
    share: Float[Array, " items"],
) -> GroupMoments:
    in_slot = view.in_slot * share
    away = posterior.mean - prior.mean
    squares = products(away.T).T + posterior.covariance
    answers = None
    if cells.known_right is not None and cells.known_wrong is not None:
        right = view.data.weight * view.data.response
        wrong = view.data.weight - right
        counts = [cells.known_right, cells.known_wrong, right * share, wrong * share]
        answers = view.in_slot @ jnp.stack([jnp.sum(each, axis=0) for each in counts], axis=1)
    return GroupMoments(jnp.sum(in_slot, axis=1), in_slot @ away.T, in_slot @ squares.T, answers)

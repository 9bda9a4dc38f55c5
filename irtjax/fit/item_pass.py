"""One pass over all items: every posterior renewed, every model's statistics summed.

The items of a group come from a normal distribution of `(slope, intercept)`, or from a mixture of
normals: then an item has one posterior a component, and a share in each.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from irtjax.data.blocks import Blocks
from irtjax.fit.blockwise import BlockSums, BlockView, scan_blocks
from irtjax.fit.cell_index import to_cells, total_over_models
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
from irtjax.fit.packed import pack, products
from irtjax.model.pytree import pytree_dataclass, static_field
from irtjax.model.response import Asymptotes, CellDerivatives

__all__ = [
    "ItemPosteriors",
    "PassContext",
    "PassResult",
    "item_asymptotes",
    "item_priors",
    "pass_context",
    "prior_group",
    "renew_items",
    "seen_by_block",
]

_MOST_WRITTEN_OUT = 8


@pytree_dataclass
class ItemPosteriors:
    """Posteriors of all items, blocks first: one normal a component, and its share."""

    mean: Float[Array, "blocks components coordinates items"]
    covariance: Float[Array, "blocks components pairs items"]
    share: Float[Array, "blocks components items"]


@pytree_dataclass
class PassContext:
    """What a pass holds fixed, in the form the blocks use, and what it computes.

    Without `renews` the items stay as they are: only the statistics are summed. Without `bounds`
    the bound is 0, and shares of components stay: a pass then takes half the time.
    """

    design: Float[Array, "models coordinates"]
    effect: Float[Array, "models groups"] | None
    prior_mean: Float[Array, "components coordinates groups"]
    precision: Float[Array, "components pairs groups"]
    log_determinant: Float[Array, "components groups"]
    log_weight: Float[Array, "components groups"]
    asymptotes: Asymptotes | None
    is_free: tuple[bool, ...] = static_field()
    n_nodes: int = static_field()
    spread: Float[Array, "models pairs"] | None = None
    effect_spread: Float[Array, "models groups"] | None = None
    renews: bool = static_field(default=True)
    bounds: bool = static_field(default=True)


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
    ability_covariance: Float[Array, "models dims dims"] | None = None,
    effect_spread: Float[Array, "models groups"] | None = None,
) -> PassContext:
    """Prepare the parameters for the blocks: precisions once a group, not once an item.

    Abilities and effects are known without the covariances (variances) of their posteriors.
    """
    spread = None
    if ability_covariance is not None:
        # (theta, 1): the last coordinate is known.
        padded = jnp.pad(ability_covariance, ((0, 0), (0, 1), (0, 1)))
        spread = pack(padded).T
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
        spread,
        effect_spread,
    )


def prior_group(
    group: Int[Array, "..."], of_groups: Float[Array, "... groups"]
) -> Int[Array, "..."]:
    """Where a group's hyperparameters are: at its own index, or at 0 where all groups share one."""
    return jnp.minimum(group, of_groups.shape[-1] - 1)


def item_asymptotes(view: BlockView, context: PassContext) -> Asymptotes | None:
    """Guessing and feasibility of each item of the block."""
    return jax.tree.map(lambda leaf: leaf[prior_group(view.group, leaf)], context.asymptotes)


def seen_by_block(view: BlockView, context: PassContext) -> FixedSide:
    """The fixed side as one block sees it."""

    def by_cell(
        values: Float[Array, "models groups"] | None,
    ) -> Float[Array, "rows columns"] | None:
        if values is None:
            return None
        if view.index is not None:
            return values[view.index.model, view.group[view.index.item]]
        # Out-of-range slots are clipped to the last group; no item is in them.
        return values[:, view.slot_group] @ view.in_slot

    return FixedSide(
        context.design,
        by_cell(context.effect),
        item_asymptotes(view, context),
        context.n_nodes,
        context.spread,
        by_cell(context.effect_spread),
        view.index,
    )


def item_priors(view: BlockView, context: PassContext) -> ItemPrior:
    """Prior of the block's items, components first."""
    group = prior_group(view.group, context.log_weight)
    return ItemPrior(
        context.prior_mean[:, :, group],
        context.precision[:, :, group],
        context.log_determinant[:, group],
        context.is_free,
    )


def renew_items(
    blocks: Blocks,
    posteriors: ItemPosteriors,
    context: PassContext,
    held_scale: Float[Array, "blocks items"] | None = None,
) -> tuple[PassResult, ItemPosteriors]:
    """Renew each item's posterior by one Newton step, then sum the statistics at the new ones.

    Posteriors of items that are held (`held_scale` above 0, see `HeldItems`) stay, and models meet
    their curves `E[P]`.
    """
    given = (posteriors, held_scale)
    sums, renewed = scan_blocks(_renew_block, blocks, given, context, context.design.dtype)
    models, bound = sums.total
    effects, moments = sums.by_group
    return PassResult(models, effects, moments, bound), renewed


def _renew_block(
    view: BlockView,
    given: tuple[ItemPosteriors, Float[Array, " items"] | None],
    context: PassContext,
) -> tuple[BlockSums, ItemPosteriors]:
    old, held_scale = given
    fixed = seen_by_block(view, context)
    priors = item_priors(view, context)

    def met(posterior: Posterior) -> Posterior:
        return posterior if held_scale is None else _as_met(held_scale, posterior)

    def renew(component: tuple[ItemPrior, Posterior]) -> tuple[Posterior, Array]:
        prior, posterior = component
        if context.renews:
            renewed = update_posterior(view.data, fixed, prior, posterior)
            posterior = renewed if held_scale is None else _held(held_scale, posterior, renewed)
        if not context.bounds:
            return posterior, jnp.zeros_like(posterior.mean[0])
        return posterior, evidence(view.data, fixed, prior, posterior, met(posterior))

    def summed(component: tuple[ItemPrior, Posterior, Array]) -> tuple:
        prior, posterior, share = component
        seen = met(posterior)
        cells = expected_cells(view.data, fixed, seen)
        cells = jax.tree.map(lambda leaf: leaf * to_cells(view.index, share), cells)
        effects = None
        if fixed.offset is not None:
            effects = effect_statistics(cells, view.in_slot, seen, view.index)
        models = model_statistics(cells, fixed, seen)
        return models, effects, _moments(view, prior, posterior, cells, share)

    renewed, bounds = _each(renew, (priors, Posterior(old.mean, old.covariance)))
    bounds = bounds + context.log_weight[:, prior_group(view.group, context.log_weight)]
    share, bound = old.share, jnp.zeros((), bounds.dtype)
    if context.bounds:
        share = jax.nn.softmax(bounds, axis=0)
        bound = jnp.sum(jnp.where(view.is_item, jax.nn.logsumexp(bounds, axis=0), 0))
    models, effects, moments = _each(summed, (priors, renewed, share))
    models, effects = jax.tree.map(lambda leaf: jnp.sum(leaf, axis=0), (models, effects))
    # Slots, and then groups, are the first axis of what is summed by group.
    moments = jax.tree.map(lambda leaf: jnp.moveaxis(leaf, 0, 1), moments)
    new = ItemPosteriors(renewed.mean, renewed.covariance, share)
    return BlockSums((models, bound), (effects, moments)), new


def _held(held_scale: Float[Array, " items"], old: Posterior, new: Posterior) -> Posterior:
    return jax.tree.map(lambda a, b: jnp.where(held_scale > 0, a, b), old, new)


def _as_met(held_scale: Float[Array, " items"], posterior: Posterior) -> Posterior:
    """The items as models meet them: those that are held known, with flatter curves."""
    is_held = held_scale > 0
    return Posterior(
        jnp.where(is_held, held_scale * posterior.mean, posterior.mean),
        jnp.where(is_held, 0, posterior.covariance),
    )


def _each(function: Callable[[Any], Any], components: Any) -> Any:
    """The function of each component, stacked.

    Written out: as `lax.map` the pass took three times as long with four components (.57 against
    .19 CPU seconds on W1 at four dims), and compiled no faster. Of more than `_MOST_WRITTEN_OUT`
    each adds .7 seconds to what compiles.
    """
    n_components = jax.tree.leaves(components)[0].shape[0]
    if n_components > _MOST_WRITTEN_OUT:
        return jax.lax.map(function, components)
    results = [
        function(jax.tree.map(lambda leaf, c=c: leaf[c], components)) for c in range(n_components)
    ]
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *results)


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
        counts = [
            total_over_models(view.index, each)
            for each in (cells.known_right, cells.known_wrong, right, wrong)
        ]
        counts[2:] = [count * share for count in counts[2:]]
        answers = view.in_slot @ jnp.stack(counts, axis=1)
    return GroupMoments(jnp.sum(in_slot, axis=1), in_slot @ away.T, in_slot @ squares.T, answers)

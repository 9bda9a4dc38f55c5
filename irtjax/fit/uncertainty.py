"""Standard errors of abilities and asymptotes: one more pass at the last state.

Abilities (DESIGN 4.4): inverse observed information with the effects profiled out, plus the
spread that the items' posteriors put on the estimate, `H^-1 + H^-1 (sum_j B_j V_j B_j') H^-1` with
B_j the derivative of the model's score in item j's parameters. To first order this is the inverse
of the profile information, and it is always positive definite.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from irtjax.data.blocks import Blocks
from irtjax.fit.blockwise import BlockSums, BlockView, scan_blocks
from irtjax.fit.cell_index import (
    gathered,
    sum_applied_over_items,
    sum_by_slot,
    sum_over_items,
    total_over_models,
)
from irtjax.fit.item_pass import ItemPosteriors, PassContext, seen_by_block
from irtjax.fit.kernel import (
    EffectStatistics,
    FixedSide,
    Posterior,
    effect_statistics,
    expected_cells,
    logit_moments,
)
from irtjax.fit.packed import (
    pair_index,
    products,
    unpack,
    unpack_index,
)
from irtjax.model.priors import Priors
from irtjax.model.pytree import pytree_dataclass
from irtjax.model.response import Asymptotes, CellDerivatives

__all__ = [
    "FEWEST_CLUSTERS",
    "FEWEST_EFFECTIVE_CLUSTERS",
    "AbilityErrors",
    "ability_errors",
    "asymptote_errors",
    "collapse",
    "uncertainty_sums",
]

# The sandwich needs this many benchmarks to mean anything (16 equal ones cover .93, 11 unequal
# ones .85, one is nonsense).
FEWEST_CLUSTERS = 8
# And as many equal ones must carry the information, or the error is empty: of a dominant benchmark
# the residual score is near 0 whatever the truth. At 2.7 of 11 t intervals were 5.5 errors wide and
# covered .985 to .997; at 3.6 they were 3.6 wide and covered .958 to .984 (docs/design.md).
FEWEST_EFFECTIVE_CLUSTERS = 3.0


@pytree_dataclass
class UncertaintySums:
    """Sums over items: information and spread of each ability's score."""

    information: Float[Array, "models pairs"]
    spread: Float[Array, "models dims dims"]


@pytree_dataclass
class GroupSums:
    """Sums over the items of a group: scores and information of abilities, effects, asymptotes."""

    score: Float[Array, "groups dims models"]
    information: Float[Array, "groups pairs models"]
    effects: EffectStatistics | None
    asymptotes: Float[Array, "groups pairs"] | None


@pytree_dataclass
class AbilityErrors:
    """Covariance of each model's abilities; clustered standard errors (NaN where meaningless).

    `degrees_of_freedom` belongs to the clustered ones: `1 / sum(share^2) - 1` with the share of
    each benchmark in the variance of the ability, effects profiled out. Where that many equal
    benchmarks are below `FEWEST_EFFECTIVE_CLUSTERS`, `clustered` is NaN and the degrees of freedom
    say why; with fewer than `FEWEST_CLUSTERS` benchmarks both are NaN.
    """

    covariance: Float[Array, "models dims dims"]
    clustered: Float[Array, "models dims"]
    degrees_of_freedom: Float[Array, "models dims"]


def collapse(items: ItemPosteriors) -> ItemPosteriors:
    """One normal an item with the mean and covariance of its mixture."""
    share = items.share[:, :, None]
    mean = jnp.sum(share * items.mean, axis=1, keepdims=True)
    rows, columns = pair_index(items.mean.shape[2])
    away = items.mean - mean
    between = away[:, :, rows] * away[:, :, columns]
    covariance = jnp.sum(share * (items.covariance + between), axis=1, keepdims=True)
    return ItemPosteriors(mean, covariance, jnp.ones_like(items.share[:, :1]))


def uncertainty_sums(
    blocks: Blocks, items: ItemPosteriors, context: PassContext
) -> tuple[UncertaintySums, GroupSums]:
    """The pass, over `collapse`d posteriors."""
    sums, _ = scan_blocks(_visit, blocks, collapse(items), context, context.design.dtype)
    return sums.total, sums.by_group


def _visit(
    view: BlockView, collapsed: ItemPosteriors, context: PassContext
) -> tuple[BlockSums, None]:
    fixed = seen_by_block(view, context)
    posterior = Posterior(collapsed.mean[0], collapsed.covariance[0])
    cells = expected_cells(view.data, fixed, posterior)
    total = UncertaintySums(
        sum_over_items(fixed.index, cells.negative_second, _second_moment(posterior)),
        _score_spread(cells, fixed, posterior),
    )
    slope = posterior.mean[:-1]
    rows, columns = pair_index(slope.shape[0])
    grouped = GroupSums(
        _slot_score(view, cells, fixed, posterior),
        sum_by_slot(view.index, view.in_slot, cells.negative_second, slope[rows] * slope[columns]),
        None
        if fixed.offset is None
        else effect_statistics(cells, view.in_slot, posterior, view.index),
        None if fixed.asymptotes is None else _asymptote_scores(view, cells, fixed.asymptotes),
    )
    return BlockSums(total, grouped), None


def _second_moment(posterior: Posterior) -> Float[Array, "pairs items"]:
    slope = posterior.mean[:-1]
    rows, columns = pair_index(slope.shape[0])
    position = unpack_index(posterior.mean.shape[0])
    return slope[rows] * slope[columns] + posterior.covariance[position[rows, columns]]


def _score_spread(
    cells: CellDerivatives, fixed: FixedSide, posterior: Posterior
) -> Float[Array, "models dims dims"]:
    """`sum_j B V B'` with `B = l' [I, 0] - (-l'') slope x'`, expanded into matrix products."""
    n_models, size = fixed.design.shape
    dims = size - 1
    slope = posterior.mean[:dims]
    full = unpack(posterior.covariance, size)
    _, variance = logit_moments(fixed, posterior)
    first, second = cells.first, cells.negative_second
    direct = sum_over_items(fixed.index, first**2, full[:dims, :dims].reshape(dims * dims, -1))
    crossed = (full[:dims, None] * slope[None, :, None]).reshape(dims * dims, size, -1)
    design = gathered(fixed.index, fixed.design)
    crossed = sum_applied_over_items(fixed.index, first * second, crossed, design)
    outer = (slope[:, None] * slope[None]).reshape(dims * dims, -1)
    through = sum_over_items(fixed.index, second**2 * variance, outer)
    straight = (direct + through).reshape(n_models, dims, dims)
    crossed = crossed.reshape(n_models, dims, dims)
    return straight - crossed - crossed.transpose(0, 2, 1)


def _slot_score(
    view: BlockView, cells: CellDerivatives, fixed: FixedSide, posterior: Posterior
) -> Float[Array, "slots dims models"]:
    size = posterior.mean.shape[0]
    dims = size - 1
    spread = posterior.covariance[unpack_index(size)[:dims].ravel()]
    pulled = sum_by_slot(view.index, view.in_slot, cells.negative_second, spread)
    pulled = pulled.reshape(pulled.shape[0], dims, size, -1)
    return sum_by_slot(view.index, view.in_slot, cells.first, posterior.mean[:dims]) - jnp.einsum(
        "gaki,ik->gai", pulled, fixed.design
    )


def _asymptote_scores(
    view: BlockView, cells: CellDerivatives, asymptotes: Asymptotes
) -> Float[Array, "slots pairs"]:
    """Cross-products of the items' marginal scores in the asymptotes (Fisher's identity)."""
    assert cells.known_right is not None
    assert cells.known_wrong is not None
    right = view.data.weight * view.data.response
    wrong = view.data.weight - right
    known_right = total_over_models(view.index, cells.known_right)
    known_wrong = total_over_models(view.index, cells.known_wrong)
    guessed = total_over_models(view.index, right) - known_right
    missed = total_over_models(view.index, wrong) - known_wrong
    c, d = asymptotes.guessing, asymptotes.feasibility
    lower = jnp.where(c > 0, guessed / jnp.where(c > 0, c, 1) - missed / (1 - c), 0)
    upper = jnp.where(d < 1, known_right / d - known_wrong / jnp.where(d < 1, 1 - d, 1), 0)
    return view.in_slot @ products(jnp.stack([lower, upper], axis=1))


def ability_errors(
    sums: UncertaintySums,
    groups: GroupSums,
    effect: Float[Array, "models groups"] | None,
    effect_variance: Float[Array, ""],
    scale: Float[Array, "dims dims"] | None = None,
) -> AbilityErrors:
    """Covariances and clustered standard errors of the abilities from the pass's sums.

    Abilities have the prior covariance `scale scale'`, the identity without.
    """
    dims = sums.spread.shape[1]
    information = unpack(sums.information.T, dims).transpose(2, 0, 1)
    score, by_group = groups.score, groups.information
    if groups.effects is not None and effect is not None:
        precision = jnp.maximum(groups.effects.information, 0) + 1 / effect_variance
        coupling = groups.effects.cross / precision[:, None]
        rows, columns = pair_index(dims)
        by_group = by_group - coupling[:, rows] * groups.effects.cross[:, columns]
        information -= jnp.einsum("gki,gli->ikl", coupling, groups.effects.cross)
        effect_score = groups.effects.score - effect.T / effect_variance
        score = score - coupling * effect_score[:, None]
    if scale is not None:
        information = scale.T @ information @ scale
    unit = jnp.eye(dims, dtype=information.dtype)
    inverse = _inverse_of_at_least_the_prior(information + unit)
    if scale is not None:
        inverse = scale @ inverse @ scale.T
    covariance = inverse + inverse @ sums.spread @ inverse
    meat = jnp.einsum("gki,gli->ikl", score, score)
    effective = _effective_clusters(by_group, inverse)
    # Not `> 0`: with asymptotes the information of a group can be negative.
    is_seen = jnp.any(groups.information != 0, axis=1)
    n_seen = jnp.sum(is_seen, axis=0).astype(meat.dtype)
    factor = n_seen / jnp.maximum(n_seen - 1, 1)
    clustered = jnp.sqrt(jnp.diagonal(inverse @ meat @ inverse, axis1=1, axis2=2) * factor[:, None])
    is_meaningful = (n_seen >= FEWEST_CLUSTERS)[:, None]
    is_spread = effective >= FEWEST_EFFECTIVE_CLUSTERS
    return AbilityErrors(
        covariance,
        jnp.where(is_meaningful & is_spread, clustered, jnp.nan),
        jnp.where(is_meaningful, effective - 1, jnp.nan),
    )


def _effective_clusters(
    by_group: Float[Array, "groups pairs models"], inverse: Float[Array, "models dims dims"]
) -> Float[Array, "models dims"]:
    """How many equal benchmarks carry as little as these: `1 / sum(share^2)`, at least 1.

    A benchmark of information `I_g` adds `h' I_g h` to the variance of an ability, h its row of the
    inverse. Diagonals of `I_g` alone would count items that measure the other dims, and those whose
    information the benchmark's own effect takes up.
    """
    dims = inverse.shape[1]
    index = unpack_index(dims)
    shares = []
    for k in range(dims):  # not at once: dims times as much memory
        row = inverse[:, k]
        outer = (row[:, :, None] * row[:, None, :]).reshape(-1, dims * dims)
        carried = jnp.einsum("gpi,ip->gi", by_group[:, index.ravel()], outer)
        shares.append(jnp.maximum(carried, 0))
    share = jnp.stack(shares, axis=2)
    total = jnp.sum(share, axis=0)
    share = share / jnp.where(total > 0, total, jnp.ones_like(total))
    return 1 / jnp.clip(jnp.sum(share**2, axis=0), 1e-12, 1)


def _inverse_of_at_least_the_prior(
    information: Float[Array, "models dims dims"],
) -> Float[Array, "models dims dims"]:
    """Inverse of information that includes the prior, N(0, I), with no eigenvalue below 1.

    With asymptotes the observed information of the responses can be negative (wrong answers of weak
    models); the variance would be too, or, just above 0, larger than if nothing had been answered.
    """
    values, vectors = jnp.linalg.eigh(information)
    return (vectors / jnp.maximum(values, 1)[:, None]) @ vectors.swapaxes(1, 2)


def asymptote_errors(
    groups: GroupSums, asymptotes: Asymptotes, priors: Priors
) -> tuple[Float[Array, " groups"], Float[Array, " groups"]]:
    """Standard errors of shared guessing and feasibility.

    Of the inverse of the cross-product of the scores, and of the priors' precisions: data that say
    nothing (all answers right) leave the prior's standard deviation. 0 for an asymptote that is
    fixed.
    """
    assert groups.asymptotes is not None
    lower, both, upper = groups.asymptotes.T
    has_lower, has_upper = ~jnp.isneginf(asymptotes.lower), ~jnp.isposinf(asymptotes.upper)
    both = jnp.where(has_lower & has_upper, both, 0)
    lower = jnp.where(has_lower, lower + _precision(priors.guessing), 1)
    upper = jnp.where(has_upper, upper + _precision(priors.infeasibility), 1)
    determinant = jnp.maximum(lower * upper - both**2, jnp.finfo(lower.dtype).tiny)
    return (
        jnp.where(has_lower, jnp.sqrt(upper / determinant), 0),
        jnp.where(has_upper, jnp.sqrt(lower / determinant), 0),
    )


def _precision(beta: tuple[float, float]) -> float:
    """Of a Beta prior: 12 where it is flat."""
    a, b = beta
    return (a + b) ** 2 * (a + b + 1) / (a * b)

"""One pass over the items of `joint-map`: each item climbs, then says what it knows of the models.

Given the abilities the items are independent, and given the items the models are: a block of items
is climbed while its cells are in cache, and the same cells then give the scores of the models. To
an item every model is a node where it was answered once (`ExpectedCounts`).
"""

import dataclasses

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from irtjax.data.blocks import Blocks
from irtjax.fit.blockwise import BlockSums, BlockView, scan_blocks
from irtjax.fit.item_step import (
    ExpectedCounts,
    ItemModel,
    ItemParameters,
    climb_items,
    expected_log_likelihood,
    item_derivatives,
    node_curves,
    prior_derivatives,
    ridged,
)
from irtjax.fit.node_pass import answers
from irtjax.fit.packed import pair_index, positive_definite_inverse, products, unpack
from irtjax.fit.start_items import start_levels
from irtjax.model.priors import Normal
from irtjax.model.pytree import pytree_dataclass
from irtjax.model.response import cell_derivatives, response_probability
from irtjax.model.spec import ModelSpec

__all__ = [
    "UNBOUNDED_STOP",
    "CommonSlope",
    "ItemErrors",
    "JointPass",
    "block_model",
    "climb_blocks",
    "item_errors",
    "start_blocks",
]

# Without a prior a slope or an intercept may run away; it stops here, in logits, far past the bound
# from which it is flagged.
UNBOUNDED_STOP = 30.0


@pytree_dataclass
class CommonSlope:
    """Score and information of the one slope of the 1PL, intercepts profiled out."""

    score: Float[Array, ""]
    information: Float[Array, ""]


@pytree_dataclass
class JointPass:
    """Sums over all items at their renewed parameters.

    `value` is their log-likelihood and log-priors; `score` and `information` (packed) are the
    models', from the responses alone.
    """

    value: Float[Array, ""]
    score: Float[Array, "models dims"]
    information: Float[Array, "models pairs"]
    common: CommonSlope | None


@pytree_dataclass
class ItemErrors:
    """Covariance of each item's coordinates (natural slopes) given the abilities, blocks first."""

    items: ItemParameters
    covariance: Float[Array, "blocks items coordinates coordinates"]


def block_model(model: ItemModel) -> tuple[ItemModel, bool]:
    """The model of one item by itself, and whether its slope is pinned.

    The common slope of the 1PL is no item's own: it is moved after the pass, like the abilities,
    and has its prior there.
    """
    if not model.spec.has_common_slope:
        return model, False
    priors = dataclasses.replace(model.priors, slope=Normal())
    return ItemModel(ModelSpec("2pl", model.spec.dims), priors), True


def climb_blocks(
    blocks: Blocks,
    items: ItemParameters,
    ability: Float[Array, "models dims"],
    model: ItemModel,
    n_steps: int,
) -> tuple[JointPass, ItemParameters]:
    """Newton steps of every item given the abilities, and the sums at where they lead."""
    own, is_pinned = block_model(model)

    def visit(
        view: BlockView, items: ItemParameters, ability: Array
    ) -> tuple[BlockSums, ItemParameters]:
        counts = _counts(view, ability)
        items = _climbed(own, items, counts, n_steps, is_pinned)
        return BlockSums(_sums(own, items, counts, view.is_item, is_pinned=is_pinned), None), items

    sums, items = scan_blocks(visit, blocks, items, ability, ability.dtype)
    return sums.total, items


def item_errors(
    blocks: Blocks,
    items: ItemParameters,
    ability: Float[Array, "models dims"],
    model: ItemModel,
    n_steps: int,
) -> tuple[JointPass, Float[Array, " models"], ItemErrors]:
    """The last pass: also the sum of each model's probabilities, and the items' covariances."""
    own, is_pinned = block_model(model)

    def visit(
        view: BlockView, items: ItemParameters, ability: Array
    ) -> tuple[BlockSums, ItemErrors]:
        counts = _counts(view, ability)
        items = _climbed(own, items, counts, n_steps, is_pinned)
        logit = items.slope @ ability.T + items.intercept[:, None]
        columns = jax.tree.map(lambda leaf: leaf[:, None], items.asymptotes)
        probability = response_probability(logit, columns)
        expected = jnp.sum(jnp.where(view.is_item[:, None], probability, 0), axis=0)
        last = _sums(own, items, counts, view.is_item, is_pinned=is_pinned, is_last=True)
        sums = (last, expected)
        return BlockSums(sums, None), ItemErrors(items, _covariance(own, items, counts))

    sums, found = scan_blocks(visit, blocks, items, ability, ability.dtype)
    total, expected = sums.total
    return total, expected, found


def start_blocks(
    blocks: Blocks, ability: Float[Array, "models dims"], model: ItemModel
) -> ItemParameters:
    """Intercepts from the items' means; slopes 0, or of size 1 where they cannot change sign."""

    def visit(view: BlockView, _: None, ability: Array) -> tuple[BlockSums, ItemParameters]:
        right, wrong = answers(view)
        total, seen = jnp.sum(right, axis=0), jnp.sum(right + wrong, axis=0)
        intercept, asymptotes = start_levels(model, total, seen)
        away = right - (right + wrong) * (total / jnp.maximum(seen, 1))
        slope = jnp.zeros((len(seen), ability.shape[1]), ability.dtype)
        if model.spec.has_common_slope:
            slope = jnp.ones_like(slope)
        elif model.has_log_slopes:
            slope = jnp.where(away.T @ ability < 0, -1, 1).astype(ability.dtype)
        return BlockSums(None, None), ItemParameters(slope, intercept, asymptotes)

    _, items = scan_blocks(visit, blocks, None, ability, ability.dtype)
    assert isinstance(items, ItemParameters)
    return items


def _counts(view: BlockView, ability: Float[Array, "models dims"]) -> ExpectedCounts:
    right, wrong = answers(view)
    return ExpectedCounts(ability, right.T, wrong.T)


def _climbed(
    model: ItemModel,
    items: ItemParameters,
    counts: ExpectedCounts,
    n_steps: int,
    is_pinned: bool,
) -> ItemParameters:
    is_loading = jnp.zeros_like(items.slope) if is_pinned else None
    items = climb_items(model, items, counts, n_steps, is_loading)
    slope, intercept = items.slope, items.intercept
    if model.priors.of_slopes(model.spec).sd == float("inf"):
        slope = jnp.clip(slope, -UNBOUNDED_STOP, UNBOUNDED_STOP)
    if model.priors.of_intercepts().sd == float("inf"):
        intercept = jnp.clip(intercept, -UNBOUNDED_STOP, UNBOUNDED_STOP)
    return ItemParameters(slope, intercept, items.asymptotes)


def _sums(
    model: ItemModel,
    items: ItemParameters,
    counts: ExpectedCounts,
    is_item: Bool[Array, " items"],
    *,
    is_pinned: bool,
    is_last: bool = False,
) -> JointPass:
    value = expected_log_likelihood(model, items, counts)
    score, information = _of_models(model, items, counts, is_last)
    common = _common_slope(model, items, counts, is_item) if is_pinned else None
    return JointPass(jnp.sum(jnp.where(is_item, value, 0)), score, information, common)


def _of_models(
    model: ItemModel, items: ItemParameters, counts: ExpectedCounts, is_last: bool
) -> tuple[Float[Array, "models dims"], Float[Array, "models pairs"]]:
    """What the items of a block add to the models' scores and information.

    The last is Fisher's. With asymptotes the one for steps is in each cell the larger of it and the
    observed one, which for wrong answers of weak models may be many times as large: steps by
    Fisher's then overshoot, and abilities go to and fro where the objective is flat.
    """
    curves = node_curves(model, items, counts.node)
    right, wrong = curves.right[0], curves.wrong[0]
    score = counts.right * right + counts.wrong * wrong
    n_answers = counts.right + counts.wrong
    weight = -right * wrong
    if items.asymptotes is not None and not is_last:
        logit = items.slope @ counts.node.T + items.intercept[:, None]
        columns = jax.tree.map(lambda leaf: leaf[:, None], items.asymptotes)
        response = counts.right / jnp.where(n_answers > 0, n_answers, 1)
        weight = jnp.maximum(weight, cell_derivatives(logit, response, columns).negative_second)
    return score.T @ items.slope, (n_answers * weight).T @ products(items.slope)


def _common_slope(
    model: ItemModel, items: ItemParameters, counts: ExpectedCounts, is_item: Bool[Array, " items"]
) -> CommonSlope:
    """Sums over items of slope and intercept's derivatives, the intercept's profiled out."""
    found, prior = item_derivatives(model, items, counts), prior_derivatives(model, items)
    gradient = found.gradient + prior.gradient
    full = unpack(ridged(found.information + prior.information, 2), 2)
    coupling = full[0, 1] / full[1, 1]
    score = gradient[0] - coupling * gradient[1]
    information = full[0, 0] - coupling * full[0, 1]
    return CommonSlope(
        jnp.sum(jnp.where(is_item, score, 0)), jnp.sum(jnp.where(is_item, information, 0))
    )


def _covariance(
    model: ItemModel, items: ItemParameters, counts: ExpectedCounts
) -> Float[Array, "items coordinates coordinates"]:
    """Inverse of each item's information and prior's, on the scale of natural slopes."""
    n, dims = model.n_coordinates, model.spec.dims
    information = item_derivatives(model, items, counts).information
    information = ridged(information + prior_derivatives(model, items).information, n)
    rows, columns = pair_index(n)
    # With a unit diagonal first: without a prior an information may be 1e-9 of another.
    size = jnp.sqrt(information[rows == columns])
    inverse, _, _ = positive_definite_inverse(information / (size[rows] * size[columns]), n)
    inverse = inverse / (size[rows] * size[columns])
    if model.has_log_slopes:
        scale = jnp.ones_like(size).at[:dims].set(items.slope.T)
        inverse = inverse * scale[rows] * scale[columns]
    return unpack(inverse, n).transpose(2, 0, 1)

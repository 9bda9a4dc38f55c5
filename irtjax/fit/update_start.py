"""Where an update starts: at what the earlier fit knows, with new models and items placed."""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from irtjax.data.blocks import Blocks
from irtjax.fit.anchored_start import at_anchors
from irtjax.fit.anchors import Anchors
from irtjax.fit.hyperparameters import ItemDistribution
from irtjax.fit.items_route import ItemsRoute
from irtjax.fit.items_state import HeldItems, ItemsSettings, State, start_state
from irtjax.fit.marginal_items import MarginalItems
from irtjax.fit.models_route import ModelsRoute
from irtjax.fit.placing import place_items, place_models
from irtjax.fit.result import FitResult
from irtjax.fit.routes import Route
from irtjax.fit.start import free_coordinates, model_accuracy
from irtjax.model.priors import Priors
from irtjax.model.pytree import pytree_dataclass
from irtjax.model.spec import ModelSpec

__all__ = ["can_start_warm", "warm_start"]

_ITEM_PASSES = 2


def can_start_warm(route: Route) -> bool:
    """Whether a route can start from an earlier fit; others start as any fit does."""
    if isinstance(route, ItemsRoute):
        return isinstance(route.estimator, MarginalItems)
    return isinstance(route, ModelsRoute)


def warm_start(
    earlier: FitResult, known: Anchors, route: Route, blocks: Blocks, key: jax.Array
) -> Any:
    """The first state of a route from an earlier fit of a part of its data.

    Args:
        earlier: the fit.
        known: its items, in the order of the route's data.
        route: of the update, which `can_start_warm`.
        blocks: its data on the devices; runs under their mesh.
        key: of what is random in a start.
    """
    if isinstance(route, ModelsRoute):
        return _without_held(route.init_beside(blocks, key, known.held_parameters(route.spec)))
    assert isinstance(route, ItemsRoute)
    assert isinstance(route.estimator, MarginalItems)
    held = route.held_items(known, blocks)
    return _items_state(
        route.estimator, blocks, route.spec, route.priors, held, _known_side(earlier, route, held)
    )


@pytree_dataclass
class _KnownSide:
    """All but the items as an earlier fit has it, in the order of the new data."""

    is_known: Bool[Array, " models"]
    ability: Float[Array, "models dims"]
    effect: Float[Array, "models groups"] | None
    effect_variance: Float[Array, ""]
    distribution: ItemDistribution


def _known_side(earlier: FitResult, route: ItemsRoute, held: HeldItems) -> _KnownSide:
    """Models and groups of the earlier fit come first in merged data; more of them follow."""
    fitted, dtype = earlier.parameters, jnp.zeros(()).dtype
    n_models, n_old = route.data.n_models, earlier.data.n_models
    n_groups = len(held.is_held_group)
    ability = np.zeros((n_models, earlier.spec.dims), dtype)
    ability[:n_old] = fitted.ability
    effect = None
    if fitted.effect is not None:
        effect = np.zeros((n_models, n_groups), dtype)
        effect[:n_old, : np.shape(fitted.effect)[1]] = fitted.effect

    def of_groups(values: Any) -> Array:
        values = np.asarray(values, dtype)
        mean = np.broadcast_to(values.mean(axis=0), (n_groups - len(values), *values.shape[1:]))
        return jnp.asarray(np.concatenate([values, mean]))

    distribution = ItemDistribution(
        of_groups(fitted.group_mean),
        of_groups(fitted.group_covariance),
        of_groups(fitted.group_log_weight),
    )
    is_known = np.arange(n_models) < n_old
    is_known[:n_old] &= earlier.data.totals("models")[0] > 0
    return _KnownSide(
        jnp.asarray(is_known),
        jnp.asarray(ability),
        None if effect is None else jnp.asarray(effect),
        jnp.asarray(fitted.effect_variance, dtype),
        distribution,
    )


@functools.partial(jax.jit, static_argnums=(0, 2, 3))
def _items_state(
    settings: ItemsSettings,
    blocks: Blocks,
    spec: ModelSpec,
    priors: Priors,
    held: HeldItems,
    known: _KnownSide,
) -> State:
    """New models placed by the known items, new items by the models, all else as it was."""
    is_scored = ~jnp.isnan(model_accuracy(blocks))
    is_free = free_coordinates(spec)
    outer = at_anchors(settings, blocks, spec, priors, held)
    placed = place_models(blocks, held.items, outer, is_free=is_free, n_nodes=settings.n_nodes)
    outer = dataclasses.replace(
        placed,
        ability=jnp.where(known.is_known[:, None], known.ability, placed.ability),
        effect=known.effect,
        effect_spread=None
        if known.effect is None
        else jnp.full_like(known.effect, known.effect_variance),
        effect_variance=known.effect_variance,
        distribution=known.distribution,
    )
    items = place_items(
        blocks, outer, is_free=is_free, n_nodes=settings.n_nodes, most_passes=_ITEM_PASSES
    )
    frame = jnp.eye(spec.dims + 1, dtype=outer.ability.dtype)
    items = held.within(items, frame, blocks.group)
    return start_state(settings, outer, items, is_scored, spec, priors, None)


def _without_held(state: Any) -> Any:
    """The state of `marginal-models` with the items that were known free to move."""
    if hasattr(state, "models"):
        return dataclasses.replace(state, models=_without_held(state.models))
    return dataclasses.replace(state, held=None)

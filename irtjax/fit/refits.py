"""A finished fit made again: from a random start, or without some of its models or items.

Every refit has the shape of the fit, with cells missing where something is left out, so that all of
them run the programs that are compiled already.
"""

import dataclasses
import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool

from irtjax.data.checks import MISSING
from irtjax.data.responses import ResponseMatrix
from irtjax.errors import IrtjaxWarning
from irtjax.fit.api import fit as fit_anew
from irtjax.fit.bootstrap_settings import fit_arguments
from irtjax.fit.driver import Look
from irtjax.fit.frame import standardise
from irtjax.fit.items_state import State, start_state
from irtjax.fit.marginal_items import MarginalItems
from irtjax.fit.request import make_request
from irtjax.fit.result import FitResult
from irtjax.fit.starts import run_start
from irtjax.parallel import items_mesh

__all__ = ["refit_from", "refit_without"]


def refit_without(
    fit: FitResult,
    *,
    models: Bool[np.ndarray, " models"] | None = None,
    items: Bool[np.ndarray, " items"] | None = None,
    max_steps: int | None = None,
) -> FitResult:
    """Fit again with the same settings, and without the responses of some models or items.

    Args:
        fit: of `irtjax.fit`.
        models: which are left out.
        items: which are left out.
        max_steps: most steps; as the fit without.
    """
    data = _without(fit.data, models, items)
    arguments = fit_arguments(fit)
    arguments["max_steps"] = max_steps or arguments["max_steps"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IrtjaxWarning)  # of data without responses
        return fit_anew(data, fit.spec, **arguments)


def refit_from(fit: FitResult, seed: int, *, max_steps: int | None = None) -> FitResult:
    """Fit the same responses again, from abilities drawn at random.

    `marginal-items` starts at the singular vectors of the matrix whatever its seed is: here it
    starts at standard normal abilities. The other estimators start where another seed has them.

    Args:
        fit: of `irtjax.fit`, exploratory.
        seed: of the start.
        max_steps: most steps; as the fit without.
    """
    arguments = fit_arguments(fit) | {"seed": seed}
    arguments["max_steps"] = max_steps or arguments["max_steps"]
    request = make_request(fit.data, fit.spec, **arguments)
    estimator: Any = request.route.estimator
    if hasattr(estimator, "is_jittered"):
        jittered = dataclasses.replace(estimator, is_jittered=True)
        request.route.estimator = jittered  # type: ignore[misc]
    mesh, key = items_mesh(None), jax.random.key(seed)
    blocks = request.route.lay_out(mesh)
    with jax.set_mesh(mesh):
        state = request.route.init(blocks, key)
        if isinstance(estimator, MarginalItems):
            state = _at_random(estimator, state, key)
        end = run_start(request.route, blocks, state, Look(max_steps=arguments["max_steps"]))
    assert end.progress.status is not None
    told: dict[str, Any] = {"status": end.progress.status.name, "reason": end.progress.reason}
    told |= {"seed": seed, "n_steps": end.progress.n_steps}
    return dataclasses.replace(fit, parameters=end.parameters, report=fit.report | told)


def _at_random(estimator: MarginalItems, state: State, key: jax.Array) -> State:
    """The first state with abilities that know nothing of the responses."""
    drawn = jax.random.normal(key, state.outer.ability.shape, state.outer.ability.dtype)
    ability = standardise(jnp.where(state.is_scored[:, None], drawn, 0), state.is_scored)[0]
    outer = dataclasses.replace(state.outer, ability=ability)
    return start_state(
        estimator,
        outer,
        state.items,
        state.is_scored,
        state.spec,
        state.priors,
        state.is_loading,
    )


def _without(
    data: ResponseMatrix, models: np.ndarray | None, items: np.ndarray | None
) -> ResponseMatrix:
    """The same models and items, with the responses of some missing."""
    models = np.zeros(data.n_models, bool) if models is None else models
    items = np.zeros(data.n_items, bool) if items is None else items
    if data.sparse is not None:
        is_kept = ~models[data.sparse.model_index] & ~items[data.sparse.item_index]
        return data.replace(sparse=data.sparse.taken(is_kept))
    assert data.dense is not None
    dense = data.dense.copy()
    dense[models] = MISSING
    dense[:, items] = MISSING
    return data.replace(dense=dense)

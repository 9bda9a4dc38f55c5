"""What differs between estimators around the loop: how data are laid out, how results come back."""

from collections.abc import Callable
from typing import Any, Protocol

import jax
from jax.sharding import Mesh

from irtjax.checks import counted
from irtjax.data.blocks import Blocks
from irtjax.data.responses import ResponseMatrix
from irtjax.fit.estimator import Estimator
from irtjax.fit.items_route import FEWEST_ITEMS, ItemsRoute
from irtjax.fit.joint_route import JointRoute
from irtjax.fit.models_route import MOST_ANSWERS, ModelsRoute, most_responses
from irtjax.fit.registry import registered_route
from irtjax.fit.result import FittedParameters
from irtjax.fit.settings import FitSettings
from irtjax.model.priors import Priors
from irtjax.model.spec import ModelSpec

__all__ = ["Route", "choose_route"]

# `marginal-models` holds the whole matrix, a byte a cell, also where most of it is missing.
_MOST_CELLS = 200_000_000
# From this many models on, guessing and feasibility are estimated for each item.
_MANY_MODELS = 300


class Route(Protocol):
    """One way of fitting some data: made once a fit."""

    @property
    def estimator(self) -> Estimator:
        """The estimator with its settings."""

    @property
    def priors(self) -> Priors:
        """The priors in use: defaults that depend on the data are resolved."""

    @property
    def integrated(self) -> str:
        """The side that is integrated out: `items`, `models` or `none`."""

    def lay_out(self, mesh: Mesh) -> Blocks:
        """The data on the devices."""

    def init(self, blocks: Blocks, key: jax.Array) -> Any:
        """The first state."""

    def collect(self, blocks: Blocks, estimates: Any) -> FittedParameters:
        """Host arrays in the order of the data."""

    def fingerprint(self, mark: dict[str, Any]) -> dict[str, Any]:
        """What must agree for a checkpoint to be continued: the data, by hash, and `mark`."""

    def notes(self, estimates: Any) -> dict[str, Any]:
        """What only this estimator has to report."""


_ROUTES: dict[str, Callable[..., Route]] = {
    "marginal-items": ItemsRoute,
    "marginal-models": ModelsRoute,
    "joint-map": JointRoute,
}


def choose_route(
    data: ResponseMatrix, spec: ModelSpec, priors: Priors, settings: FitSettings
) -> tuple[Route, str]:
    """The route of a fit, and in words why."""
    name, reason = settings.estimator, "asked for"
    if name == "auto":
        name, reason = _automatic(data, spec, settings)
        reason = f"auto: {reason}"
    route = _ROUTES[name] if name in _ROUTES else registered_route(name)
    return route(data, spec, priors, settings), reason


def _automatic(data: ResponseMatrix, spec: ModelSpec, settings: FitSettings) -> tuple[str, str]:
    shape = f"with {counted(data.n_items, 'item')} and {counted(data.n_models, 'model')}"
    items = "items are integrated out and models estimated"
    models = "models are integrated out and items estimated"
    if settings.needs_items():
        return "marginal-items", f"{settings.needs_items()} asks for it; {items}"
    if settings.needs_models():
        return "marginal-models", f"{settings.needs_models()} asks for it; {models}"
    is_small = data.n_models * data.n_items <= _MOST_CELLS
    # By cells, not answers: counts have adaptive nodes, and cost no more.
    fits_nodes = is_small and most_responses(data) <= MOST_ANSWERS[1]
    if data.n_items < FEWEST_ITEMS:
        return "marginal-models", f"{shape}, too few to have a distribution; {models}"
    if fits_nodes and data.n_models > data.n_items:
        return "marginal-models", f"{shape}, {models}"
    if fits_nodes and spec.has_asymptotes and data.n_models >= _MANY_MODELS:
        return "marginal-models", f"{shape}, each item has its own asymptotes; {models}"
    return "marginal-items", f"{shape}, {items}"

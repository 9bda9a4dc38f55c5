"""Estimators that live above this room: their names, and where to find their routes."""

import importlib
from typing import Any

__all__ = ["register_estimator", "registered_estimators", "registered_route"]

_HOMES: dict[str, str] = {}


def register_estimator(name: str, home: str) -> None:
    """Make an estimator known to `irtjax.fit`.

    Args:
        name: as `estimator=` takes it.
        home: `module:class` of its route (see `irtjax.fit.routes.Route`), imported when used.
    """
    _HOMES[name] = home


def registered_estimators() -> tuple[str, ...]:
    """Names of all."""
    return tuple(_HOMES)


def registered_route(name: str) -> Any:
    """The route's class."""
    module, _, attribute = _HOMES[name].partition(":")
    return getattr(importlib.import_module(module), attribute)

"""The types of what `irtjax.fit` is given, checked before their values mean anything."""

from typing import Any

from irtjax.checks import check_text, check_whole, shown
from irtjax.errors import InputError
from irtjax.fit.checkpoints import Checkpoints
from irtjax.fit.settings import FitSettings
from irtjax.model.priors import Priors

__all__ = ["check_components", "check_run", "checked_priors", "checked_settings"]

_TEXTS = ("estimator", "item_distribution", "ability_distribution", "quadrature")
_COLUMNS = ("group", "model_group")
_WHOLE = ("components", "starts", "max_steps", "nodes")
_CLAIMS = ("general", "correlated")


def checked_settings(settings: dict[str, Any]) -> dict[str, Any]:
    """Arguments of `irtjax.fit` by name, whole numbers as Python's own.

    Raises:
        InputError: text, a whole number or a claim that is none; one line says which.
    """
    checked = dict(settings)
    for name in _TEXTS:
        if name in settings:
            check_text(name, settings[name])
    for name in _COLUMNS:
        if settings.get(name) is not None:
            check_text(f"{name}, a column of the metadata,", settings[name])
    for name in _WHOLE:
        if name in settings and not (name == "nodes" and settings[name] is None):
            checked[name] = check_whole(name, settings[name])
    for name in _CLAIMS:
        if not isinstance(settings.get(name, False), bool):
            raise InputError(f"{name} must be True or False, not {shown(settings[name])}")
    return checked


def check_components(settings: FitSettings) -> None:
    """Refuse a number of components that no mixture has.

    Raises:
        InputError: one line says what they belong to.
    """
    default = FitSettings().components
    if settings.item_distribution != "mixture" and settings.components != default:
        raise InputError(
            f"components={settings.components} belongs to item distribution mixture; add it or "
            "drop this"
        )


def checked_priors(priors: Any) -> Priors:
    """The priors, the defaults for None.

    Raises:
        InputError: something else.
    """
    if priors is None:
        return Priors()
    if not isinstance(priors, Priors):
        raise InputError(
            f"priors must be Priors, not {shown(priors)}; write Priors.off(), or "
            "Priors(slope=Normal(0, 1))"
        )
    return priors


def check_run(checkpoints: Any, on_look: Any) -> None:
    """Refuse what cannot be saved to or called on the way.

    Raises:
        InputError: one line says which.
    """
    if not isinstance(checkpoints, Checkpoints | None):
        raise InputError(
            f"checkpoints must be Checkpoints(folder, every), not {shown(checkpoints)}"
        )
    if not (on_look is None or callable(on_look)):
        raise InputError(f"on_look must be a function of the progress, not {shown(on_look)}")

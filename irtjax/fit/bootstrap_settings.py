"""The arguments of `irtjax.fit` that made a fit, read from its report."""

import dataclasses
from typing import Any

from irtjax.errors import InputError
from irtjax.fit.result import FitResult
from irtjax.fit.tables import slope_and_intercept
from irtjax.model.priors import Priors, parse_prior

__all__ = ["fit_arguments", "priors_of"]

_TAKEN_OVER = ("group", "model_group", "estimator", "item_distribution", "ability_distribution")


def fit_arguments(fit: FitResult) -> dict[str, Any]:
    """Keyword arguments with which `irtjax.fit` fits other responses of the same cells alike.

    The estimator and the priors are those in use, with defaults that depend on the data resolved.
    Of a confirmatory model, the mask is where its slopes are not 0.

    Raises:
        InputError: a report without the settings that were asked for.
    """
    report = fit.report
    if "asked" not in report:
        raise InputError(
            "the fit does not say how it was made ('asked' in fit.json is missing); fit again"
        )
    arguments = {name: report[name] for name in (*_TAKEN_OVER, "seed")} | report["asked"]
    arguments["priors"] = priors_of(report["priors"])
    if "dim_names" in report:
        mask = slope_and_intercept(fit)[0] != 0
        arguments["loadings"] = mask[:, 1:] if arguments["general"] else mask
    return arguments


def priors_of(plain: dict[str, Any]) -> Priors:
    """Priors from what `fit.json` has of them: those in use, distributions by name."""
    priors = Priors()
    for name, value in plain.items():
        if isinstance(value, str):
            priors = parse_prior(priors, f"{name}={value}")
        elif value is not None:
            # Lists are what earlier versions wrote for Beta priors.
            number: Any = {name: tuple(value) if isinstance(value, list) else value}
            priors = dataclasses.replace(priors, **number)
    return priors

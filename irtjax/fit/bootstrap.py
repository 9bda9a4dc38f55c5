"""Parametric bootstrap: standard errors from refits of data simulated from a fit."""

import dataclasses
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float

from irtjax.checks import check_whole
from irtjax.data.checks import check_seed
from irtjax.errors import InputError, IrtjaxWarning
from irtjax.fit.api import fit as refit
from irtjax.fit.bootstrap_draws import drawn_fit, drawn_responses
from irtjax.fit.bootstrap_settings import fit_arguments
from irtjax.fit.result import FitResult
from irtjax.fit.tables import slope_and_intercept

__all__ = ["Bootstrap", "parametric_bootstrap"]

# The interval holds this share of the refits.
_LEVEL = 0.95
_ITEM_COLUMNS = ("difficulty", "discrimination", "guessing", "feasibility", "intercept")


@dataclasses.dataclass(frozen=True, eq=False)
class Bootstrap:
    """What refits of simulated data say of a fit's errors.

    Attributes:
        items: a row an item: `item_id`, and for each of `difficulty`, `discrimination`, `guessing`,
            `feasibility`, `intercept`, `dim1_slope`, .. the estimate, its bootstrap standard error
            (`_se`), its 95% percentile interval (`_low`, `_high`), and the standard error that the
            fit states (`_se_analytic`).
        abilities: a row a model: `model_id` and the same of `dim1_ability`, ..
        n_samples: refits that the errors are from.
        statuses: how many refits ended how; those that diverged are left out.
    """

    items: pd.DataFrame
    abilities: pd.DataFrame
    n_samples: int
    statuses: dict[str, int]

    def ratios(self) -> pd.Series:
        """Median over items (models) of bootstrap over analytic standard error, by parameter.

        Parameters that are not estimated are left out. With n samples one ratio is known to
        `1 / sqrt(2 n)`.
        """
        found = {}
        for table in (self.items, self.abilities):
            for column in table.columns:
                name = column.removesuffix("_se_analytic")
                if name == column:
                    continue
                error, analytic = table[f"{name}_se"], table[column]
                is_estimated = (analytic > 0) & np.isfinite(analytic)
                if is_estimated.any():
                    found[name] = float((error[is_estimated] / analytic[is_estimated]).median())
        return pd.Series(found, name="bootstrap / analytic", dtype=float)


def parametric_bootstrap(fit: FitResult, *, n_samples: int = 100, seed: int = 0) -> Bootstrap:
    """Check a fit's standard errors: simulate data from it, refit them, and look at the spread.

    Every sample has the cells of the data and no others (k-of-n cells the same n), and is fitted
    with the same estimator, family, priors and settings. Refits are turned to the frame of the fit
    (the sign of one dim, an orthogonal Procrustes rotation of several, signs alone in confirmatory
    models). What is simulated depends on what the fit integrates out:

    - Nothing (`joint-map`): abilities and items are their estimates. Errors are the standard
      deviation over the refits.
    - Models (`marginal-models`): items are their estimates, and each sample has new abilities, from
      the population. Their sampling is a part of the items' errors: with abilities kept, intercepts
      would seem too well known by the error of the population's mean. Ability errors are then root
      mean squares of refit minus drawn ability: of any model of that population with these cells,
      not of the one with these answers. Their mean square is that of the posterior's.
    - Items (`marginal-items`): abilities (and benchmark effects) are their estimates. Items are
      drawn from their posteriors, not from the distribution of all: each stays the item that it is,
      and together they are distributed as the fit says. Item errors are root mean squares of refit
      minus drawn parameter, whose mean square over items is that of the stated errors; for an item
      near its group's mean they are smaller, since its shrinkage is no error.

    Intervals are quantiles of the refits, and where errors are of a drawn value, the estimate less
    the quantiles of refit minus drawn.

    All samples have the same shape, so that they share one compilation (with equal response
    patterns put together their number may call for a second).

    Args:
        fit: of `irtjax.fit`.
        n_samples: refits; a standard error is then known to a share of `1 / sqrt(2 n_samples)`.
        seed: of the simulated data.

    Returns:
        Errors and intervals. Warns (`IrtjaxWarning`) when refits did not converge.

    Raises:
        InputError: a fit that diverged or has an empirical ability distribution, fractions that are
            no counts, fewer than two samples; one line says which.

    Source: Efron & Tibshirani (1993), chapter 6; for predicted effects, Laird & Louis (1987).

    >>> import irtjax as ij
    >>> found = parametric_bootstrap(ij.fit(ij.lsat7()), n_samples=4)
    >>> found.items.shape[0], found.n_samples
    (5, 4)
    """
    _check(fit, n_samples, seed)
    samples, statuses = _refits(fit, n_samples, seed)
    if len(samples) < 2:
        raise InputError(
            f"{n_samples - len(samples)} of {n_samples} refits diverged; a smaller family, fewer "
            "dims or priors would hold them"
        )
    n_open = n_samples - statuses.get("converged", 0)
    if n_open:
        warnings.warn(
            f"{n_open} of {n_samples} refits did not converge ({statuses}); those that diverged "
            "are left out",
            IrtjaxWarning,
            stacklevel=2,
        )
    return Bootstrap(
        _item_errors(fit, samples), _ability_errors(fit, samples), len(samples), statuses
    )


class _Sample:
    """Published values of a sample's truth and of its refit, as arrays (columns first)."""

    def __init__(self, drawn: FitResult, found: FitResult) -> None:
        names = _item_columns(drawn)
        self.items = tuple(each.item_parameters()[names].to_numpy().T for each in (drawn, found))
        self.abilities = tuple(
            np.asarray(each.parameters.ability, np.float64).T for each in (drawn, found)
        )


def _refits(fit: FitResult, n_samples: int, seed: int) -> tuple[list[_Sample], dict[str, int]]:
    """Samples whose refits did not diverge, and how many refits ended how."""
    arguments = fit_arguments(fit)
    statuses: dict[str, int] = {}
    samples = []
    for rng in np.random.default_rng(seed).spawn(n_samples):
        drawn = drawn_fit(fit, rng)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", IrtjaxWarning)  # counted by the caller
            found = refit(drawn_responses(drawn, rng), fit.spec, **arguments)
        statuses[found.status] = statuses.get(found.status, 0) + 1
        if found.status != "diverged":
            samples.append(_Sample(drawn, _turned(fit, found)))
    return samples, statuses


def _check(fit: FitResult, n_samples: int, seed: int) -> None:
    if not isinstance(fit, FitResult):
        raise InputError(f"parametric_bootstrap takes a FitResult, not {type(fit).__name__}")
    check_whole("n_samples", n_samples, 2)
    check_seed(seed)
    if fit.status == "diverged":
        raise InputError("the fit diverged: there is nothing to simulate from; fit again")
    for name in ("anchors", "linked"):
        if name in fit.report:
            raise InputError(
                f"the fit is on another fit's scale ({name!r} in fit.json), on which its refits "
                "would not be; check the errors of a fit by itself"
            )
    if fit.report.get("ability_distribution") == "empirical":
        raise InputError(
            "a fit with an empirical ability distribution does not keep its weights, so abilities "
            "cannot be drawn; use the normal one"
        )
    cells = fit.data.cells()
    for what, values in (("weights", cells.weight), ("right", cells.weight * cells.response)):
        if not np.allclose(values, np.round(values), rtol=0, atol=1e-3):
            raise InputError(
                "responses that are fractions of no whole number of answers cannot be simulated; "
                "give the number of answers of each cell as its weight"
                if what == "right"
                else "weights that are no whole numbers of answers cannot be simulated"
            )


def _turned(fit: FitResult, found: FitResult) -> FitResult:
    """A refit in the frame of the fit."""
    sides = [
        slope_and_intercept(each)[0]
        if fit.integrated == "models"
        else np.asarray(each.parameters.ability, np.float64)
        for each in (fit, found)
    ]
    product = sides[1].T @ sides[0]
    if fit.spec.dims == 1 or "dim_names" in fit.report:
        turn = np.diag(np.where(np.diagonal(product) < 0, -1.0, 1.0))
    else:
        left, _, right = np.linalg.svd(product)
        turn = left @ right
    fitted = found.parameters
    mean = np.array(fitted.mean, np.float64)
    mean[..., :-1] = mean[..., :-1] @ turn
    turned: Any = {"ability": np.asarray(fitted.ability, np.float64) @ turn, "mean": mean}
    return dataclasses.replace(found, parameters=dataclasses.replace(fitted, **turned))


def _item_columns(fit: FitResult) -> list[str]:
    return [*_ITEM_COLUMNS, *(f"dim{k + 1}_slope" for k in range(fit.spec.dims))]


def _item_errors(fit: FitResult, samples: list[_Sample]) -> pd.DataFrame:
    table, names = fit.item_parameters(), _item_columns(fit)
    drawn, found = (np.stack([s.items[k] for s in samples]) for k in (0, 1))
    columns = dict(_columns(table, names, drawn, found, is_drawn=fit.integrated == "items"))
    return pd.DataFrame({"item_id": table["item_id"]} | columns)


def _ability_errors(fit: FitResult, samples: list[_Sample]) -> pd.DataFrame:
    table = fit.abilities()
    names = [f"dim{k + 1}_ability" for k in range(fit.spec.dims)]
    drawn, found = (np.stack([s.abilities[k] for s in samples]) for k in (0, 1))
    columns = dict(_columns(table, names, drawn, found, is_drawn=fit.integrated == "models"))
    return pd.DataFrame({"model_id": table["model_id"]} | columns)


def _columns(
    table: pd.DataFrame,
    names: list[str],
    drawn: Float[np.ndarray, "samples columns rows"],
    found: Float[np.ndarray, "samples columns rows"],
    *,
    is_drawn: bool,
) -> Iterator[tuple[str, np.ndarray]]:
    """Estimate, error, interval and analytic error of each column."""
    tails = ((1 - _LEVEL) / 2, (1 + _LEVEL) / 2)
    for k, name in enumerate(names):
        estimate = table[name].to_numpy(float)
        if is_drawn:
            away = found[:, k] - drawn[:, k]
            error = np.sqrt(np.mean(away**2, axis=0))
            high, low = estimate - np.quantile(away, tails, axis=0)
        else:
            error = np.std(found[:, k], axis=0, ddof=1)
            low, high = np.quantile(found[:, k], tails, axis=0)
        yield name, estimate
        yield f"{name}_se", error
        yield f"{name}_low", low
        yield f"{name}_high", high
        yield f"{name}_se_analytic", table[f"{name}_se"].to_numpy(float)

"""`link`: bring a fit to the scale of another one, through the items that both have."""

import dataclasses
import functools
from typing import Any

import numpy as np
import pandas as pd

from irtjax.checks import check_text, counted, shown
from irtjax.errors import InputError
from irtjax.fit.drift import CONFIDENCE, Drift, linked_without_drift
from irtjax.fit.link_methods import METHODS, ONE_DIM_METHODS, AnchorItems, scale_nodes
from irtjax.fit.report import describe_dims
from irtjax.fit.result import FitResult
from irtjax.fit.scale_change import ScaleChange
from irtjax.fit.tables import slope_and_intercept

__all__ = ["Link", "anchor_items", "link", "on_scale_of", "shared_items"]


@dataclasses.dataclass(frozen=True, eq=False)
class Link:
    """A fit on the scale of another one.

    Attributes:
        fit: with abilities, items, their errors and populations on the reference's scale; no
            predicted probability changes.
        anchors: a row an item that both have: `item_id`, slopes and intercept (linked), the same of
            the reference (`reference_*`), `rmsd` (root mean square difference of the two curves
            over the reference's population, a probability), `drift` (Lord's chi-square over its
            inflation) and `is_drifted`. Items that drifted took no part in the link.
        change: the change of scale, `theta' = matrix theta + shift`.
        method: how it was found.
        threshold: `drift` above which an item drifted.
        inflation: see `irtjax.fit.drift.Drift`.
    """

    fit: FitResult
    anchors: pd.DataFrame
    change: ScaleChange
    method: str
    threshold: float
    inflation: float

    @property
    def n_drifted(self) -> int:
        """How many of the anchors drifted."""
        return int(self.anchors["is_drifted"].sum())


def link(fit: FitResult, reference: FitResult, method: str | None = None) -> Link:
    """Bring a fit to the scale of a reference, through the items that both have.

    Args:
        fit: of `irtjax.fit`.
        reference: another fit of the same family and dims.
        method: in one dim `haebara` (the default: item curves), `stocking-lord` (the sum of the
            curves) or `mean-sigma` (difficulties); in any number of dims `oblique` (the default of
            several: slopes of equal second moments, turned; abilities may end up correlated) or
            `procrustes` (rotation and translation only, for fits of the same models). In families
            with a common slope only the place of the scale is left to them.

    Returns:
        The linked fit, and which anchors drifted. The error of the link itself is not in the
        standard errors.

    Raises:
        InputError: no such method, another family or number of dims, too few items in common;
            one line says which.

    Source: Kolen & Brennan (2014), chapter 6; Oshima, Davey & Lee (2000) for several dims.

    >>> import irtjax as ij
    >>> fit = ij.fit(ij.lsat7())
    >>> found = link(fit, fit)
    >>> found.n_drifted, float(found.change.matrix[0, 0].round(3))
    (0, 1.0)
    """
    _check_fits(fit, reference)
    method = _checked_method(method, fit)
    positions = shared_items(fit, reference)
    run, known = (
        anchor_items(each, at) for each, at in zip((fit, reference), positions, strict=True)
    )
    usable = _usable(run) & _usable(known)
    positions = tuple(at[usable] for at in positions)
    run, known = run.at(usable), known.at(usable)
    _check_number(fit, len(run.intercept))
    is_common = fit.spec.has_common_slope
    nodes = scale_nodes(*_population(reference))
    found = functools.partial(METHODS[method], nodes=nodes, is_common=is_common)
    change, drift = linked_without_drift(run, known, found, is_common=is_common)
    table = _anchor_table(fit.data.item_ids[positions[0]], run.changed(change), known, drift, nodes)
    note = {
        "method": method,
        "n_anchors": len(table),
        "n_drifted": int(drift.is_drifted.sum()),
        "drift_threshold": drift.threshold,
        "drift_confidence": CONFIDENCE,
        "drift_inflation": drift.inflation,
    }
    moved = on_scale_of(fit, reference, change, note)
    return Link(moved, table, change, method, drift.threshold, drift.inflation)


def on_scale_of(
    fit: FitResult, reference: FitResult, change: ScaleChange, note: dict[str, Any]
) -> FitResult:
    """The fit after a change of scale, with a report that says so.

    Args:
        fit: of which no logit changes.
        reference: whose scale it is.
        change: to that scale.
        note: what else `report["linked"]` has.
    """
    parameters = change.apply_to_fit(fit.parameters)
    dims, _ = describe_dims(parameters, fit.data)
    mean, covariance = _population(dataclasses.replace(fit, parameters=parameters))
    linked = note | {
        "matrix": change.matrix.tolist(),
        "shift": change.shift.tolist(),
        "mean": mean.tolist(),
        "sd": np.sqrt(np.diagonal(covariance)).tolist(),
    }
    report = fit.report | {
        "linked": linked,
        "scale_correlations": reference.ability_correlations().tolist(),
        "dimensions": dims,
    }
    if np.all(np.isnan(parameters.ability_se_clustered)) and fit.spec.dims > 1:
        report["clustered_se"] = "empty: not known on a scale that mixes dims"
    return dataclasses.replace(fit, parameters=parameters, report=report)


def shared_items(fit: FitResult, reference: FitResult) -> tuple[np.ndarray, np.ndarray]:
    """Positions in both fits of the items that both have by id and that were answered in both."""
    at = pd.Index(reference.data.item_ids).get_indexer(fit.data.item_ids)
    own = np.flatnonzero(at >= 0)
    answered = fit.data.totals("items")[0][own] > 0
    answered &= reference.data.totals("items")[0][at[own]] > 0
    return own[answered], at[own][answered]


def anchor_items(fit: FitResult, positions: np.ndarray) -> AnchorItems:
    """Some of a fit's items as both sides of a link have them."""
    slope, intercept, covariance = slope_and_intercept(fit)
    guessing, feasibility = (
        np.asarray(getattr(fit.parameters, name), np.float64)
        for name in ("guessing", "feasibility")
    )
    items = AnchorItems(slope, intercept, covariance, guessing, feasibility)
    return AnchorItems(*(value[positions] for value in vars(items).values()))


def _population(fit: FitResult) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of the abilities of the first population."""
    return (
        np.asarray(fit.parameters.population_mean[0], np.float64),
        np.asarray(fit.parameters.population_covariance[0], np.float64),
    )


def _usable(items: AnchorItems) -> np.ndarray:
    """Items whose estimates and errors are finite."""
    return np.all(np.isfinite(items.coordinates), axis=1) & np.all(
        np.isfinite(items.covariance), axis=(1, 2)
    )


def _anchor_table(
    ids: np.ndarray, linked: AnchorItems, reference: AnchorItems, drift: Drift, nodes: Any
) -> pd.DataFrame:
    node, mass = nodes
    columns: dict[str, Any] = {"item_id": ids}
    for prefix, side in (("", linked), ("reference_", reference)):
        columns |= {f"{prefix}dim{k + 1}_slope": each for k, each in enumerate(side.slope.T)}
        columns[f"{prefix}intercept"] = side.intercept
    away = linked.curves(node) - reference.curves(node)
    columns["rmsd"] = np.sqrt(away**2 @ mass)
    columns |= {"drift": drift.statistic, "is_drifted": drift.is_drifted}
    return pd.DataFrame(columns)


def _check_fits(fit: Any, reference: Any) -> None:
    for name, each in (("fit", fit), ("reference", reference)):
        if not isinstance(each, FitResult):
            raise InputError(f"link takes FitResults, but the {name} is {shown(each)}")
        if each.status == "diverged":
            raise InputError(f"the {name} diverged: there is nothing to link; fit again")
    if fit.spec != reference.spec:
        raise InputError(
            f"the fit is a {fit.spec.family} with {counted(fit.spec.dims, 'dim')}, the reference a "
            f"{reference.spec.family} with {counted(reference.spec.dims, 'dim')}; link fits of the "
            "same family and dims"
        )
    if fit.spec.dims > 1 and any("dim_names" in each.report for each in (fit, reference)):
        raise InputError(
            "a confirmatory fit keeps the dims of its loadings, which a link would mix; fit both "
            "without loadings, or use fit --anchors"
        )


def _checked_method(method: Any, fit: FitResult) -> str:
    if method is None:
        return "haebara" if fit.spec.dims == 1 else "oblique"
    if check_text("the method of a link", method) not in METHODS:
        raise InputError(f"method {method!r} is not known; use one of {', '.join(METHODS)}")
    if fit.spec.dims > 1 and method in ONE_DIM_METHODS:
        raise InputError(f"method {method} is for one dim, not {fit.spec.dims}; use oblique")
    return str(method)


def _check_number(fit: FitResult, n_anchors: int) -> None:
    least = fit.spec.dims + 1
    if n_anchors < least:
        raise InputError(
            f"{counted(n_anchors, 'item')} with answers in both fits (by item id); a link of "
            f"{counted(fit.spec.dims, 'dim')} needs at least {least}"
        )

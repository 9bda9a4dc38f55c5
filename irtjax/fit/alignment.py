"""Fits in other frames: rotated to simple structure, or aligned with another fit."""

import dataclasses
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float

from irtjax.checks import check_number, check_text, counted, shown
from irtjax.errors import InputError
from irtjax.fit.report import describe_dims
from irtjax.fit.result import FitResult, ability_correlations
from irtjax.fit.rotation import accuracy_signs, loadings
from irtjax.fit.rotations import TARGET_METHODS, procrustes, rotation_of
from irtjax.fit.scale_change import ScaleChange
from irtjax.fit.tables import slope_and_intercept

__all__ = ["align", "rotate"]

_SIDES = ("auto", "models", "items")
_UNKNOWN_CLUSTERED = "empty: not known in a frame that mixes the dims of the one they are of"


def rotate(
    fit: FitResult, method: str = "varimax", *, target: Any = None, gamma: float = 0.0
) -> FitResult:
    """The same fit with its dims turned to simple structure, or to a target.

    Predictions do not change: abilities, slopes, errors and the factor correlations
    (`FitResult.ability_correlations`) move together. Abilities have sd 1 in every dim; whatever
    frame the fit is in, it is first taken to uncorrelated dims. Rotated are the loadings
    `slope_k / sqrt(1.702^2 + slope' Phi slope)`. Dims are then ordered by the variance of the items
    that they explain, and signed so that ability rises with accuracy; with a target they stay in
    its order, with its signs.

    Args:
        fit: exploratory, of two dims or more.
        method: `varimax` (orthogonal: the frame of `irtjax.fit`), `quartimin`, `oblimin` (quartimin
            at `gamma` 0, less oblique below), `geomin` (these are oblique: dims may correlate),
            `geomin-orthogonal`, `target` (oblique) or `procrustes` (orthogonal).
        target: of the two last: loadings, items x dims in the order of the data, or a data frame
            with `item_id` and a column a dim; NaN where any loading will do. Items without a row
            are free.
        gamma: of `oblimin`, 0 or less.

    Returns:
        A copy; `report["rotation"]` says how the search ended.

    Raises:
        InputError: one dim, a confirmatory model (its loadings fix the frame), an unknown method, a
            target that does not fit.

    Source: Jennrich (2001, 2002), gradient projection; Kaiser (1958) for varimax.

    >>> import irtjax as ij
    >>> data = ij.simulate(ij.ModelSpec(dims=2), n_models=40, n_items=200).data
    >>> rotated = ij.rotate(ij.fit(data, ij.ModelSpec(dims=2)), "geomin")
    >>> rotated.report["rotation"]["method"], rotated.ability_correlations().shape
    ('geomin', (2, 2))
    """
    _check_can_turn(fit, "rotate")
    check_text("the rotation", method)
    gamma = check_number("gamma", gamma)
    wanted = None if target is None else _target(fit, target)
    root = _root(fit)
    slope = slope_and_intercept(fit)[0] @ root
    loading = loadings(slope)
    found = rotation_of(loading, method, target=wanted, gamma=gamma)
    transform = found.transform
    if method not in TARGET_METHODS:
        ability = np.asarray(fit.parameters.ability, np.float64) @ np.linalg.inv(root)
        transform = transform @ _order(fit, loading, ability, transform)
    told = {
        "method": method,
        "criterion": None if np.isnan(found.criterion) else found.criterion,
        "n_steps": found.n_steps,
        "is_converged": found.is_converged,
    }
    if method == "oblimin":
        told["gamma"] = gamma
    return _turned(fit, np.linalg.inv(root) @ transform, told)


def align(fit: FitResult, reference: FitResult, *, by: str = "auto") -> FitResult:
    """The same fit with its dims turned to those of another: order, signs, factor correlations.

    Both are taken to uncorrelated dims, where the orthogonal Procrustes rotation brings the
    abilities of common models, or the slopes of common items, nearest to each other; from there the
    fit goes on to the reference's frame, oblique or not. Predictions do not change. Confirmatory
    fits, and those of one dim, change signs only. Mean and spread of the abilities stay the fit's
    own: a scale across different models is another matter.

    Args:
        fit: what is turned.
        reference: a fit of as many dims, with models or items in common.
        by: `models` (abilities), `items` (slopes), or `auto`: of which a larger share is common;
            where that is equal, the side that is estimated and not integrated out.

    Returns:
        A copy; `report["aligned_by"]` is the side.

    Raises:
        InputError: another number of dims, nothing or too little in common.

    Source: Schoenemann (1966), A generalized solution of the orthogonal Procrustes problem.

    >>> import irtjax as ij
    >>> data = ij.simulate(ij.ModelSpec(dims=2), n_models=40, n_items=200).data
    >>> fit = ij.fit(data, ij.ModelSpec(dims=2))
    >>> oblique = ij.rotate(fit, "quartimin")
    >>> back = ij.align(oblique, fit)
    >>> bool(abs(back.abilities()["dim1_ability"] - fit.abilities()["dim1_ability"]).max() < 1e-4)
    True
    """
    for name, each in (("fit", fit), ("reference", reference)):
        if not isinstance(each, FitResult):
            raise InputError(f"align takes a FitResult as {name}, not {type(each).__name__}")
    if fit.spec.dims != reference.spec.dims:
        raise InputError(
            f"align needs fits of as many dims; the fit has {fit.spec.dims}, the reference "
            f"{reference.spec.dims}"
        )
    side, sides = _common(fit, reference, by)
    roots = [_root(each) for each in (fit, reference)]
    if side == "models":
        pair = [values @ np.linalg.inv(root) for values, root in zip(sides, roots, strict=True)]
        pair = [values - values.mean(axis=0) for values in pair]
    else:
        pair = [values @ root for values, root in zip(sides, roots, strict=True)]
    if "dim_names" in fit.report or fit.spec.dims == 1:
        signs = np.where(np.sum(sides[0] * sides[1], axis=0) < 0, -1.0, 1.0)
        return _turned(fit, np.diag(signs), None, side)
    turn = procrustes(*pair)
    return _turned(fit, np.linalg.inv(roots[0]) @ turn @ roots[1], None, side)


def _check_can_turn(fit: Any, what: str) -> None:
    if not isinstance(fit, FitResult):
        raise InputError(f"{what} takes a FitResult, not {type(fit).__name__}")
    if "dim_names" in fit.report:
        raise InputError("a confirmatory fit cannot be rotated: its loadings fix the frame")
    if fit.spec.dims < 2:
        raise InputError("one dim cannot be rotated; fit at least 2 dims")


def _root(fit: FitResult) -> Float[np.ndarray, "dims dims"]:
    """S with `S S` the covariance of the first population: abilities times `S^-1` have none."""
    covariance = np.asarray(fit.parameters.population_covariance[0], np.float64)
    values, vectors = np.linalg.eigh(covariance)
    return (vectors * np.sqrt(np.maximum(values, 1e-12))) @ vectors.T


def _target(fit: FitResult, given: Any) -> Float[np.ndarray, "items dims"]:
    """The target as an array; of a data frame by the ids."""
    if isinstance(given, pd.DataFrame):
        if "item_id" not in given:
            raise InputError("the target needs a column 'item_id' beside a column a dim")
        ids = pd.Index(given["item_id"].astype(str))
        if ids.has_duplicates:
            repeated = ids[ids.duplicated()][0]
            raise InputError(f"the target has several rows for item {repeated!r}; give one")
        unknown = ids[~ids.isin(fit.data.item_ids)]
        if len(unknown):
            raise InputError(
                f"the target has {counted(len(unknown), 'row')} for items that are not in the fit "
                f"(first: {unknown[0]!r})"
            )
        given = given.drop(columns="item_id").set_axis(ids).reindex(fit.data.item_ids)
    try:
        return np.asarray(given, np.float64)
    except (TypeError, ValueError):
        raise InputError("the target must be numbers, items x dims; NaN where it is free") from None


def _order(
    fit: FitResult, loading: np.ndarray, ability: np.ndarray, transform: np.ndarray
) -> Float[np.ndarray, "dims dims"]:
    """What orders the dims by explained variance, and signs them to rise with accuracy."""
    rotated = loading @ np.linalg.inv(transform).T
    explained = np.sum(rotated * (rotated @ (transform.T @ transform)), axis=0)
    order = np.argsort(-explained, kind="stable")
    accuracy = fit.data.totals("models")[1]
    signs = accuracy_signs(rotated, ability @ transform, accuracy)
    return np.eye(len(order))[:, order] * signs[order]


def _common(
    fit: FitResult, reference: FitResult, by: str
) -> tuple[str, list[Float[np.ndarray, "rows dims"]]]:
    """The side that alignment looks at, and both fits' values of what is common there."""
    if by not in _SIDES:
        raise InputError(f"by is one of {', '.join(_SIDES)}, not {shown(by)}")
    pairs = {
        "models": _positions(_seen(fit, "models"), _seen(reference, "models")),
        "items": _positions(_seen(fit, "items"), _seen(reference, "items")),
    }
    side = by
    if by == "auto":
        shares = {
            "models": len(pairs["models"][0]) / min(fit.data.n_models, reference.data.n_models),
            "items": len(pairs["items"][0]) / min(fit.data.n_items, reference.data.n_items),
        }
        side = "items" if reference.integrated == "models" else "models"
        side = max(shares, key=lambda name: (shares[name], name == side))
    if len(pairs[side][0]) < fit.spec.dims + 1:
        raise InputError(
            f"the fits have {counted(len(pairs[side][0]), side[:-1])} in common, and aligning "
            f"{counted(fit.spec.dims, 'dim')} needs at least {fit.spec.dims + 1}"
        )
    values = [
        np.asarray(each.parameters.ability, np.float64)
        if side == "models"
        else slope_and_intercept(each)[0]
        for each in (fit, reference)
    ]
    return side, [value[rows] for value, rows in zip(values, pairs[side], strict=True)]


def _seen(fit: FitResult, side: str) -> pd.Series:
    """Ids of the models or items with responses; the index is their row."""
    ids = fit.data.model_ids if side == "models" else fit.data.item_ids
    return pd.Series(ids.astype(str))[fit.data.totals(side)[0] > 0]


def _positions(ids: pd.Series, other: pd.Series) -> tuple[np.ndarray, np.ndarray]:
    """Rows of both sides with the same ids."""
    found = pd.Index(other).get_indexer(pd.Index(ids))
    is_common = found >= 0
    return ids.index.to_numpy()[is_common], other.index.to_numpy()[found[is_common]]


def _turned(
    fit: FitResult,
    matrix: Float[np.ndarray, "dims dims"],
    rotation: dict[str, Any] | None,
    side: str | None = None,
) -> FitResult:
    """The fit with abilities `theta matrix`, and a report that says so."""
    change = ScaleChange(matrix.T, np.zeros(len(matrix)))
    parameters = change.apply_to_fit(fit.parameters)
    _, old = describe_dims(fit.parameters, fit.data)
    dims, new = describe_dims(parameters, fit.data)
    warnings = [note for note in fit.report.get("warnings", []) if note not in old]
    report = fit.report | {"dimensions": dims, "warnings": [*warnings, *new]}
    if "dim_names" not in fit.report:
        report["ability_correlations"] = ability_correlations(parameters).tolist()
    if rotation is not None:
        report["rotation"] = rotation
    if side is not None:
        report["aligned_by"] = side
    was_known = np.isfinite(np.asarray(fit.parameters.ability_se_clustered)).any()
    if was_known and np.isnan(np.asarray(parameters.ability_se_clustered)).all():
        report["clustered_se"] = _UNKNOWN_CLUSTERED
    return dataclasses.replace(fit, parameters=parameters, report=report)

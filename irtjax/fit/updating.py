"""`update`: fold responses that arrived into a fit, and say how far its estimates moved."""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
import pandas as pd

from irtjax.checks import shown
from irtjax.data.merge import cells_not_in, merged_responses
from irtjax.data.responses import ResponseMatrix, check_matrix
from irtjax.errors import InputError
from irtjax.fit.anchors import make_anchors
from irtjax.fit.api import run_request
from irtjax.fit.bootstrap_settings import fit_arguments
from irtjax.fit.driver import Progress
from irtjax.fit.link_methods import matched_moments, matched_points
from irtjax.fit.linking import anchor_items, on_scale_of, shared_items
from irtjax.fit.registry import registered_estimators
from irtjax.fit.request import make_request
from irtjax.fit.result import FitResult
from irtjax.fit.scale_change import ScaleChange
from irtjax.fit.update_start import can_start_warm, warm_start

__all__ = ["Update", "update"]


@dataclasses.dataclass(frozen=True, eq=False)
class Update:
    """A fit of the old and the new responses, on the scale of the old fit.

    Attributes:
        fit: the updated fit; its `heldout` are the cells of the old one, which stay out.
        models: a row a model of the old fit: `model_id`, and for each dim the ability before
            (`dim1_ability_before`), now, and how far it moved in standard errors of the old fit
            (`dim1_ability_moved`).
        items: the same of the old items: slopes and intercept.
        summary: what `fit.json` has under `updated`: numbers of new models, items and responses, of
            items that both old and new models answered (`n_common_items`, None without new models),
            and `max` and `rms` of the moves of abilities and of item parameters.
    """

    fit: FitResult
    models: pd.DataFrame
    items: pd.DataFrame
    summary: dict[str, Any]


def update(
    fit: FitResult,
    responses: ResponseMatrix,
    *,
    replace: bool = False,
    max_steps: int | None = None,
    devices: Sequence[jax.Device] | None = None,
    on_look: Callable[[Progress], None] | None = None,
) -> Update:
    """Fold responses of new models and items (or more of the old ones) into a fit.

    The fit holds the responses that it was fitted to, so that only the new ones are needed; those
    that it has already count once. All are fitted again with the same settings, from where the fit
    ended, until nothing moves: the estimates are those of a fit of all responses. Then they are
    brought to the scale of the old fit: where items are integrated out, the old models keep the
    mean and covariance of their abilities; where models are, the old items keep the second moments
    of their slopes, and their intercepts on average. So dims keep their order and signs.

    Old and new models count as one population, and old and new items as one distribution. Where
    they share few items and the new models may be stronger or weaker, `fit(responses, anchors=fit)`
    estimates the new models' own mean and sd on the old scale.

    Args:
        fit: of `irtjax.fit`; confirmatory, anchored and network fits are not updated.
        responses: what arrived.
        replace: where a cell has another response than in the fit, take the new one.
        max_steps: most steps; as of the fit without.
        devices: spread the items over these; all local devices without.
        on_look: called with the progress every few steps.

    Returns:
        The updated fit, and how far each old estimate moved.

    Raises:
        InputError: no fit, one that cannot be updated, responses that contradict it, or nothing
            new; one line says which.

    >>> import irtjax as ij
    >>> data = ij.simulate(ij.ModelSpec(), n_models=30, n_items=120).data.to_dense()
    >>> old = ij.fit(ij.ResponseMatrix.from_dense(data[:28]))
    >>> week = ij.ResponseMatrix.from_dense(data[28:], model_ids=["new-1", "new-2"])
    >>> ij.update(old, week).summary["n_new_models"]
    2
    """
    _check(fit, responses)
    data = merged_responses(fit.data, responses, replace=replace)
    if fit.heldout is not None:
        data = cells_not_in(data, fit.heldout)
    _check_new(fit, data, replace)
    arguments = fit_arguments(fit)
    if max_steps is not None:
        arguments["max_steps"] = max_steps
    request = make_request(data, fit.spec, **arguments)
    start, is_warm = None, can_start_warm(request.route)
    if is_warm:
        known = make_anchors(data, fit.spec, fit, fit.group)
        start = functools.partial(warm_start, fit, known)
    found = run_request(request, devices=devices, on_look=on_look, start=start)
    change = _to_scale_of(fit, found)
    note = {"method": "old models" if fit.integrated != "models" else "old items"}
    moved = on_scale_of(found, fit, change, note)
    models, items = _moved_models(fit, moved), _moved_items(fit, moved)
    summary = {
        "start": "warm" if is_warm else "cold",
        "n_new_models": data.n_models - fit.data.n_models,
        "n_new_items": data.n_items - fit.data.n_items,
        "n_new_responses": data.n_responses - fit.data.n_responses,
        "n_common_items": _n_common(fit.data, data),
        "abilities": _summed_up(models, "model_id"),
        "items": _summed_up(items, "item_id"),
    }
    result = dataclasses.replace(
        moved, heldout=fit.heldout, report=moved.report | {"updated": summary}
    )
    return Update(result, models, items, summary)


def _to_scale_of(old: FitResult, new: FitResult) -> ScaleChange:
    """From the scale of a fit of all to that of its part."""
    is_common = new.spec.has_common_slope
    if new.integrated == "models":
        at = shared_items(new, old)
        sides = [anchor_items(each, where) for each, where in zip((new, old), at, strict=True)]
        error = sum(np.trace(side.covariance, axis1=1, axis2=2) for side in sides)
        return matched_moments(sides[0], sides[1], 1 / (error + 1e-9), is_common=is_common)
    answered = np.flatnonzero(old.data.totals("models")[0] > 0)
    points = [np.asarray(each.parameters.ability, np.float64)[answered] for each in (new, old)]
    return matched_points(points[0], points[1], keeps_scale=new.spec.family == "rasch")


def _n_common(old: ResponseMatrix, data: ResponseMatrix) -> int | None:
    """Items that old and new models answered, None without new models."""
    if data.n_models == old.n_models:
        return None
    cells = data.cells()
    is_new = np.zeros(data.n_items, bool)
    is_new[cells.item_index[cells.model_index >= old.n_models]] = True
    return int(np.count_nonzero(is_new[: old.n_items] & (old.totals("items")[0] > 0)))


def _moved_models(old: FitResult, new: FitResult) -> pd.DataFrame:
    n = old.data.n_models
    before, after = old.abilities(), new.abilities().iloc[:n]
    names = [f"dim{k + 1}_ability" for k in range(old.spec.dims)]
    return _moves(before, after, "model_id", names)


def _moved_items(old: FitResult, new: FitResult) -> pd.DataFrame:
    n = old.data.n_items
    before, after = old.item_parameters(), new.item_parameters().iloc[:n]
    names = [*(f"dim{k + 1}_slope" for k in range(old.spec.dims)), "intercept"]
    return _moves(before, after, "item_id", names)


def _moves(before: pd.DataFrame, after: pd.DataFrame, key: str, names: list[str]) -> pd.DataFrame:
    """Each estimate before and now, and the difference in standard errors (NaN without one)."""
    columns = {key: before[key].to_numpy()}
    for name in names:
        one, other = before[name].to_numpy(float), after[name].to_numpy(float)
        error = before[f"{name}_se"].to_numpy(float)
        columns[f"{name}_before"], columns[name] = one, other
        columns[f"{name}_moved"] = np.where(
            error > 0, (other - one) / np.where(error > 0, error, 1), np.nan
        )
    return pd.DataFrame(columns)


def _summed_up(table: pd.DataFrame, key: str) -> dict[str, Any]:
    """Largest and root mean square move, and whose the largest is; None where none is known."""
    moved = table.filter(regex="_moved$").to_numpy()
    if not np.isfinite(moved).any():
        return {"max": None, "rms": None, "farthest": None}
    size = np.nan_to_num(np.abs(moved))
    row = int(np.argmax(size.max(axis=1)))
    return {
        "max": float(size.max()),
        "rms": float(np.sqrt(np.nanmean(moved**2))),
        "farthest": str(table[key].iloc[row]),
    }


def _check(fit: Any, responses: Any) -> None:
    if not isinstance(fit, FitResult):
        raise InputError(f"update takes a FitResult and responses, not {shown(fit)}")
    check_matrix(responses, "update")
    if fit.status == "diverged":
        raise InputError("the fit diverged: there is nothing to start from; fit again")
    for is_so, what, remedy in (
        ("dim_names" in fit.report, "a confirmatory fit", "fit all responses with its loadings"),
        ("anchors" in fit.report, "an anchored fit", "fit all responses with --anchors"),
        (
            fit.report.get("estimator") in registered_estimators(),
            f"a fit of {fit.report.get('estimator')}",
            "fit all responses with it again",
        ),
    ):
        if is_so:
            raise InputError(f"{what} is not updated; {remedy}")


def _check_new(fit: FitResult, data: ResponseMatrix, replace: bool) -> None:
    if data.n_responses == fit.data.n_responses and not replace:
        raise InputError(
            "there is nothing new: the run has all of these responses already (its held-out ones "
            "stay out)"
        )

"""Whom the items are to measure: a distribution of abilities as weighted points.

Never one point unless asked for: at the highest ability nearly every item is saturated, and the
order of what is left is noise.
"""

import dataclasses
import math
from typing import Any

import numpy as np

from irtjax.checks import check_number, shown
from irtjax.errors import InputError
from irtjax.fit.result import FitResult
from irtjax.fit.tables import slope_and_intercept
from irtjax.score.clustering import k_means

__all__ = ["TARGETS", "Target", "padded_target", "target_of"]

TARGETS = ("models", "top", "future", "future=SHIFT")
# More points than this are put together: the mean information of items changes by less than 1%.
_MOST_POINTS = {1: 16}
_MOST_POINTS_OF_MORE_DIMS = 32
_POINTS_TO = 16
_TOP_SHARE = 0.25
_SHIFT = 0.5


@dataclasses.dataclass(frozen=True, eq=False)
class Target:
    """Weighted abilities.

    Attributes:
        ability: points x dims.
        weight: of the points; they sum to 1.
        name: what it is, in words.
    """

    ability: np.ndarray
    weight: np.ndarray
    name: str


def target_of(fit: FitResult, target: Any = "models") -> Target:
    """The abilities that a selection is made for.

    Args:
        fit: whose models.
        target: `models` (the models' posterior), `top` (its top quarter by expected score),
            `future` or `future=SHIFT` (abilities like the top quarter's, about SHIFT standard
            deviations of the models, .5 without, above the best model: in more dims along the
            direction in which scores rise), a number or one a dim (a point), or an array of points
            x dims, equally weighted.

    Raises:
        InputError: another name, a point of another number of dims, no model with responses.
    """
    if isinstance(target, Target):
        return target
    if not isinstance(target, str):
        return _points(fit, target)
    name, _, shift = target.partition("=")
    if name == "future":
        return _future(fit, _shift(shift, target))
    if target in ("models", "top"):
        ability, covariance = _models(fit, only_top=target == "top")
        words = "the models" if target == "models" else "the top quarter of the models"
        return _posterior(ability, covariance, words)
    try:
        point = [float(part) for part in target.split(",")]
    except ValueError:
        raise InputError(
            f"target {shown(target)} is not known; use {', '.join(TARGETS)}, or an ability "
            "(one number a dim, with commas)"
        ) from None
    return _points(fit, point)


def padded_target(target: Target) -> Target:
    """With points of no weight to a multiple of 16, so that few programs are compiled; 1 stays."""
    n = len(target.weight)
    more = 0 if n == 1 else -n % _POINTS_TO
    ability = np.pad(target.ability, ((0, more), (0, 0)))
    return Target(ability, np.pad(target.weight, (0, more)), target.name)


def _shift(text: str, target: str) -> float:
    if not text:
        return _SHIFT
    try:
        return check_number("the shift", float(text))
    except ValueError:
        raise InputError(
            f"target {shown(target)}: the shift must be a number, as in future=0.5"
        ) from None


def _points(fit: FitResult, target: Any) -> Target:
    try:
        points = np.asarray(target, np.float64)
    except (TypeError, ValueError):
        points = np.full((0, 0, 0), np.nan)
    if points.ndim < 2:
        points = points.reshape(1, -1)
    dims = fit.spec.dims
    is_shaped = points.ndim == 2 and points.shape[1] == dims and len(points) > 0
    if not is_shaped or not np.isfinite(points).all():
        raise InputError(
            f"the target must be {dims} finite number{'s' * (dims > 1)}, one a dim, or an array "
            f"of such points, not {shown(target)}"
        )
    n = len(points)
    name = f"the ability {', '.join(f'{x:g}' for x in points[0])}" if n == 1 else f"{n} abilities"
    return Target(points, np.full(n, 1 / n), name)


def _models(fit: FitResult, *, only_top: bool) -> tuple[np.ndarray, np.ndarray]:
    """Abilities and covariances of the models with responses, or of the best quarter of them."""
    chosen = np.flatnonzero(fit.data.totals("models")[0] > 0)
    if not len(chosen):
        raise InputError("no model has responses, so there is no target to select items for")
    if only_top:
        score = np.asarray(fit.parameters.expected_score, np.float64)[chosen]
        n_top = math.ceil(_TOP_SHARE * len(chosen))
        chosen = chosen[np.argsort(-score, kind="stable")[:n_top]]
    covariance = np.asarray(fit.parameters.ability_covariance, np.float64)[chosen]
    covariance = np.where(np.isfinite(covariance), covariance, 0)
    return np.asarray(fit.parameters.ability, np.float64)[chosen], covariance


def _future(fit: FitResult, shift: float) -> Target:
    ability, covariance = _models(fit, only_top=True)
    slope, _, _ = slope_and_intercept(fit)
    rise = slope.mean(axis=0)
    rise = rise if np.any(rise) else np.ones_like(rise)
    # One standard deviation of the population, whatever scale a run is linked to.
    spread = np.asarray(fit.parameters.population_covariance[0], np.float64) @ rise
    direction = spread / np.sqrt(rise @ spread)
    best = ability[np.argmax(ability @ rise)]
    moved = ability - ability.mean(axis=0) + best + shift * direction
    return _posterior(moved, covariance, f"models {shift:g} above the best")


def _posterior(ability: np.ndarray, covariance: np.ndarray, name: str) -> Target:
    """Points of the mixture of the models' normal posteriors.

    Each posterior is 2 dims + 1 points (the cubature that keeps mean and covariance); where they
    are many, neighbours are put together.
    """
    n, dims = ability.shape
    value, vector = np.linalg.eigh(covariance)
    step = vector * np.sqrt(np.maximum(value, 0) * 2 * dims)[:, None]
    away = np.concatenate([np.zeros((n, dims, 1)), step, -step], axis=2)
    points = (ability[:, :, None] + away).swapaxes(1, 2).reshape(-1, dims)
    weight = np.tile(np.r_[0.5, np.full(2 * dims, 0.25 / dims)] / n, n)
    most = _MOST_POINTS.get(dims, _MOST_POINTS_OF_MORE_DIMS)
    if len(points) <= most:
        return Target(points, weight, name)
    order = np.lexsort(points.T[::-1])  # whatever the order of the models
    points, weight = points[order], weight[order]
    centre, cluster = k_means(points, weight, most)
    mass = np.bincount(cluster, weight, most)
    return Target(centre[mass > 0], mass[mass > 0] / mass.sum(), name)

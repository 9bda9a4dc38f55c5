"""Simple structure by gradient projection: quartimin, oblimin, geomin, and turns to a target.

With loadings `L = A (T')^-1` of a matrix A whose abilities are uncorrelated, abilities become
`theta T` and correlate as `T' T`. A criterion is minimised over the T with columns of length 1
(oblique), or over the orthogonal ones, by steps along the gradient's projection (Jennrich 2001,
Psychometrika 66, 289-306; 2002, Psychometrika 67, 7-20). An iteration costs `O(items dims^2)`.
"""

import dataclasses
from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from irtjax.errors import InputError
from irtjax.fit.rotation import varimax

__all__ = ["METHODS", "TARGET_METHODS", "Rotation", "procrustes", "rotation_of"]

TARGET_METHODS = ("target", "procrustes")
METHODS = ("varimax", "quartimin", "oblimin", "geomin", "geomin-orthogonal", *TARGET_METHODS)

# Added to the squared loadings of geomin: with 0 any loading of 0 makes a whole row perfect.
_GEOMIN_EPSILON = 0.01
# Stop when the projected gradient of the mean over the items is below this.
_TOLERANCE = 1e-7
_MOST_STEPS = 1000
_MOST_HALVINGS = 12
# Of what the gradient promises, a step must bring this share.
_LEAST_DECREASE = 1e-4
# Criteria have several minima, geomin most: from so many starts beside varimax, on so many items at
# most, as many as are different go on to all items.
_N_STARTS = {"geomin": 24, "geomin-orthogonal": 24}
_FEWEST_STARTS = 6
_MOST_ITEMS = 1_500
_START_STEPS = 150
_N_KEPT = 2
# Minima of the items chosen whose criteria differ by less than this share are the same.
_SAME = 1e-4

_Criterion = Callable[
    [Float[np.ndarray, "items dims"]], tuple[float, Float[np.ndarray, "items dims"]]
]


@dataclasses.dataclass(frozen=True, eq=False)
class Rotation:
    """Where gradient projection ended.

    Attributes:
        transform: T, dims x dims: abilities become `theta T`, loadings `A (T')^-1`.
        criterion: its value, mean over the items.
        n_steps: steps of the start that was kept.
        is_converged: whether the projected gradient vanished.
    """

    transform: Float[np.ndarray, "dims dims"]
    criterion: float
    n_steps: int
    is_converged: bool


def rotation_of(
    matrix: Float[np.ndarray, "items dims"],
    method: str,
    *,
    target: Float[np.ndarray, "items dims"] | None = None,
    gamma: float = 0.0,
) -> Rotation:
    """The transformation of uncorrelated dims that a method asks for.

    Args:
        matrix: loadings on uncorrelated dims.
        method: `varimax`; `quartimin`, `oblimin` (with `gamma`; 0 is quartimin, negative values are
            less oblique), `geomin` (oblique), `geomin-orthogonal`; `target` (oblique) and
            `procrustes` (orthogonal) come as near to a target as they can.
        target: of the two last; NaN where nothing is asked of a loading.
        gamma: of oblimin; above 0 the criterion may have no minimum.

    Returns:
        The best of several starts, the same at every call.

    Raises:
        InputError: an unknown method, a target that does not fit, one that says too little.
    """
    _check(matrix, method, target, gamma)
    dims = matrix.shape[1]
    if method == "varimax":
        return Rotation(varimax(matrix), float("nan"), 0, True)
    if target is not None and method == "procrustes" and not np.isnan(target).any():
        transform = procrustes(matrix, target)
        return Rotation(transform, float(np.mean((matrix @ transform - target) ** 2)), 0, True)
    space = _Orthogonal if method in ("geomin-orthogonal", "procrustes") else _Oblique
    if target is not None:
        first = procrustes(matrix, np.where(np.isnan(target), 0, target))
        starts = [first, np.eye(dims), *_random_frames(dims, _FEWEST_STARTS)]
        n_numbers = target.size
        matrix, target = _compressed(matrix, target)
        criterion = _target_criterion(target, n_numbers)
    else:
        criterion = _CRITERIA[method](gamma)
        starts = _few_starts(space, matrix, criterion, _N_STARTS.get(method, _FEWEST_STARTS))
    ends = [_descended(space, matrix, criterion, each) for each in starts]
    return min(ends, key=lambda end: end.criterion)


def procrustes(
    matrix: Float[np.ndarray, "rows dims"], target: Float[np.ndarray, "rows dims"]
) -> Float[np.ndarray, "dims dims"]:
    """The orthogonal R that brings `matrix R` nearest to the target (Schoenemann 1966)."""
    left, _, right = np.linalg.svd(matrix.T @ target)
    return left @ right


def _check(matrix: np.ndarray, method: str, target: np.ndarray | None, gamma: float) -> None:
    if method not in METHODS:
        raise InputError(f"rotation {method!r} is not known; use one of {', '.join(METHODS)}")
    if (method in TARGET_METHODS) != (target is not None):
        has = "needs a target" if target is None else "has no use for a target"
        raise InputError(f"rotation {method} {has}; methods with one: {', '.join(TARGET_METHODS)}")
    if gamma != 0 and method != "oblimin":
        raise InputError(f"gamma belongs to rotation oblimin, not to {method}; drop it")
    if gamma > 0:
        raise InputError(f"gamma must be at most 0, not {gamma}: above it oblimin has no minimum")
    if target is None:
        return
    if target.shape != matrix.shape:
        raise InputError(f"the target has shape {target.shape}, the loadings {matrix.shape}")
    if np.isinf(target).any() or np.isnan(target).all(axis=0).any():
        raise InputError("the target must have a finite number in every dim; NaN leaves one free")


class _Orthogonal:
    """Transformations with `T' T = I`."""

    @staticmethod
    def loadings(matrix: np.ndarray, transform: np.ndarray) -> np.ndarray:
        return matrix @ transform

    @staticmethod
    def gradient(
        matrix: np.ndarray, loading: np.ndarray, transform: np.ndarray, slope: np.ndarray
    ) -> np.ndarray:
        return matrix.T @ slope

    @staticmethod
    def projected(transform: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        along = transform.T @ gradient
        return gradient - transform @ (along + along.T) / 2

    @staticmethod
    def retracted(point: np.ndarray) -> np.ndarray:
        left, _, right = np.linalg.svd(point)
        return left @ right


class _Oblique:
    """Transformations with columns of length 1."""

    @staticmethod
    def loadings(matrix: np.ndarray, transform: np.ndarray) -> np.ndarray:
        return matrix @ np.linalg.inv(transform).T

    @staticmethod
    def gradient(
        matrix: np.ndarray, loading: np.ndarray, transform: np.ndarray, slope: np.ndarray
    ) -> np.ndarray:
        return -(loading.T @ slope @ np.linalg.inv(transform)).T

    @staticmethod
    def projected(transform: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        return gradient - transform * np.sum(transform * gradient, axis=0)

    @staticmethod
    def retracted(point: np.ndarray) -> np.ndarray:
        return point / np.linalg.norm(point, axis=0)


_Space = type[_Orthogonal] | type[_Oblique]


def _descended(
    space: _Space,
    matrix: np.ndarray,
    criterion: _Criterion,
    start: np.ndarray,
    most_steps: int = _MOST_STEPS,
) -> Rotation:
    """Down the projected gradient, with steps as long as its last change says (Barzilai-Borwein).

    Doubling the last length instead, as published, takes 1,000 steps where this takes 50.
    """
    transform, length = start, 1.0
    loading = space.loadings(matrix, transform)
    value, slope = criterion(loading)
    direction = space.projected(transform, space.gradient(matrix, loading, transform, slope))
    for step in range(most_steps):
        size = float(np.sum(direction**2))
        if size <= _TOLERANCE**2:
            return Rotation(transform, value, step, True)
        for _ in range(_MOST_HALVINGS):
            new = space.retracted(transform - length * direction)
            loading = space.loadings(matrix, new)
            new_value, slope = criterion(loading)
            if value - new_value > _LEAST_DECREASE * size * length:
                break
            length /= 4
        if not new_value < value:  # rounding: the last good transformation is the minimum
            return Rotation(transform, value, step, size <= 1e4 * _TOLERANCE**2)
        new_direction = space.projected(new, space.gradient(matrix, loading, new, slope))
        moved, turned = new - transform, new_direction - direction
        curvature = float(np.sum(moved * turned))
        length = float(np.sum(moved**2)) / curvature if curvature > 0 else 4 * length
        transform, value, direction = new, new_value, new_direction
    return Rotation(transform, value, most_steps, False)


def _few_starts(
    space: _Space, matrix: np.ndarray, criterion: _Criterion, n_starts: int
) -> list[np.ndarray]:
    """The best different minima of some of the items, from varimax and random frames."""
    few = matrix
    if len(matrix) > _MOST_ITEMS:
        rng = np.random.default_rng(0)
        few = matrix[np.sort(rng.choice(len(matrix), _MOST_ITEMS, replace=False))]
    starts = [varimax(matrix), *_random_frames(matrix.shape[1], n_starts)]
    ends = [_descended(space, few, criterion, each, _START_STEPS) for each in starts]
    ends.sort(key=lambda end: end.criterion)
    kept = [ends[0]]
    for end in ends[1:]:
        if end.criterion - kept[-1].criterion > _SAME * abs(end.criterion):
            kept.append(end)
    return [end.transform for end in kept[:_N_KEPT]]


def _random_frames(dims: int, n_frames: int) -> list[np.ndarray]:
    """Orthogonal matrices, the same at every call."""
    rng = np.random.default_rng(0)
    return [np.linalg.qr(rng.normal(size=(dims, dims)))[0] for _ in range(n_frames)]


def _oblimin(gamma: float) -> _Criterion:
    """Covariances of squared loadings: `sum_jk L_jk^2 sum_(l != k) L_jl^2 / 4` at gamma 0."""

    def criterion(loading: np.ndarray) -> tuple[float, np.ndarray]:
        squared = loading**2
        if gamma:
            squared = squared - gamma * squared.mean(axis=0)
        others = squared.sum(axis=1, keepdims=True) - squared
        n_items = len(loading)
        return float(np.sum(loading**2 * others)) / (4 * n_items), loading * others / n_items

    return criterion


def _geomin(_: float) -> _Criterion:
    """Geometric means of an item's squared loadings (Yates 1987)."""

    def criterion(loading: np.ndarray) -> tuple[float, np.ndarray]:
        squared = loading**2 + _GEOMIN_EPSILON
        mean = np.exp(np.mean(np.log(squared), axis=1, keepdims=True))
        n_items, dims = loading.shape
        return float(np.mean(mean)), (2 / (dims * n_items)) * mean * loading / squared

    return criterion


def _compressed(
    matrix: np.ndarray, target: np.ndarray
) -> tuple[Float[np.ndarray, "rows dims"], Float[np.ndarray, "rows dims"]]:
    """As few rows with the same distances from the target: of each dim its own triangular factor.

    With `Q R = [A h]` of the items with a target h in a dim, `|A s - h|^2 = |R (s, -1)|^2`.
    """
    rows, wanted = [], []
    for k, column in enumerate(target.T):
        is_given = ~np.isnan(column)
        both = np.column_stack([matrix, column])[is_given]
        factor: np.ndarray = np.asarray(np.linalg.qr(both, mode="r"))
        alone = np.full((len(factor), len(target.T)), np.nan)
        alone[:, k] = factor[:, -1]
        rows.append(factor[:, :-1])
        wanted.append(alone)
    return np.concatenate(rows), np.concatenate(wanted)


def _target_criterion(target: np.ndarray, n_numbers: int) -> _Criterion:
    """Squared distance from the target where it is given, over the number of loadings."""
    is_given = ~np.isnan(target)
    filled = np.where(is_given, target, 0)

    def criterion(loading: np.ndarray) -> tuple[float, np.ndarray]:
        away = np.where(is_given, loading - filled, 0)
        return float(np.sum(away**2)) / n_numbers, 2 * away / n_numbers

    return criterion


_CRITERIA: dict[str, Callable[[float], _Criterion]] = {
    "quartimin": _oblimin,
    "oblimin": _oblimin,
    "geomin": _geomin,
    "geomin-orthogonal": _geomin,
}

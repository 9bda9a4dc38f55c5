"""Where one fit's scale lies on another's, from the items that both have (Kolen & Brennan 2014).

Every method finds `theta' = A theta + B`, which takes the slopes to `A^-T slope` and the intercepts
to `intercept - B . slope'`.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Bool, Float
from scipy.optimize import least_squares
from scipy.special import expit

from irtjax.errors import InputError
from irtjax.fit.scale_change import ScaleChange

__all__ = [
    "METHODS",
    "ONE_DIM_METHODS",
    "AnchorItems",
    "matched_moments",
    "matched_points",
    "scale_nodes",
]

# Nodes of the reference population over which curves are compared: as many standard deviations to
# either side as hold all but 6e-5 of it.
_N_NODES = 41
_WIDEST = 4.0
_TOLERANCE = 1e-12


@dataclasses.dataclass(frozen=True, eq=False)
class AnchorItems:
    """The items of both fits as one of them has them, float64.

    `covariance` is that of `(slope, intercept)`.
    """

    slope: Float[np.ndarray, "items dims"]
    intercept: Float[np.ndarray, " items"]
    covariance: Float[np.ndarray, "items coordinates coordinates"]
    guessing: Float[np.ndarray, " items"]
    feasibility: Float[np.ndarray, " items"]

    @property
    def coordinates(self) -> Float[np.ndarray, "items coordinates"]:
        """`(slope, intercept)`."""
        return np.concatenate([self.slope, self.intercept[:, None]], axis=1)

    def at(self, kept: Bool[np.ndarray, " items"]) -> "AnchorItems":
        """Some of the items."""
        return AnchorItems(*(value[kept] for value in vars(self).values()))

    def changed(self, change: ScaleChange) -> "AnchorItems":
        """The items on another scale."""
        moved = change.apply_to_coordinates(self.coordinates)
        covariance = change.apply_to_item_covariance(self.covariance)
        return AnchorItems(moved[:, :-1], moved[:, -1], covariance, self.guessing, self.feasibility)

    def curves(self, node: Float[np.ndarray, "nodes dims"]) -> Float[np.ndarray, "items nodes"]:
        """Probability of a right response at each node."""
        s = expit(self.slope @ node.T + self.intercept[:, None])
        return self.guessing[:, None] + (self.feasibility - self.guessing)[:, None] * s


def scale_nodes(
    mean: Float[np.ndarray, " dims"], covariance: Float[np.ndarray, "dims dims"]
) -> tuple[Float[np.ndarray, "nodes dims"], Float[np.ndarray, " nodes"]]:
    """Nodes of a normal population and their weights, which sum to 1.

    In one dim 41 equally spaced ones within 4 standard deviations; in more, the same on each
    principal axis by itself.
    """
    line = np.linspace(-_WIDEST, _WIDEST, _N_NODES)
    values, vectors = np.linalg.eigh(covariance)
    axes = (vectors * np.sqrt(np.maximum(values, 0))).T
    node = mean + (line[None, :, None] * axes[:, None]).reshape(-1, len(mean))
    weight = np.tile(np.exp(-0.5 * line**2), len(mean))
    return node, weight / weight.sum()


def _common_matrix(run: AnchorItems, reference: AnchorItems) -> Float[np.ndarray, "dims dims"]:
    """Of families with one slope for all items: what takes one to the other."""
    return np.diag(run.slope[0] / reference.slope[0])


def _translated(
    run: AnchorItems,
    reference: AnchorItems,
    weight: Float[np.ndarray, " items"],
    matrix: Float[np.ndarray, "dims dims"],
) -> ScaleChange:
    """The shift at which the intercepts agree best (weighted least squares)."""
    slope = run.slope @ np.linalg.inv(matrix)
    root = np.sqrt(weight)
    away = root * (run.intercept - reference.intercept)
    shift = np.linalg.lstsq(root[:, None] * slope, away, rcond=None)[0]
    return ScaleChange(matrix, shift)


def matched_moments(
    run: AnchorItems,
    reference: AnchorItems,
    weight: Float[np.ndarray, " items"],
    *,
    is_common: bool = False,
) -> ScaleChange:
    """Oblique Procrustes: slopes of equal second moments, turned to agree best.

    With `S` the second moments of both sides' slopes, `slope' = S_ref^1/2 R S_run^-1/2 slope` and R
    the orthogonal matrix that brings the whitened slopes closest. It has no direction: errors in
    the slopes pull a regression of one side on the other towards 0, and this only by what one side
    has more of them than the other.
    """
    if is_common:
        return _translated(run, reference, weight, _common_matrix(run, reference))
    roots = [_root((weight[:, None] * side.slope).T @ side.slope) for side in (run, reference)]
    back, forth = np.linalg.inv(roots[0]), np.linalg.inv(roots[1])
    turn = _rotation(run.slope @ back, reference.slope @ forth, weight)
    of_slopes = roots[1] @ turn @ back
    return _translated(run, reference, weight, np.linalg.inv(of_slopes).T)


def matched_points(
    run: Float[np.ndarray, "points dims"],
    reference: Float[np.ndarray, "points dims"],
    *,
    keeps_scale: bool = False,
) -> ScaleChange:
    """Abilities of the same models: equal mean and covariance, turned to agree best.

    Args:
        run: on the scale to leave.
        reference: on the scale to reach.
        keeps_scale: move them only.
    """
    dims, means = run.shape[1], (run.mean(axis=0), reference.mean(axis=0))
    matrix = np.eye(dims)
    if not keeps_scale:
        away = [side - mean for side, mean in zip((run, reference), means, strict=True)]
        roots = [_root(side.T @ side) for side in away]
        back, forth = np.linalg.inv(roots[0]), np.linalg.inv(roots[1])
        turn = _rotation(away[0] @ back, away[1] @ forth, np.ones(len(run)))
        matrix = roots[1] @ turn @ back
    return ScaleChange(matrix, means[1] - matrix @ means[0])


def _root(moments: Float[np.ndarray, "dims dims"]) -> Float[np.ndarray, "dims dims"]:
    """Symmetric root, of directions that vanish a small one."""
    values, vectors = np.linalg.eigh(moments)
    values = np.maximum(values, 1e-12 * max(values.max(), 1e-12))
    return (vectors * np.sqrt(values)) @ vectors.T


def _rotation(one: np.ndarray, other: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """The orthogonal R with `other ~ one R'` (Schoenemann 1966)."""
    left, _, right = np.linalg.svd((weight[:, None] * other).T @ one)
    return left @ right


def _procrustes(
    run: AnchorItems, reference: AnchorItems, weight: np.ndarray, nodes: Any, *, is_common: bool
) -> ScaleChange:
    """Rotation and translation only: the spread of abilities stays."""
    turn = _rotation(run.slope, reference.slope, weight)
    return _translated(run, reference, weight, np.eye(1) if is_common else turn)


def _oblique(
    run: AnchorItems, reference: AnchorItems, weight: np.ndarray, nodes: Any, *, is_common: bool
) -> ScaleChange:
    return matched_moments(run, reference, weight, is_common=is_common)


def _mean_sigma(
    run: AnchorItems, reference: AnchorItems, weight: np.ndarray, nodes: Any, *, is_common: bool
) -> ScaleChange:
    """Difficulties of equal mean and standard deviation (Marco 1977).

    Of items whose slope is above its standard error in both fits: a difficulty is a division by it.
    """
    is_known = np.ones(len(weight), bool)
    for side in (run, reference):
        is_known &= np.abs(side.slope[:, 0]) > np.sqrt(side.covariance[:, 0, 0])
    if np.count_nonzero(is_known) < 2:
        raise InputError(
            "mean-sigma needs at least 2 anchors with slopes above their standard errors; use "
            "haebara"
        )
    run, reference = run.at(is_known), reference.at(is_known)
    weight = weight[is_known] / weight[is_known].sum()
    first, second = (-side.intercept / side.slope[:, 0] for side in (run, reference))
    means = weight @ first, weight @ second
    if is_common:
        matrix = _common_matrix(run, reference)
    else:
        ratio = np.sqrt((weight @ (second - means[1]) ** 2) / (weight @ (first - means[0]) ** 2))
        sign = np.sign(np.sum(weight * run.slope[:, 0] * reference.slope[:, 0])) or 1.0
        matrix = np.array([[sign * ratio]])
    return ScaleChange(matrix, means[1] - matrix[0] * means[0])


def _by_curves(residuals: Callable[..., np.ndarray]) -> Callable[..., ScaleChange]:
    """A method that minimises the squares of residuals of curves over the nodes, in one dim."""

    def method(
        run: AnchorItems, reference: AnchorItems, weight: np.ndarray, nodes: Any, *, is_common: bool
    ) -> ScaleChange:
        node, mass = nodes
        start = matched_moments(run, reference, weight, is_common=is_common)
        sign, first = np.sign(start.matrix[0, 0]), np.log(np.abs(start.matrix[0, 0]))
        target = reference.curves(node)

        def change(place: np.ndarray) -> ScaleChange:
            log_scale = first if is_common else place[1]
            return ScaleChange(np.array([[sign * np.exp(log_scale)]]), place[:1])

        def away(place: np.ndarray) -> np.ndarray:
            return residuals(run.changed(change(place)).curves(node) - target, weight, mass)

        place = start.shift if is_common else np.append(start.shift, first)
        found = least_squares(away, place, xtol=_TOLERANCE, ftol=_TOLERANCE, gtol=_TOLERANCE)
        return change(found.x)

    return method


def _haebara(away: np.ndarray, weight: np.ndarray, mass: np.ndarray) -> np.ndarray:
    """Each curve by itself (Haebara 1980)."""
    return (np.sqrt(weight)[:, None] * away * np.sqrt(mass)).ravel()


def _stocking_lord(away: np.ndarray, weight: np.ndarray, mass: np.ndarray) -> np.ndarray:
    """The sum of the curves (Stocking & Lord 1983)."""
    return (weight @ away) * np.sqrt(mass)


ONE_DIM_METHODS = {
    "haebara": _by_curves(_haebara),
    "stocking-lord": _by_curves(_stocking_lord),
    "mean-sigma": _mean_sigma,
}
METHODS = ONE_DIM_METHODS | {"oblique": _oblique, "procrustes": _procrustes}

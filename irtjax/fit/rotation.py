"""The canonical frame: varimax, dims by explained variance, abilities that rise with accuracy."""

import itertools

import numpy as np

__all__ = ["SCALE", "accuracy_signs", "canonical_rotation", "loadings", "varimax"]

# The logistic curve with slope 1.702 is nearest to the normal ogive with slope 1.
SCALE = 1.702


def loadings(slope: np.ndarray, correlation: np.ndarray | None = None) -> np.ndarray:
    """`slope_k / sqrt(1.702^2 + slope' Phi slope)`: standardised loading on each dim.

    Where the dims are uncorrelated, that is the correlation of the latent response with each.

    Args:
        slope: items x dims, for abilities with sd 1.
        correlation: Phi, of the abilities; the identity without.

    Returns:
        items x dims, between -1 and 1.
    """
    along = slope if correlation is None else slope @ correlation
    return slope / np.sqrt(SCALE**2 + np.sum(along * slope, axis=1, keepdims=True))


def varimax(matrix: np.ndarray, *, max_sweeps: int = 100, tolerance: float = 1e-9) -> np.ndarray:
    """Rotation R that maximises the variance of the squared entries of `matrix R` (Kaiser 1958).

    Each pair of dims in turn is rotated by the angle that is best for it, in closed form: with
    `u = x^2 - y^2` and `v = 2 x y`, `tan 4 phi` is the covariance of u and v over half the
    difference of their variances. The usual iteration of singular value decompositions stops
    wherever the gradient is 0, also at a minimum: it leaves perfect simple structure turned by 45
    degrees as it is, and turned by 22.5 degrees it alternates between two frames.

    Args:
        matrix: items x dims.
        max_sweeps: most rounds over all pairs.
        tolerance: stop when no pair turns by more than this, radians.

    Returns:
        dims x dims, orthogonal with determinant 1.
    """
    dims = matrix.shape[1]
    rotated, rotation = matrix.astype(np.float64), np.eye(dims)
    for _ in range(max_sweeps):
        largest = 0.0
        for k, l in itertools.combinations(range(dims), 2):
            angle = _best_angle(rotated[:, k], rotated[:, l])
            largest = max(largest, abs(angle))
            cosine, sine = np.cos(angle), np.sin(angle)
            turn = np.array([[cosine, -sine], [sine, cosine]])
            rotated[:, [k, l]] = rotated[:, [k, l]] @ turn
            rotation[:, [k, l]] = rotation[:, [k, l]] @ turn
        if largest <= tolerance:
            break
    return rotation


def _best_angle(x: np.ndarray, y: np.ndarray) -> float:
    """Angle, within +-45 degrees, at which two dims together are simplest."""
    u, v = x**2 - y**2, 2 * x * y
    u, v = u - u.mean(), v - v.mean()
    return float(np.arctan2(2 * (u @ v), u @ u - v @ v)) / 4


def canonical_rotation(slope: np.ndarray, ability: np.ndarray, accuracy: np.ndarray) -> np.ndarray:
    """Orthogonal matrix R to the canonical frame: `ability R`, `slope R`.

    Varimax of the loadings; dims ordered by their sum of squared loadings; each dim signed so
    that ability rises with accuracy (where it does neither, so that the mean slope is positive).
    An item that falls with ability keeps its negative slope.

    Args:
        slope: items x dims.
        ability: models x dims.
        accuracy: mean response of each model, NaN without responses.

    Returns:
        dims x dims, orthogonal.
    """
    loading = loadings(slope)
    rotation = varimax(loading) if loading.shape[1] > 1 else np.eye(1)
    explained = np.sum((loading @ rotation) ** 2, axis=0)
    rotation = rotation[:, np.argsort(-explained, kind="stable")]
    return rotation * accuracy_signs(slope @ rotation, ability @ rotation, accuracy)


def accuracy_signs(slope: np.ndarray, ability: np.ndarray, accuracy: np.ndarray) -> np.ndarray:
    """Sign of each dim with which ability rises with accuracy.

    Where it does neither, the sign with which the mean slope is positive.

    Args:
        slope: items x dims.
        ability: models x dims.
        accuracy: mean response of each model, NaN without responses.
    """
    seen = ~np.isnan(accuracy)
    away = accuracy[seen] - accuracy[seen].mean() if seen.any() else np.zeros(0)
    covariance = away @ ability[seen]
    scale = np.linalg.norm(away) * np.linalg.norm(ability[seen], axis=0)
    is_clear = np.abs(covariance) > 1e-6 * np.maximum(scale, 1e-30)
    sign = np.where(is_clear, np.sign(covariance), np.sign(np.mean(slope, axis=0)))
    return np.where(sign == 0, 1.0, sign)

"""The canonical frame: varimax, dims by explained variance, abilities that rise with accuracy."""

import numpy as np

__all__ = ["SCALE", "canonical_rotation", "loadings", "varimax"]

# The logistic curve with slope 1.702 is nearest to the normal ogive with slope 1.
SCALE = 1.702


def loadings(slope: np.ndarray) -> np.ndarray:
    """`slope_k / sqrt(1.702^2 + |slope|^2)`: correlation of the latent response with each dim.

    Args:
        slope: items x dims, for uncorrelated abilities with sd 1.

    Returns:
        items x dims, between -1 and 1.
    """
    return slope / np.sqrt(SCALE**2 + np.sum(slope**2, axis=1, keepdims=True))


def varimax(matrix: np.ndarray, *, max_steps: int = 500, tolerance: float = 1e-10) -> np.ndarray:
    """Rotation R that maximises the variance of the squared entries of `matrix R` (Kaiser 1958).

    Each step is a singular value decomposition of a dims x dims matrix and costs O(items dims^2).

    Args:
        matrix: items x dims.
        max_steps: most steps.
        tolerance: stop when the criterion gains less than this share.

    Returns:
        dims x dims, orthogonal.
    """
    n_items, dims = matrix.shape
    matrix = matrix.astype(np.float64)
    rotation = np.eye(dims)
    before = 0.0
    for _ in range(max_steps):
        rotated = matrix @ rotation
        cubic = rotated**3 - rotated * (np.sum(rotated**2, axis=0) / n_items)
        left, values, right = np.linalg.svd(matrix.T @ cubic)
        rotation = left @ right
        if values.sum() <= before * (1 + tolerance):
            break
        before = values.sum()
    return rotation


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
    seen = ~np.isnan(accuracy)
    away = accuracy[seen] - accuracy[seen].mean() if seen.any() else np.zeros(0)
    turned = ability[seen] @ rotation
    covariance = away @ turned
    scale = np.linalg.norm(away) * np.linalg.norm(turned, axis=0)
    is_clear = np.abs(covariance) > 1e-6 * np.maximum(scale, 1e-30)
    sign = np.where(is_clear, np.sign(covariance), np.sign(np.mean(slope @ rotation, axis=0)))
    return rotation * np.where(sign == 0, 1.0, sign)

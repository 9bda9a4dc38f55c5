"""The end of a packed tower: the linear map from what it puts out into the published frame.

Items: `(slope, intercept)` times a matrix of `dims + 1` rows and columns; models: `(ability, 1)`
times one of `dims + 1` rows and `dims` columns. What moves the estimates of a fit moves these too.
"""

import numpy as np
from jaxtyping import Float

from irtjax.fit.features import Side

__all__ = ["split_tower", "with_frame"]


def split_tower(
    vector: Float[np.ndarray, " weights"], dims: int, side: Side
) -> tuple[np.ndarray, Float[np.ndarray, "coordinates published"]]:
    """The weights of a packed tower, and its map (float64)."""
    published = dims + 1 if side == "item" else dims
    size = (dims + 1) * published
    frame = np.asarray(vector[-size:], np.float64).reshape(dims + 1, published)
    return np.asarray(vector[:-size]), frame


def with_frame(
    vector: Float[np.ndarray, " weights"], frame: Float[np.ndarray, "coordinates published"]
) -> Float[np.ndarray, " weights"]:
    """The packed tower with another map."""
    return np.concatenate([vector[: -frame.size], frame.ravel()]).astype(vector.dtype)

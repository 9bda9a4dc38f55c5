"""Small matrices of every kind of response, for hypothesis."""

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np

from irtjax.data.checks import MISSING

__all__ = ["MATRICES", "masked"]

MATRICES = hnp.arrays(
    np.float64,
    hnp.array_shapes(min_dims=2, max_dims=2, max_side=6),
    elements=st.sampled_from([0.0, 1.0, 0.25, -1.0, float("nan")]),
)


def masked(dense):
    """The oracle: a masked array of what is observed."""
    return np.ma.masked_array(dense, np.isnan(dense) | (dense == MISSING))

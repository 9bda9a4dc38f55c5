"""How closely numbers must agree, by what was computed and in which dtype: the one place."""

from typing import Any, Literal

import numpy as np
from jax import dtypes
from numpy.testing import assert_allclose

__all__ = ["Kind", "close", "tolerance"]

Kind = Literal["elementwise", "reduction", "solve", "fit"]

_TOLERANCES: dict[str, dict[Kind, float]] = {
    # Machine epsilon is 1.2e-7 and 2.2e-16. What each kind may lose on top of it:
    #   elementwise  a few operations on each number
    #   reduction    sums over hundreds of cells
    #   solve        a Cholesky factor of a matrix with a condition number near 1e3
    #   fit          an iteration run to convergence, or the same one in another order of sums
    "float32": {"elementwise": 2e-6, "reduction": 1e-5, "solve": 1e-4, "fit": 1e-3},
    "float64": {"elementwise": 1e-13, "reduction": 1e-12, "solve": 1e-10, "fit": 1e-7},
}


def tolerance(kind: Kind = "elementwise", dtype: Any = None) -> float:
    """The relative tolerance of `kind` in `dtype`; by default JAX's float of this process."""
    if dtype is None:
        dtype = dtypes.canonicalize_dtype(float)
    return _TOLERANCES[np.dtype(dtype).name][kind]


def close(
    actual: Any, expected: Any, *, kind: Kind = "elementwise", scale: float = 1.0, dtype: Any = None
) -> None:
    """Asserts that `actual` equals `expected` (shapes too) within the tolerance of `kind`.

    Args:
      actual: What the code under test returned.
      expected: What the oracle says.
      kind: What was computed; see `tolerance`.
      scale: The size of the numbers that went into the computation. An error of `scale` times the
        tolerance is allowed everywhere, so that a small difference of large numbers is not asked
        to be exact.
      dtype: What `actual` was computed in; by default JAX's float of this process.
    """
    bound = tolerance(kind, dtype)
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape, f"shape {actual.shape} instead of {expected.shape}"
    assert_allclose(actual, expected, rtol=bound, atol=bound * scale)

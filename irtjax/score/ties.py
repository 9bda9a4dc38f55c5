"""Values that are equal up to rounding: which of them comes first must not be its noise."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

__all__ = ["TIED", "first_of_equals", "least_equal"]

# Values closer than this share of themselves are equal: float32 sums over a target's points, and
# covariances updated item by item, differ by some 1e-6 between machines and orders of summation.
TIED = 1e-5


def first_of_equals(value: Float[np.ndarray, " items"]) -> Float[np.ndarray, " items"]:
    """Every value, or the largest of those that it is equal to up to `TIED`, along chains.

    Sorted stably, items of equal values then stand in their own order.
    """
    order = np.argsort(-value, kind="stable")
    ordered = value[order]
    is_new = np.r_[True, ordered[:-1] - ordered[1:] > TIED * np.abs(ordered[:-1])]
    found = np.empty_like(ordered)
    found[order] = ordered[np.maximum.accumulate(np.where(is_new, np.arange(len(value)), 0))]
    return found


def least_equal(best: Float[Array, "..."]) -> Float[Array, "..."]:
    """The smallest value that is equal to a largest one up to `TIED`."""
    return best - TIED * jnp.abs(best)

"""Anderson acceleration of a fixed-point iteration on one vector, on the device.

With 12 models EM forgets only 2 to 7% of its error a step. From the last few parameters x and
residuals r = F(x) - x the accelerated next parameter is
`F(x) - (dX + dR) gamma` with `gamma = argmin |r - dR gamma|` (Anderson 1965, type II): the step a
secant method would take in the subspace of the last moves.
"""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from irtjax.model.pytree import pytree_dataclass

__all__ = ["History", "empty_history", "extrapolate"]

# Directions whose residuals differ by less than this share of the largest are rounding.
_SMALLEST_SINGULAR = 1e-3
# The extrapolated move is at most this many times the plain one.
_LONGEST = 30.0
# Plain steps before the first extrapolation, and after each rejected one.
_FEWEST = 4


@pytree_dataclass
class History:
    """The newest parameters and their residuals, newest first, and how many are valid."""

    moves: Float[Array, "2 depth size"]
    count: Int[Array, ""]


def empty_history(size: int, depth: int, dtype: jnp.dtype) -> History:
    """No steps yet; `depth` differences need `depth + 1` parameters."""
    return History(jnp.zeros((2, depth + 1, size), dtype), jnp.zeros((), jnp.int32))


def extrapolate(
    history: History, old: Float[Array, " size"], new: Float[Array, " size"]
) -> tuple[Float[Array, " size"], Bool[Array, ""], History]:
    """The accelerated parameter after the plain step from `old` to `new`.

    Returns:
        The parameter (`new` itself while the history is short), whether it was extrapolated, and
        the history with this step.
    """
    residual = new - old
    newest = jnp.stack([old, residual])[:, None]
    depth = history.moves.shape[1] - 1
    history = History(
        jnp.concatenate([newest, history.moves[:, :-1]], axis=1),
        jnp.minimum(history.count + 1, depth + 1),
    )
    index = jnp.arange(depth, dtype=history.count.dtype)
    is_valid = (index + 1 < history.count)[:, None]
    d_parameter, d_residual = jnp.where(is_valid, -jnp.diff(history.moves, axis=1), 0)
    gamma, *_ = jnp.linalg.lstsq(d_residual.T, residual, rcond=_SMALLEST_SINGULAR)
    move = residual - gamma @ (d_parameter + d_residual)
    # By a product, not a norm: products compile in a tenth of a sum's time.
    length, limit = jnp.sqrt(move @ move), _LONGEST * jnp.sqrt(residual @ residual)
    move = move * jnp.minimum(1, limit / jnp.maximum(length, jnp.finfo(move.dtype).tiny))
    is_ready = (history.count >= _FEWEST) & jnp.isfinite(length)
    return jnp.where(is_ready, old + move, new), is_ready, history

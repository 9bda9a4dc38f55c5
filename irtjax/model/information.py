"""Fisher information and slope of item response curves (DESIGN 4.6).

With `z` the logit, `s = sigmoid(z)`, guessing c and feasibility d, a response tells
`[(d - c) s (1 - s)]^2 / (P (1 - P))` about z, and the curve rises by `(d - c) s (1 - s)` a logit.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

__all__ = ["logit_information", "logit_slope"]

# Past this many logits a response tells nothing in float32, and powers of the odds would overflow.
_FARTHEST_LOGIT = 40.0


def logit_slope(
    logit: Float[Array, "..."],
    guessing: Float[Array, "..."] | float = 0.0,
    feasibility: Float[Array, "..."] | float = 1.0,
) -> Float[Array, "..."]:
    """`dP/dz`: probability a logit; times the slope it is `dP/dtheta`."""
    return (feasibility - guessing) * jax.nn.sigmoid(logit) * jax.nn.sigmoid(-logit)


def logit_information(
    logit: Float[Array, "..."],
    guessing: Float[Array, "..."] | float = 0.0,
    feasibility: Float[Array, "..."] | float = 1.0,
) -> Float[Array, "..."]:
    """Fisher information of a response about its logit, per squared logit.

    Times the squared slope it is the information about an ability. `1 - P` is
    `1 - d + (d - c) sigmoid(-z)`, which cancels nowhere.
    """
    logit = jnp.clip(logit, -_FARTHEST_LOGIT, _FARTHEST_LOGIT)
    rise = logit_slope(logit, guessing, feasibility)
    p = guessing + (feasibility - guessing) * jax.nn.sigmoid(logit)
    not_p = (1 - feasibility) + (feasibility - guessing) * jax.nn.sigmoid(-logit)
    return rise / p * (rise / not_p)

"""Accelerated fixed-point iteration that never lets its objective fall: for any estimator.

It works on one vector of unconstrained parameters: selecting among pytrees leaf by leaf took as
long to compile as the passes over the data.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from irtjax.fit.acceleration import History, empty_history, extrapolate
from irtjax.model.pytree import pytree_dataclass

__all__ = ["Guarded", "advance_guarded", "start_guarded"]


@pytree_dataclass
class Guarded:
    """Parameters to evaluate next, and what to go back to when the objective falls.

    `points` are three vectors: `current`, the plain result of the last step or its extrapolation
    (`was_extrapolated`); `plain`, for which it is given up where the objective falls; `previous`,
    the last that held. They are one array: a choice an array is a program an array to compile.
    """

    points: Float[Array, "3 size"]
    history: History
    was_extrapolated: Bool[Array, ""]
    objective: Float[Array, ""]

    @property
    def current(self) -> Float[Array, " size"]:
        """What to evaluate next."""
        return self.points[0]

    @property
    def plain(self) -> Float[Array, " size"]:
        """The result of the last plain step."""
        return self.points[1]

    @property
    def previous(self) -> Float[Array, " size"]:
        """The last parameters whose objective had not fallen."""
        return self.points[2]


def start_guarded(vector: Float[Array, " size"], depth: int) -> Guarded:
    """Before the first step; `depth` is how many past steps the acceleration looks at."""
    return Guarded(
        jnp.stack([vector, vector, vector]),
        history=empty_history(vector.shape[0], depth, vector.dtype),
        was_extrapolated=jnp.array(False),
        objective=jnp.asarray(-jnp.inf, vector.dtype),
    )


def advance_guarded(
    guarded: Guarded,
    objective: Float[Array, ""],
    plain: Float[Array, " size"],
    largest_drop: float,
) -> tuple[Guarded, Bool[Array, ""]]:
    """Go on from the evaluated `current`, or back when its objective fell.

    Args:
        guarded: where the iteration is.
        objective: of `guarded.current`.
        plain: what one plain step makes of `guarded.current`.
        largest_drop: share of the objective that it may fall by (its rounding).

    Returns:
        The next state, and whether the objective had fallen.
    """
    fell = objective < guarded.objective - largest_drop * jnp.abs(objective)
    vector, was_extrapolated, history = extrapolate(guarded.history, guarded.current, plain)
    halved = (guarded.previous + guarded.current) / 2
    retreat = jnp.where(guarded.was_extrapolated, guarded.plain, halved)
    back = jnp.stack([retreat, retreat, guarded.previous])
    onward = jnp.stack([vector, plain, guarded.current])
    empty = jax.tree.map(jnp.zeros_like, history)
    advanced = Guarded(
        jnp.where(fell, back, onward),
        history=jax.tree.map(lambda a, b: jnp.where(fell, a, b), empty, history),
        was_extrapolated=was_extrapolated & ~fell,
        objective=jnp.where(fell, guarded.objective, objective),
    )
    return advanced, fell

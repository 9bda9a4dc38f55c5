"""What an empirical item distribution estimates, and the vector its iteration is accelerated on."""

import dataclasses
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from irtjax.fit.frame import FrameChange
from irtjax.model.pytree import pytree_dataclass
from irtjax.model.response import Asymptotes

__all__ = ["GridParameters", "grid_vector"]

# Weights enter the vector by their square roots, whose length is 1 in each group: moves are then
# as large as what they do to the distribution (the Hellinger distance). By logarithms the nodes
# that hardly any item is at would decide the extrapolation.
_LEAST_WEIGHT = 1e-12


@pytree_dataclass
class GridParameters:
    """Models, where the nodes are, and each group's weights (one group where all share them).

    `frame` is what all changes of frame so far have made of the grid's nodes.
    """

    ability: Float[Array, "models dims"]
    effect: Float[Array, "models groups"] | None
    effect_variance: Float[Array, ""]
    frame: FrameChange
    log_weight: Float[Array, "groups nodes"]
    asymptotes: Asymptotes | None


def grid_vector(
    parameters: GridParameters,
) -> tuple[Float[Array, " size"], Callable[[Float[Array, " size"]], GridParameters]]:
    """The parameters as one unconstrained vector, and the way back; fixed asymptotes stay."""
    finite = jax.tree.map(lambda leaf: jnp.where(jnp.isinf(leaf), 0, leaf), parameters.asymptotes)
    vector, unravel = ravel_pytree(
        (
            parameters.ability,
            parameters.effect,
            jnp.log(parameters.effect_variance),
            parameters.frame,
            jnp.exp(parameters.log_weight / 2),
            finite,
        )
    )

    def back(vector: Float[Array, " size"]) -> GridParameters:
        ability, effect, log_variance, frame, root, finite = unravel(vector)
        log_weight = jnp.log(root**2 + _LEAST_WEIGHT)
        return dataclasses.replace(
            parameters,
            ability=ability,
            effect=effect,
            effect_variance=jnp.exp(log_variance),
            frame=frame,
            log_weight=log_weight - jax.nn.logsumexp(log_weight, axis=1, keepdims=True),
            asymptotes=jax.tree.map(
                lambda fixed, leaf: jnp.where(jnp.isinf(fixed), fixed, leaf),
                parameters.asymptotes,
                finite,
            ),
        )

    return vector, back

"""The parameters outside the items, and the vector on which their iteration is accelerated."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from irtjax.fit.hyperparameters import ItemDistribution
from irtjax.model.pytree import pytree_dataclass
from irtjax.model.response import Asymptotes

__all__ = ["OuterParameters", "vector_form"]


@pytree_dataclass
class OuterParameters:
    """Everything that is estimated but the items: small, and the same on every device.

    Abilities and effects have normal posteriors: means, and `ability_covariance` and
    `effect_spread` (variances). `frame` is what takes items of another fit's scale, where some are
    held, to the frame of the abilities here: it acts on `(slope, intercept)`.
    """

    ability: Float[Array, "models dims"]
    ability_covariance: Float[Array, "models dims dims"]
    effect: Float[Array, "models groups"] | None
    effect_spread: Float[Array, "models groups"] | None
    effect_variance: Float[Array, ""]
    distribution: ItemDistribution
    asymptotes: Asymptotes | None
    frame: Float[Array, "coordinates coordinates"] | None = None


def vector_form(
    outer: OuterParameters, is_free: tuple[bool, ...]
) -> tuple[Float[Array, " size"], Callable[[Float[Array, " size"]], OuterParameters]]:
    """The parameters as one unconstrained vector, and the way back.

    The variance of effects enters by its logarithm, covariances by their Cholesky factors with
    the diagonal's logarithm: every vector is a valid set of parameters. Pinned coordinates, fixed
    asymptotes and posterior variances (which follow from the rest) come back as they were.
    """
    size = len(is_free)
    rows, columns = np.tril_indices(size, -1)
    free = np.array(is_free)
    both = free[:, None] & free[None]
    distribution = outer.distribution
    unit = jnp.eye(size, dtype=distribution.covariance.dtype)
    factor = jnp.linalg.cholesky(jnp.where(both, distribution.covariance, unit))
    finite = jax.tree.map(lambda leaf: jnp.where(jnp.isinf(leaf), 0, leaf), outer.asymptotes)
    vector, unravel = ravel_pytree(
        (
            outer.ability,
            outer.effect,
            jnp.log(outer.effect_variance),
            distribution.mean,
            jnp.log(jnp.diagonal(factor, axis1=-2, axis2=-1)),
            factor[..., rows, columns],
            distribution.log_weight,
            finite,
            outer.frame,
        )
    )

    def back(vector: Float[Array, " size"]) -> OuterParameters:
        ability, effect, log_variance, mean, log_diagonal, below, weight, finite, frame = unravel(
            vector
        )
        factor = jnp.zeros_like(distribution.covariance)
        factor = factor.at[..., np.arange(size), np.arange(size)].set(jnp.exp(log_diagonal))
        factor = factor.at[..., rows, columns].set(below)
        covariance = jnp.einsum("...ij,...kj->...ik", factor, factor)
        return OuterParameters(
            ability,
            outer.ability_covariance,
            effect,
            outer.effect_spread,
            jnp.exp(log_variance),
            ItemDistribution(
                mean,
                jnp.where(both, covariance, jnp.zeros_like(covariance)),
                weight - jax.nn.logsumexp(weight, axis=-1, keepdims=True),
            ),
            jax.tree.map(
                lambda fixed, leaf: jnp.where(jnp.isinf(fixed), fixed, leaf),
                outer.asymptotes,
                finite,
            ),
            frame,
        )

    return vector, back

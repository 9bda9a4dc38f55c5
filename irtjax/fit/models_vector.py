"""Items and populations as one unconstrained vector: what the acceleration works on."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from irtjax.fit.item_step import ItemModel, ItemParameters
from irtjax.fit.populations import Populations
from irtjax.model.pytree import pytree_dataclass
from irtjax.model.response import Asymptotes

__all__ = ["ModelsParameters", "Moving", "from_vector", "to_vector"]


@pytree_dataclass
class ModelsParameters:
    """All that is estimated where the models are integrated out."""

    items: ItemParameters
    populations: Populations


@dataclasses.dataclass(frozen=True)
class Moving:
    """Which parts of the populations are estimated (static): location and scale, weights."""

    has_moments: bool
    has_weights: bool

    @property
    def any(self) -> bool:
        """Whether anything of the populations is."""
        return self.has_moments or self.has_weights


def to_vector(
    model: ItemModel, parameters: ModelsParameters, moving: Moving
) -> Float[Array, " size"]:
    """Slopes (or their logarithms), intercepts, asymptotes; then what moves of the populations."""
    items, populations = parameters.items, parameters.populations
    place = jnp.log(jnp.abs(items.slope)) if model.has_log_slopes else items.slope
    parts = [place, items.intercept]
    if items.asymptotes is not None:
        parts += [items.asymptotes.lower] if model.spec.has_guessing else []
        parts += [items.asymptotes.upper] if model.spec.has_feasibility else []
    if moving.any:
        rows, columns = np.tril_indices(model.spec.dims, -1)
        scale = jnp.log(jnp.diagonal(populations.factor, axis1=1, axis2=2))
        parts += [populations.mean, scale, populations.factor[:, rows, columns]]
    if moving.has_weights:
        parts += [populations.log_weight]
    return jnp.concatenate([part.ravel() for part in parts])


def from_vector(
    model: ItemModel, start: ModelsParameters, vector: Float[Array, " size"], moving: Moving
) -> ModelsParameters:
    """The parameters of a vector; what the vector does not hold is that of `start`."""
    position = 0

    def taken(like: Array) -> Array:
        nonlocal position
        position += like.size
        return vector[position - like.size : position].reshape(like.shape)

    items, populations = start.items, start.populations
    slope = taken(items.slope)
    if model.has_log_slopes:
        slope = jnp.sign(items.slope) * jnp.exp(slope)
    intercept, asymptotes = taken(items.intercept), items.asymptotes
    if asymptotes is not None:
        lower = taken(asymptotes.lower) if model.spec.has_guessing else asymptotes.lower
        upper = taken(asymptotes.upper) if model.spec.has_feasibility else asymptotes.upper
        asymptotes = Asymptotes(lower, upper)
    mean, factor, log_weight = populations.mean, populations.factor, populations.log_weight
    if moving.any:
        rows, columns = np.tril_indices(model.spec.dims, -1)
        diagonal = np.arange(model.spec.dims)
        mean = taken(mean)
        scale, below = taken(factor[:, 0]), taken(factor[:, rows, columns])
        factor = jnp.zeros_like(factor).at[:, diagonal, diagonal].set(jnp.exp(scale))
        factor = factor.at[:, rows, columns].set(below)
    if moving.has_weights:
        log_weight = taken(log_weight)
        log_weight = log_weight - jax.nn.logsumexp(log_weight, axis=1, keepdims=True)
    return ModelsParameters(
        ItemParameters(slope, intercept, asymptotes), Populations(mean, factor, log_weight)
    )

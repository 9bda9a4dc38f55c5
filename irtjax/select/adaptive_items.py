"""The items of a fit as an adaptive test sees them: mean curves, and where abilities may lie."""

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from irtjax.fit.packed import pair_index
from irtjax.fit.tables import slope_and_intercept
from irtjax.model.pytree import pytree_dataclass

if TYPE_CHECKING:
    from irtjax.fit.result import FitResult

__all__ = ["AdaptiveItems", "adaptive_items", "answer_entropy"]

# Items are padded to a multiple of this, so that few shapes are compiled.
_ITEMS_TO = 512


@pytree_dataclass
class AdaptiveItems:
    """Item parameters with their uncertainty, and the distribution of abilities.

    `z_j = (slope_j, intercept_j)` has the posterior `N(mean_j, covariance_j)` (packed lower
    triangles); `offset_variance` is added to every logit's: that of the benchmark effects of a
    model that nobody has seen. Items past the fit's number are padding.
    """

    mean: Float[Array, "items coordinates"]
    covariance: Float[Array, "items pairs"]
    offset_variance: Float[Array, ""]
    guessing: Float[Array, " items"]
    feasibility: Float[Array, " items"]
    prior_mean: Float[Array, " dims"]
    prior_covariance: Float[Array, "dims dims"]

    @property
    def dims(self) -> int:
        """Number of abilities."""
        return self.prior_mean.shape[0]

    @property
    def n_items(self) -> int:
        """Number of items, padding included."""
        return self.mean.shape[0]


def adaptive_items(fit: "FitResult") -> AdaptiveItems:
    """Of a fit: the prior of a new model is the (first) population that it estimated."""
    slope, intercept, covariance = slope_and_intercept(fit)
    rows, columns = pair_index(slope.shape[1] + 1)
    fitted = fit.parameters
    has_effects = fit.group is not None and fitted.effect_variance is not None
    variance = float(fitted.effect_variance) if has_effects else 0.0  # type: ignore[arg-type]
    more = -len(slope) % _ITEMS_TO
    mean = np.concatenate([slope, intercept[:, None]], axis=1)
    return AdaptiveItems(
        jnp.asarray(np.pad(mean, ((0, more), (0, 0))), float),
        jnp.asarray(np.pad(covariance[:, rows, columns], ((0, more), (0, 0))), float),
        jnp.asarray(variance, float),
        jnp.asarray(np.pad(np.asarray(fitted.guessing), (0, more)), float),
        jnp.asarray(np.pad(np.asarray(fitted.feasibility), (0, more), constant_values=1), float),
        jnp.asarray(fitted.population_mean[0], float),
        jnp.asarray(fitted.population_covariance[0], float),
    )


def answer_entropy(right: Float[Array, "..."]) -> Float[Array, "..."]:
    """Entropy of an answer that is right with this probability, in nats."""
    return -jax.scipy.special.xlogy(right, right) - jax.scipy.special.xlogy(1 - right, 1 - right)

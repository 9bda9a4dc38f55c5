"""Scores of predictions on the device, for early stopping: higher is better."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from irtjax.nets.settings import StopBy

__all__ = ["stopping_score"]


def stopping_score(
    by: StopBy,
    probability: Float[Array, " cells"],
    log_likelihood: Float[Array, " cells"],
    response: Float[Array, " cells"],
    weight: Float[Array, " cells"],
) -> Float[Array, ""]:
    """Minus the log-loss, F1 at .5 or the area under the ROC curve.

    Responses count as right above .5; cells of weight 0 do not count.
    """
    if by == "log_loss":
        return jnp.sum(weight * log_likelihood) / jnp.sum(weight)
    right = jnp.where(response > 0.5, weight, 0)
    wrong = weight - right
    if by == "f1":
        predicted = probability >= 0.5
        hits = jnp.sum(jnp.where(predicted, right, 0))
        misses = jnp.sum(jnp.where(predicted, wrong, right))
        return 2 * hits / jnp.maximum(2 * hits + misses, 1)
    order = jnp.argsort(probability)
    p, right, wrong = probability[order], right[order], wrong[order]
    below = jnp.concatenate([jnp.zeros(1, p.dtype), jnp.cumsum(wrong)])
    low, high = jnp.searchsorted(p, p, side="left"), jnp.searchsorted(p, p, side="right")
    beaten = (below[low] + below[high]) / 2
    pairs = jnp.sum(right) * jnp.sum(wrong)
    return jnp.sum(right * beaten) / jnp.maximum(pairs, 1)

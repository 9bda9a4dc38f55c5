"""How uncertain an answer is."""

import jax
from jaxtyping import Array, Float

__all__ = ["answer_entropy"]


def answer_entropy(right: Float[Array, "..."]) -> Float[Array, "..."]:
    """Entropy of an answer that is right with this probability, in nats."""
    return -jax.scipy.special.xlogy(right, right) - jax.scipy.special.xlogy(1 - right, 1 - right)

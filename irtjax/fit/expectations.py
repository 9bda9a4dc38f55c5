"""Expectations of a logistic response over a normal logit, in the forms that cost least.

Both are Gauss-Hermite sums as `normal_expectation` takes them; these are the innermost loops of a
fit. Measured with five nodes, jaxlib 0.10.1, on one CPU core: 3.7 ns a cell instead of 6.5 for the
derivatives, 4.8 instead of 11.6 for the logarithm.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from irtjax.model.quadrature import gauss_hermite, normal_expectation

__all__ = ["expected_logistic", "expected_softplus"]


def expected_logistic(
    mean: Float[Array, "..."], variance: Float[Array, "..."], n_nodes: int
) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
    """`E[sigmoid(z)]` and `E[sigmoid(z) (1 - sigmoid(z))]`, to absolute rounding.

    With `h = tanh(z / 2) / 2` they are `1/2 + E[h]` and `1/4 - E[h^2]`: one function and three
    operations a node, and no quotient that the compiler will not fuse because it is used twice.
    """

    def half_and_square(logit: Array) -> tuple[Array, Array]:
        half = 0.5 * jnp.tanh(0.5 * logit)
        return half, half * half

    half, square = normal_expectation(half_and_square, mean, variance, n_nodes)
    return 0.5 + half, 0.25 - square


def expected_softplus(
    mean: Float[Array, "..."], variance: Float[Array, "..."], n_nodes: int
) -> Float[Array, "..."]:
    """`E[log(1 + exp(z))]`, to absolute rounding.

    `max(z, 0) + log(1 + exp(-|z|))`, with one logarithm for the two nodes of the same weight. The
    `log1p` of `softplus` is right to the last digit of numbers that vanish in every sum, and costs
    twice as much.
    """
    nodes, weights = gauss_hermite(n_nodes)
    sd = jnp.sqrt(variance)
    total = jnp.zeros_like(mean)
    for k in range((n_nodes + 1) // 2):
        linear, factor = _parts(mean + float(nodes[k]) * sd)
        if k != n_nodes - 1 - k:
            other_linear, other_factor = _parts(mean - float(nodes[k]) * sd)
            linear, factor = linear + other_linear, factor * other_factor
        total = total + float(weights[k]) * (linear + jnp.log(factor))
    return total


def _parts(logit: Array) -> tuple[Array, Array]:
    return jnp.maximum(logit, 0), 1 + jnp.exp(-jnp.abs(logit))

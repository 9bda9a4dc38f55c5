"""How likely answers are, cell by cell or a few cells at a time."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from irtjax.score.cells import Answers
from irtjax.score.curves import CurveItems, curve, tails

__all__ = ["likelihood_parts", "log_likelihoods"]

# Cells that share a logarithm, which costs as much as all the rest: the product of as many tails
# is far from overflow.
_CELLS_A_PART = 4


def log_likelihoods(
    answers: Answers,
    items: CurveItems,
    latent: Float[Array, "models latent"],
    shift: Float[Array, "models width"],
) -> Float[Array, "models width"]:
    """Of every answer, as often as its weight says."""
    p, not_p = curve(items, latent, shift)
    if answers.is_plain:
        return answers.weight * jnp.log(jnp.where(answers.response > 0, p, not_p))
    log_p, log_not_p = jnp.log(p), jnp.log(not_p)
    return answers.weight * (answers.response * log_p + (1 - answers.response) * log_not_p)


def likelihood_parts(
    answers: Answers,
    items: CurveItems,
    latent: Float[Array, "models latent"],
    shift: Float[Array, "models width"],
) -> Float[Array, "models parts"]:
    """Log-likelihoods that sum to that of all answers, of one or of several cells each."""
    width = shift.shape[1]
    found = tails(items, latent, shift) if answers.is_plain else None
    if found is None or width % _CELLS_A_PART:
        return log_likelihoods(answers, items, latent, shift)
    is_given = answers.weight > 0
    is_unlikely = is_given & (found.is_right_likely != (answers.response > 0))
    likely = 1 - jnp.exp(-found.distance) * found.tail
    factor = jnp.where(is_unlikely, found.tail, jnp.where(is_given, likely, 1))
    far = jnp.where(is_unlikely, found.distance, 0)

    def quarter(cells: Array, k: int) -> Array:
        size = width // _CELLS_A_PART
        return cells[:, k * size : (k + 1) * size]

    product, total = quarter(factor, 0), quarter(far, 0)
    for k in range(1, _CELLS_A_PART):
        product, total = product * quarter(factor, k), total + quarter(far, k)
    return jnp.log(product) - total

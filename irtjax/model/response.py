"""The response function: one for every family and number of dims, with its stable logarithms.

`P = guessing + (feasibility - guessing) * sigmoid(slope . theta + intercept)`. The smaller
families are the 4PL with `guessing` fixed at 0 and `feasibility` at 1; where both are fixed the
asymptotes are None, which only leaves out work whose result is known.
"""

import jax
import jax.numpy as jnp
from jax.nn import log_sigmoid, sigmoid
from jaxtyping import Array, Bool, Float

from irtjax.model.pytree import pytree_dataclass

__all__ = [
    "Asymptotes",
    "CellDerivatives",
    "cell_derivatives",
    "linear_predictor",
    "log_probabilities",
    "masked_log_likelihood",
    "probability",
]


@pytree_dataclass
class Asymptotes:
    """Guessing and feasibility on the scale where every real number is valid.

    `guessing = sigmoid(lower)` and `feasibility = guessing + (1 - guessing) * sigmoid(upper)`, so
    that feasibility exceeds guessing by construction. `lower = -inf` fixes guessing at 0,
    `upper = inf` fixes feasibility at 1.
    """

    lower: Float[Array, "..."]
    upper: Float[Array, "..."]

    @classmethod
    def from_natural(
        cls, guessing: Float[Array, "..."], feasibility: Float[Array, "..."]
    ) -> "Asymptotes":
        """From probabilities with `0 <= guessing < feasibility <= 1`."""
        guessing, feasibility = jnp.asarray(guessing), jnp.asarray(feasibility)
        return cls(
            jnp.log(guessing) - jnp.log1p(-guessing),
            jnp.log(feasibility - guessing) - jnp.log1p(-feasibility),
        )

    @property
    def guessing(self) -> Float[Array, "..."]:
        """The lower asymptote, a probability."""
        return sigmoid(self.lower)

    @property
    def feasibility(self) -> Float[Array, "..."]:
        """The upper asymptote, a probability above guessing."""
        return sigmoid(self.lower) + sigmoid(-self.lower) * sigmoid(self.upper)

    def logarithms(self) -> tuple[Float[Array, "..."], ...]:
        """`log c, log(1 - c), log d, log(1 - d)` of guessing c and feasibility d."""
        log_c, log_not_c = log_sigmoid(self.lower), log_sigmoid(-self.lower)
        log_d = jnp.logaddexp(log_c, log_not_c + log_sigmoid(self.upper))
        return log_c, log_not_c, log_d, log_not_c + log_sigmoid(-self.upper)


@pytree_dataclass
class CellDerivatives:
    """What one response says about its logit z: derivatives of the log-likelihood l.

    `known_right` and `known_wrong` are the expected numbers of right and wrong answers that came
    from knowing (not from the asymptotes); without asymptotes they are None.
    """

    first: Float[Array, "..."]
    negative_second: Float[Array, "..."]
    known_right: Float[Array, "..."] | None
    known_wrong: Float[Array, "..."] | None


def linear_predictor(
    ability: Float[Array, "models dims"],
    slope: Float[Array, "items dims"],
    intercept: Float[Array, " items"],
) -> Float[Array, "models items"]:
    """`slope . theta + intercept`, in logits."""
    return ability @ slope.T + intercept


def log_probabilities(
    logit: Float[Array, "..."], asymptotes: Asymptotes | None = None
) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
    """`log P` and `log(1 - P)`, finite for every finite logit.

    Natural logarithms, by `logaddexp` of the two ways to answer right (or wrong): no probability
    is formed and none is clipped.
    """
    log_s, log_not_s = log_sigmoid(logit), log_sigmoid(-logit)
    if asymptotes is None:
        return log_s, log_not_s
    log_c, log_not_c, log_d, log_not_d = asymptotes.logarithms()
    return (
        jnp.logaddexp(log_c + log_not_s, log_d + log_s),
        jnp.logaddexp(log_not_c + log_not_s, log_not_d + log_s),
    )


def cell_derivatives(
    logit: Float[Array, "..."],
    response: Float[Array, "..."],
    asymptotes: Asymptotes | None = None,
) -> CellDerivatives:
    """Derivatives of a cell's log-likelihood in its logit, for responses in [0, 1].

    With `s = sigmoid(z)`, `w1 = d s / P` and `w0 = (1 - d) s / (1 - P)`:
    `l' = y w1 + (1 - y) w0 - s` and
    `-l'' = s (1 - s) - y w1 (1 - w1) - (1 - y) w0 (1 - w0)`, which can be negative.
    """
    s = sigmoid(logit)
    if asymptotes is None:
        return CellDerivatives(response - s, s * (1 - s), None, None)
    _, _, log_d, log_not_d = asymptotes.logarithms()
    log_p, log_not_p = log_probabilities(logit, asymptotes)
    log_s = log_sigmoid(logit)
    w1 = jnp.exp(log_d + log_s - log_p)
    w0 = jnp.exp(log_not_d + log_s - log_not_p)
    right, wrong = response * w1, (1 - response) * w0
    second = right * (1 - w1) + wrong * (1 - w0) - s * (1 - s)
    return CellDerivatives(right + wrong - s, -second, right, wrong)


def probability(
    ability: Float[Array, "models dims"],
    slope: Float[Array, "items dims"],
    intercept: Float[Array, " items"],
    guessing: Float[Array, " items"] | float = 0.0,
    feasibility: Float[Array, " items"] | float = 1.0,
    effect: Float[Array, "models items"] | float = 0.0,
) -> Float[Array, "models items"]:
    """Probability of a right response, always between guessing and feasibility.

    >>> round(float(probability(jnp.ones((1, 1)), jnp.ones((1, 1)), jnp.zeros(1), 0.2)[0, 0]), 3)
    0.785
    """
    logit = linear_predictor(ability, slope, intercept) + effect
    return guessing + (feasibility - guessing) * sigmoid(logit)


def masked_log_likelihood(
    logit: Float[Array, "..."],
    response: Float[Array, "..."],
    observed: Bool[Array, "..."],
    asymptotes: Asymptotes | None = None,
) -> Float[Array, "..."]:
    """Log-likelihood of each cell, 0 where not observed.

    The input of an unobserved cell is replaced before any logarithm, not its output after, so
    that its gradient is 0 and never NaN.
    """
    logit = jnp.where(observed, logit, jnp.zeros_like(logit))
    log_p, log_not_p = log_probabilities(logit, asymptotes)
    value = response * log_p + (1 - response) * log_not_p
    return jax.lax.select(observed, value, jnp.zeros_like(value))

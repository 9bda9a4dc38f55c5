"""The response function: one for every family and number of dims, with its stable logarithms.

`P = guessing + (feasibility - guessing) * sigmoid(slope . theta + intercept)`. The smaller
families are the 4PL with `guessing` fixed at 0 and `feasibility` at 1; where both are fixed the
asymptotes are None, which only leaves out work whose result is known.
"""

import jax.numpy as jnp
from jax.nn import log_sigmoid, sigmoid, softplus
from jaxtyping import Array, Float

from irtjax.model.pytree import pytree_dataclass

__all__ = [
    "Asymptotes",
    "CellDerivatives",
    "cell_derivatives",
    "linear_predictor",
    "log_likelihood",
    "log_probabilities",
    "probability",
    "response_probabilities",
    "response_probability",
]


_FARTHEST_LOGIT = 80.0


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
        upper = jnp.log(feasibility - guessing) - jnp.log1p(-feasibility)
        # Without priors the guessing of an item that all get right rounds to 1: then nothing is
        # left for feasibility, and any value does.
        upper = jnp.where(guessing < 1, upper, jnp.zeros_like(upper))
        return cls(jnp.log(guessing) - jnp.log1p(-guessing), upper)

    @property
    def guessing(self) -> Float[Array, "..."]:
        """The lower asymptote, a probability."""
        return sigmoid(self.lower)

    @property
    def feasibility(self) -> Float[Array, "..."]:
        """The upper asymptote, a probability above guessing."""
        # In this form exactly 1 where it is fixed at 1.
        return 1 - sigmoid(-self.lower) * sigmoid(-self.upper)

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
    # Dividing by s leaves one exponential a cell. Past +-80 logits w and s are at their limits in
    # float32, and exp(80) is still finite: the bound changes no value and avoids 0 * inf.
    odds = jnp.exp(-jnp.clip(logit, -_FARTHEST_LOGIT, _FARTHEST_LOGIT))
    s = 1 / (1 + odds)
    if asymptotes is None:
        return CellDerivatives(response - s, s * (1 - s), None, None)
    c, d = asymptotes.guessing, asymptotes.feasibility
    not_d = sigmoid(-asymptotes.lower) * sigmoid(-asymptotes.upper)
    w1 = d / (d + c * odds)
    w0 = not_d / (not_d + (1 - c) * odds)
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
    return _between(logit, guessing, feasibility)


def response_probability(
    logit: Float[Array, "..."], asymptotes: Asymptotes | None = None
) -> Float[Array, "..."]:
    """Probability of a right response at a logit."""
    if asymptotes is None:
        return sigmoid(logit)
    return _between(logit, asymptotes.guessing, asymptotes.feasibility)


def response_probabilities(
    logit: Float[Array, "..."], asymptotes: Asymptotes | None = None
) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
    """P and 1 - P at a logit, each to full relative precision however small."""
    if asymptotes is None:
        return sigmoid(logit), sigmoid(-logit)
    known = sigmoid(-asymptotes.lower) * sigmoid(asymptotes.upper)
    missed = sigmoid(-asymptotes.lower) * sigmoid(-asymptotes.upper)
    return asymptotes.guessing + known * sigmoid(logit), missed + known * sigmoid(-logit)


def _between(
    logit: Float[Array, "..."],
    guessing: Float[Array, "..."] | float,
    feasibility: Float[Array, "..."] | float,
) -> Float[Array, "..."]:
    return guessing + (feasibility - guessing) * sigmoid(logit)


def log_likelihood(
    logit: Float[Array, "..."],
    response: Float[Array, "..."],
    asymptotes: Asymptotes | None = None,
) -> Float[Array, "..."]:
    """`y log P + (1 - y) log(1 - P)` of responses in [0, 1], natural logarithm."""
    if asymptotes is None:
        # The same number with one logarithm: log P - log(1 - P) is the logit.
        return response * logit - softplus(logit)
    log_p, log_not_p = log_probabilities(logit, asymptotes)
    return response * log_p + (1 - response) * log_not_p

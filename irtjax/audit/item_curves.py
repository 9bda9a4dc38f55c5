"""The curves that an item may have: a fixed grid, met by all models at once.

Three kinds of items share the grid of slopes and places. A regular item has the curve
`P = c + (d - c) sigmoid(slope theta + intercept)`; a falling one the same with `-.3 slope`, or as
steep as the others; one with a wrong key is answered "right" only by models that miss it and take
the recorded option, `q (1 - P)`.
"""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from irtjax.model.pytree import pytree_dataclass
from irtjax.model.quadrature import normal_expectation
from irtjax.model.response import Asymptotes, response_probabilities

__all__ = [
    "ASYMPTOTES",
    "CHOSEN",
    "N_FALLING",
    "N_PLACES",
    "N_REGULAR",
    "N_WRONG_KEY",
    "PLACES",
    "SLOPES",
    "SUSPECT",
    "Curves",
    "item_curves",
]

# Logits a standard deviation of ability.
SLOPES = np.exp(np.linspace(np.log(0.2), np.log(4.0), 10))
# Intercepts in units of the range of `slope theta`: steep items may stand far out.
_INTERCEPTS = np.linspace(-1.5, 1.5, 19)
PLACES = np.array([(s, u * (2 + 2 * s)) for s, u in itertools.product(SLOPES, _INTERCEPTS)])
# Guessing and feasibility. No curve ends at 0 or 1: one slip of the pen would outweigh all else.
ASYMPTOTES = np.array(
    [
        (0.005, 0.995), (0.05, 0.995), (0.1, 0.995), (0.2, 0.995), (0.35, 0.995), (0.55, 0.995),
        (0.05, 0.9), (0.05, 0.75), (0.05, 0.55),
    ]
)  # fmt: skip
# Which of them something must be wrong with: a shortcut, or an ambiguous text.
SUSPECT = (ASYMPTOTES[:, 0] > 0.3) | (ASYMPTOTES[:, 1] < 0.8)
# A slope that falls is mostly a weak one: ability seldom hurts as much as it helps elsewhere. Where
# it does (harm done by the able, an item of another dim), the curve goes from 1 to 0, with the
# places of the rising ones; a wrong key's stays below the share of those that took it for right.
_MILD, _STEEP = 0.3, 1.0
_STEEP_ENDS = (0.005, 0.995)
# How often models that miss the item take the option that is recorded as the key.
CHOSEN = np.array([0.05, 0.2, 0.4, 0.6, 0.8, 0.95])
_PLAIN = (0.1, 0.995)  # asymptotes of mildly falling items, and of those behind a wrong key

N_PLACES = len(PLACES)
N_REGULAR = N_PLACES * len(ASYMPTOTES)
N_FALLING = 2 * N_PLACES
N_WRONG_KEY = N_PLACES * len(CHOSEN)
_N_NODES = 5


@pytree_dataclass
class Curves:
    """Logarithms of P and 1 - P for every model and curve.

    Curves stand in the order regular (asymptotes, places), falling (mild or steep, places), wrong
    key (chosen, places).
    """

    log_right: Float[Array, "models curves"]
    log_wrong: Float[Array, "models curves"]

    def without_wrong_key(self) -> "Curves":
        """Regular and falling curves only."""
        n = N_REGULAR + N_FALLING
        return Curves(self.log_right[:, :n], self.log_wrong[:, :n])


@jax.jit
def item_curves(ability: Float[Array, " models"], error: Float[Array, " models"]) -> Curves:
    """All curves at the models' abilities, averaged over the abilities' errors.

    Args:
        ability: latent standard deviations.
        error: standard errors of the abilities: an item's own responses were part of what they
            were estimated from, and this keeps few items from being taken for more than they are.
    """
    dtype = ability.dtype
    slope, intercept = jnp.asarray(PLACES, dtype).T
    regular = [
        _probabilities(ability, error, slope, intercept, float(c), float(d)) for c, d in ASYMPTOTES
    ]
    falling = [
        _probabilities(ability, error, -_MILD * slope, intercept, *_PLAIN),
        _probabilities(ability, error, -_STEEP * slope, intercept, *_STEEP_ENDS),
    ]
    _, not_p = _probabilities(ability, error, slope, intercept, *_PLAIN)
    wrong_key = [(float(q) * not_p, 1 - float(q) * not_p) for q in CHOSEN]
    right, wrong = zip(*regular, *falling, *wrong_key, strict=True)
    return Curves(jnp.log(jnp.concatenate(right, 1)), jnp.log(jnp.concatenate(wrong, 1)))


def _probabilities(
    ability: Float[Array, " models"],
    error: Float[Array, " models"],
    slope: Float[Array, " places"],
    intercept: Float[Array, " places"],
    guessing: float,
    feasibility: float,
) -> tuple[Float[Array, "models places"], Float[Array, "models places"]]:
    """P and 1 - P, averaged over normal errors of the abilities."""
    asymptotes = Asymptotes.from_natural(
        jnp.asarray(guessing, ability.dtype), jnp.asarray(feasibility, ability.dtype)
    )
    return normal_expectation(
        lambda logit: response_probabilities(logit, asymptotes),
        ability[:, None] * slope + intercept,
        jnp.square(error[:, None] * slope),
        _N_NODES,
    )

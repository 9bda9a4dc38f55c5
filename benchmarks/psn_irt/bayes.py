"""The Bayesian 4PL that the rows VI, VIBO and MCMC share: unknowns and their joint density.

Every unknown is a real number with a normal prior: ability N(0, 1), log-slope N(0, .5), difficulty
N(0, 1.5), and the scales of the asymptotes (`irtjax.model.response.Asymptotes`) N(-1.5, 1) and
N(2.5, 1). All three rows approximate the same posterior; py-irt and VIBO have no 4PL with priors
that could be copied.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from irtjax.model.pytree import pytree_dataclass
from irtjax.model.response import Asymptotes, log_likelihood, response_probability

__all__ = ["Unknowns", "log_joint", "prior_mean", "cell_probability"]


@pytree_dataclass
class Unknowns:
    """Abilities of models and, by item, log-slope, difficulty, lower and upper asymptote."""

    ability: Float[Array, " models"]
    items: Float[Array, "4 items"]

    def logit(self) -> Float[Array, "models items"]:
        """Slope times the distance of ability and difficulty."""
        return jnp.exp(self.items[0]) * (self.ability[:, None] - self.items[1])

    def asymptotes(self) -> Asymptotes:
        """Guessing and feasibility."""
        return Asymptotes(self.items[2], self.items[3])


# Of log-slope, difficulty, lower and upper asymptote.
_MEAN = (0.0, 0.0, -1.5, 2.5)
_SD = (0.5, 1.5, 1.0, 1.0)


def prior_mean(n_models: int, n_items: int) -> Unknowns:
    """Where the priors are highest."""
    items = jnp.broadcast_to(jnp.array(_MEAN)[:, None], (4, n_items))
    return Unknowns(jnp.zeros(n_models), items)


def log_joint(unknowns: Unknowns, response: Int[Array, "models items"]) -> Float[Array, ""]:
    """Log-likelihood and log-prior (nats, without constants); -1 is no response."""
    is_seen = response >= 0
    right = jnp.where(is_seen, response, 0).astype(unknowns.ability.dtype)
    each = log_likelihood(unknowns.logit(), right, unknowns.asymptotes())
    away = (unknowns.items - jnp.array(_MEAN)[:, None]) / jnp.array(_SD)[:, None]
    log_prior = -0.5 * (jnp.sum(unknowns.ability**2) + jnp.sum(away**2))
    return jnp.sum(jnp.where(is_seen, each, 0)) + log_prior


@jax.jit
def _cells(unknowns: Unknowns, model: Int[Array, " cells"], item: Int[Array, " cells"]) -> Array:
    of_item = unknowns.items[:, item]
    logit = jnp.exp(of_item[0]) * (unknowns.ability[model] - of_item[1])
    return response_probability(logit, Asymptotes(of_item[2], of_item[3]))


def cell_probability(draws: list[Unknowns], cells: Any) -> np.ndarray:
    """Mean probability of a right response over draws of the unknowns, in each cell (float64)."""
    total = np.zeros(len(cells))
    for unknowns in draws:
        total += np.asarray(_cells(unknowns, cells.model_index, cells.item_index), np.float64)
    return total / len(draws)

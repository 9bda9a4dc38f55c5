"""Predicted probabilities of single cells: the mean of the curve over what is integrated out."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from irtjax.fit.packed import quadratic
from irtjax.model.pytree import pytree_dataclass
from irtjax.model.quadrature import normal_expectation
from irtjax.model.response import Asymptotes, response_probabilities

__all__ = ["PredictionParameters", "cell_probabilities"]

# Cells a call: every call has this shape, so that one compilation serves any number of cells.
_CELLS_PER_CALL = 65_536
_N_NODES = 15


@pytree_dataclass
class PredictionParameters:
    """What a prediction needs, items first.

    The side that was integrated out has a covariance: items `covariance` (else 0), or models
    `ability_covariance` (else None).
    """

    ability: Float[Array, "models dims"]
    effect: Float[Array, "models groups"] | None
    group: Int[Array, " items"]
    mean: Float[Array, "items components coordinates"]
    covariance: Float[Array, "items components pairs"]
    share: Float[Array, "items components"]
    asymptotes: Asymptotes | None
    ability_covariance: Float[Array, "models dims dims"] | None = None


def cell_probabilities(
    parameters: PredictionParameters, model_index: np.ndarray, item_index: np.ndarray
) -> np.ndarray:
    """Posterior mean probability of a right response in each cell, float64.

    The smaller of P and 1 - P is computed, so that neither rounds to 0 in float32 and the
    log-loss of a wrong but confident prediction is finite and right.
    """
    n = len(model_index)
    result = np.empty(n, np.float64)
    placed = jax.tree.map(jnp.asarray, parameters)
    for start in range(0, n, _CELLS_PER_CALL):
        stop = min(start + _CELLS_PER_CALL, n)
        pad = (0, _CELLS_PER_CALL - (stop - start))
        p, not_p = _probabilities(
            placed, np.pad(model_index[start:stop], pad), np.pad(item_index[start:stop], pad)
        )
        p = np.asarray(p, np.float64)[: stop - start]
        not_p = np.asarray(not_p, np.float64)[: stop - start]
        result[start:stop] = np.where(p < 0.5, p, 1 - not_p)
    return result


@functools.partial(jax.jit)
def _probabilities(
    parameters: PredictionParameters,
    model_index: Int[Array, " cells"],
    item_index: Int[Array, " cells"],
) -> tuple[Float[Array, " cells"], Float[Array, " cells"]]:
    ability = parameters.ability[model_index]
    design = jnp.concatenate([ability, jnp.ones_like(ability[:, :1])], axis=1)
    group = parameters.group[item_index]
    offset = jnp.zeros_like(ability[:, 0])
    if parameters.effect is not None:
        offset = parameters.effect[model_index, group]
    asymptotes = parameters.asymptotes
    if asymptotes is not None:
        asymptotes = jax.tree.map(lambda leaf: leaf[item_index], asymptotes)
    coefficients = quadratic(design)
    total = (jnp.zeros_like(offset), jnp.zeros_like(offset))
    for component in range(parameters.mean.shape[1]):
        mean = jnp.sum(design * parameters.mean[item_index, component], axis=1) + offset
        variance = jnp.sum(coefficients * parameters.covariance[item_index, component], axis=1)
        if parameters.ability_covariance is not None:
            slope = parameters.mean[item_index, component, :-1]
            spread = parameters.ability_covariance[model_index]
            variance = variance + jnp.einsum("ck,ckl,cl->c", slope, spread, slope)
        expected = normal_expectation(
            lambda logit: response_probabilities(logit, asymptotes),
            mean,
            jnp.maximum(variance, 0),
            _N_NODES,
        )
        share = parameters.share[item_index, component]
        total = jax.tree.map(lambda a, b, share=share: a + share * b, total, expected)
    return total

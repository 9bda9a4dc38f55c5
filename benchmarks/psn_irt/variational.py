"""Rows VI and VIBO: mean-field normals by stochastic gradients of the evidence lower bound.

VI (py-irt's way) has a mean and an sd for every unknown. VIBO (Wu et al. 2020) has them for the
items only; those of a model's ability are put out by a network that reads all its responses.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from jaxtyping import Array, Float, Int

from benchmarks.psn_irt.bayes import Unknowns, log_joint, prior_mean
from irtjax.model.pytree import pytree_dataclass

__all__ = ["Normals", "elbo", "posterior_draws"]

_FIRST_LOG_SD = -1.0
_HIDDEN = 64
_N_STEPS, _LEARNING_RATE = 300, 0.05
# Of the encoder: one step moves all of its outputs together.
_ENCODER_RATE = 0.003


@pytree_dataclass
class Normals:
    """Means and log-sds: of the items, and of the abilities or of what puts them out."""

    item_mean: Float[Array, "4 items"]
    item_log_sd: Float[Array, "4 items"]
    ability: Any


class _Encoder(nnx.Module):
    """From a model's responses (-1 wrong, 1 right, 0 missing) to mean and log-sd of its ability."""

    def __init__(self, n_items: int, key: jax.Array) -> None:
        rngs = nnx.Rngs(params=key)
        wide = nnx.initializers.normal(1.0)
        self.hidden = nnx.Linear(n_items, _HIDDEN, kernel_init=wide, rngs=rngs)
        self.out = nnx.Linear(_HIDDEN, 2, rngs=rngs)

    def __call__(self, seen: Float[Array, "models items"]) -> tuple[Array, Array]:
        # Scaled: a step of Adam moves all weights of the 40,000 inputs the same way, and without it
        # the abilities by hundreds.
        out = self.out(jax.nn.elu(self.hidden(seen / seen.shape[1] ** 0.5)))
        return out[:, 0], _FIRST_LOG_SD + out[:, 1]


def _first(response: Array, *, is_amortised: bool, key: jax.Array) -> tuple[Normals, Any]:
    """Before the first step, and the encoder's graph (None without one)."""
    n_models, n_items = response.shape
    start = prior_mean(n_models, n_items)
    log_sd = jnp.full_like(start.items, _FIRST_LOG_SD)
    if not is_amortised:
        # Apart, else nothing says which end is up.
        right = jnp.sum(response == 1, axis=1) / jnp.maximum(jnp.sum(response >= 0, axis=1), 1)
        ability = (right - jnp.mean(right)) / jnp.std(right)
        return Normals(start.items, log_sd, (ability, jnp.full_like(ability, _FIRST_LOG_SD))), None
    graph, weights = nnx.split(_Encoder(n_items, key))
    return Normals(start.items, log_sd, weights), graph


def _ability(normals: Normals, graph: Any, response: Array) -> tuple[Array, Array]:
    if graph is None:
        return normals.ability
    seen = jnp.where(response < 0, 0, 2 * response - 1).astype(normals.item_mean.dtype)
    return nnx.merge(graph, normals.ability)(seen)


def _draw(normals: Normals, graph: Any, response: Array, key: jax.Array) -> Unknowns:
    mean, log_sd = _ability(normals, graph, response)
    ability_key, item_key = jax.random.split(key)
    noise = jax.random.normal(item_key, normals.item_mean.shape)
    return Unknowns(
        mean + jnp.exp(log_sd) * jax.random.normal(ability_key, mean.shape),
        normals.item_mean + jnp.exp(normals.item_log_sd) * noise,
    )


def elbo(
    normals: Normals, graph: Any, response: Int[Array, "models items"], key: jax.Array
) -> Float[Array, ""]:
    """Evidence lower bound from one draw (nats, without constants)."""
    entropy = jnp.sum(_ability(normals, graph, response)[1]) + jnp.sum(normals.item_log_sd)
    return log_joint(_draw(normals, graph, response, key), response) + entropy


@functools.partial(jax.jit, static_argnums=(1, 4))
def _trained(normals: Normals, graph: Any, response: Array, key: jax.Array, n_steps: int) -> Any:
    """The normals after all steps, and the bound at each."""
    n_cells = jnp.sum(response >= 0).astype(normals.item_mean.dtype)
    rate = _LEARNING_RATE if graph is None else _ENCODER_RATE
    cosine = functools.partial(optax.cosine_decay_schedule, decay_steps=n_steps)
    adam = optax.multi_transform(
        {"items": optax.adam(cosine(_LEARNING_RATE)), "ability": optax.adam(cosine(rate))},
        Normals("items", "items", jax.tree.map(lambda _: "ability", normals.ability)),
    )

    def step(carry: Any, key: jax.Array) -> Any:
        normals, state = carry
        loss, gradient = jax.value_and_grad(lambda n: -elbo(n, graph, response, key) / n_cells)(
            normals
        )
        updates, state = adam.update(gradient, state, normals)
        return (optax.apply_updates(normals, updates), state), -loss

    keys = jax.random.split(key, n_steps)
    (normals, _), bounds = jax.lax.scan(step, (normals, adam.init(normals)), keys)
    return normals, bounds


def posterior_draws(
    response: np.ndarray,
    *,
    is_amortised: bool,
    seed: int,
    n_steps: int = _N_STEPS,
    n_draws: int = 30,
) -> tuple[list[Unknowns], np.ndarray]:
    """Draws from the fitted normals, and the bound (nats a response) at each step.

    Args:
        response: models x items; -1 is no response.
        is_amortised: abilities by a network that reads the responses (VIBO).
        seed: of the network's start, of the gradients' noise and of the draws.
        n_steps: of Adam, each on all responses.
        n_draws: to return.
    """
    cells = jnp.asarray(response, jnp.int32)
    start_key, key, draw_key = jax.random.split(jax.random.key(seed), 3)
    # optax mixes whole numbers and fractions, which strict promotion refuses.
    with jax.numpy_dtype_promotion("standard"):
        normals, graph = _first(cells, is_amortised=is_amortised, key=start_key)
        normals, bounds = _trained(normals, graph, cells, key, n_steps)
        draws = [_draw(normals, graph, cells, k) for k in jax.random.split(draw_key, n_draws)]
    return draws, np.asarray(bounds)

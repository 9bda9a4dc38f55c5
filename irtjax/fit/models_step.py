"""Newton step of the models: each model's abilities and effects together."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from irtjax.fit.item_pass import PassResult
from irtjax.fit.packed import unpack

__all__ = ["step_models", "profile_information"]

# An ability may move by this much a step (Euclidean, in standard deviations), an effect by this
# many logits: see the cap on the items' steps.
_LONGEST_STEP = 1.0


def profile_information(
    result: PassResult, effect_variance: Float[Array, ""]
) -> tuple[Float[Array, "models dims dims"], Float[Array, "groups dims models"] | None]:
    """Information of each model's abilities with its effects profiled out, and the coupling.

    The effects of a model are independent given its abilities, so the joint information is an
    arrow: `I + sum_g C_g C_g' / (h_g + 1 / tau^2)` is taken off in one product. The prior of the
    abilities, N(0, I), is included.
    """
    dims = result.models.score.shape[1]
    information = unpack(result.models.information.T, dims).transpose(2, 0, 1)
    information = information + jnp.eye(dims, dtype=information.dtype)
    if result.effects is None:
        return information, None
    precision = result.effects.information + 1 / effect_variance
    coupling = result.effects.cross / precision[:, None]
    return information - jnp.einsum("gki,gli->ikl", coupling, result.effects.cross), coupling


def step_models(
    ability: Float[Array, "models dims"],
    effect: Float[Array, "models groups"] | None,
    effect_variance: Float[Array, ""],
    result: PassResult,
) -> tuple[Float[Array, "models dims"], Float[Array, "models groups"] | None]:
    """Move each model's abilities and effects by one joint Newton step, capped."""
    information, coupling = profile_information(result, effect_variance)
    score = result.models.score - ability
    if effect is not None and result.effects is not None and coupling is not None:
        effect_score = result.effects.score - effect.T / effect_variance
        score = score - jnp.einsum("gki,gi->ik", coupling, effect_score)
    step = jnp.linalg.solve(information, score[..., None])[..., 0]
    length = jnp.sqrt(jnp.sum(step**2, axis=1, keepdims=True))
    step = step * (_LONGEST_STEP / jnp.maximum(length, _LONGEST_STEP))
    if effect is None or result.effects is None:
        return ability + step, effect
    precision = result.effects.information + 1 / effect_variance
    pulled = effect_score - jnp.einsum("gki,ik->gi", result.effects.cross, step)
    effect_step = jnp.clip(pulled / precision, -_LONGEST_STEP, _LONGEST_STEP)
    return ability + step, effect + effect_step.T

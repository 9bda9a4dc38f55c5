"""Newton step of the models: each model's abilities and effects together."""

from typing import Protocol

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from irtjax.fit.kernel import EffectStatistics, ModelStatistics
from irtjax.fit.packed import (
    pair_index,
    positive_definite_inverse,
    solve_positive_definite,
    unpack,
)
from irtjax.model.priors import Priors

__all__ = [
    "FixedSums",
    "ability_covariances",
    "effect_spreads",
    "mean_covariance",
    "models_log_prior",
    "profile_information",
    "step_models",
]

# An ability may move by this much a step (Euclidean, in standard deviations), an effect by this
# many logits: see the cap on the items' steps.
_LONGEST_STEP = 1.0


class FixedSums(Protocol):
    """What a pass says of the models: sums over the items, whichever way these are integrated."""

    @property
    def models(self) -> ModelStatistics:
        """Score and information of the abilities."""

    @property
    def effects(self) -> EffectStatistics | None:
        """Score, information and coupling of the effects."""


def profile_information(
    result: FixedSums, effect_variance: Float[Array, ""]
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


def ability_covariances(
    result: FixedSums, is_scored: Bool[Array, " models"]
) -> Float[Array, "models dims dims"]:
    """Covariance of each ability's normal posterior: the inverse of its information and prior's.

    It is where the bound is highest given everything else. The prior, N(0, I), is what a model
    without responses has.
    """
    dims = result.models.score.shape[1]
    rows, columns = pair_index(dims)
    unit = jnp.asarray(rows == columns, result.models.information.dtype)
    precision = jnp.where(is_scored, result.models.information.T, 0) + unit[:, None]
    inverse, _, _ = positive_definite_inverse(precision, dims)
    return unpack(inverse, dims).transpose(2, 0, 1)


def mean_covariance(
    covariance: Float[Array, "models dims dims"], is_scored: Bool[Array, " models"]
) -> Float[Array, "dims dims"]:
    """Mean covariance of the abilities of the models with responses."""
    weight = is_scored.astype(covariance.dtype)
    return jnp.einsum("i,ikl->kl", weight, covariance) / jnp.maximum(jnp.sum(weight), 1)


def effect_spreads(
    result: FixedSums, effect_variance: Float[Array, ""]
) -> Float[Array, "models groups"] | None:
    """Variance of each effect's normal posterior, tau^2 where a model has no responses."""
    if result.effects is None:
        return None
    return 1 / (result.effects.information + 1 / effect_variance).T


def step_models(
    ability: Float[Array, "models dims"],
    effect: Float[Array, "models groups"] | None,
    effect_variance: Float[Array, ""],
    result: FixedSums,
) -> tuple[Float[Array, "models dims"], Float[Array, "models groups"] | None]:
    """Move each model's abilities and effects by one joint Newton step, capped."""
    information, coupling = profile_information(result, effect_variance)
    score = result.models.score - ability
    if effect is not None and result.effects is not None and coupling is not None:
        effect_score = result.effects.score - effect.T / effect_variance
        score = score - jnp.einsum("gki,gi->ik", coupling, effect_score)
    step = solve_positive_definite(information, score[..., None])[..., 0]
    length = jnp.sqrt(jnp.sum(step**2, axis=1, keepdims=True))
    step = step * (_LONGEST_STEP / jnp.maximum(length, _LONGEST_STEP))
    if effect is None or result.effects is None:
        return ability + step, effect
    precision = result.effects.information + 1 / effect_variance
    pulled = effect_score - jnp.einsum("gki,ik->gi", result.effects.cross, step)
    effect_step = jnp.clip(pulled / precision, -_LONGEST_STEP, _LONGEST_STEP)
    return ability + step, effect + effect_step.T


def models_log_prior(
    ability: Float[Array, "models dims"],
    ability_covariance: Float[Array, "models dims dims"],
    effect: Float[Array, "models groups"] | None,
    effect_spread: Float[Array, "models groups"] | None,
    effect_variance: Float[Array, ""],
    result: FixedSums,
    priors: Priors,
) -> Float[Array, ""]:
    """Minus the divergence of the abilities' and effects' normal posteriors from their priors.

    N(0, I) and N(0, tau^2); with the prior of tau^2, up to constants.
    """
    spread = jnp.trace(ability_covariance, axis1=1, axis2=2)
    _, log_determinant = jnp.linalg.slogdet(ability_covariance)
    total = 0.5 * jnp.sum(log_determinant - spread) - 0.5 * jnp.sum(ability**2)
    total += 0.5 * ability.size
    if effect is None or effect_spread is None or result.effects is None:
        return total
    ratio = effect_spread / effect_variance
    density = effect**2 / effect_variance + ratio - jnp.log(ratio) - 1
    seen = result.effects.information.T > 0
    total -= 0.5 * jnp.sum(jnp.where(seen, density, jnp.zeros_like(density)))
    total -= 0.5 * priors.effect_variance / effect_variance
    return total - 0.5 * jnp.log(effect_variance)

"""The prior of a new model's benchmark effects, from those of the models in the fit.

Effects of a model are residuals of its abilities, but not of each other: with one dim, what the
benchmarks have in common beside it lies in the effects (on PSN-IRT's data all of a model's effects
have one sign). So they are `loading_g common + own_g`, with `common ~ N(0, 1)` and
`own_g ~ N(0, variance_g)`: a factor analysis of the fitted effects.
"""

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from irtjax.fit.result import FitResult

__all__ = ["EffectPrior", "effects_like", "fitted_effect_prior"]

# Below so many models nothing tells what is common to the effects from what is not.
_FEWEST_MODELS = 5
_SWEEPS = 300
# Each group's own variance is at least this share of its effects' second moment, and half of it is
# the groups' mean: a moment of ten models is off by half of itself.
_LEAST_OWN = 0.05
_POOLED = 0.5


@dataclasses.dataclass(frozen=True, eq=False)
class EffectPrior:
    """Groups of items, and what is known of a new model's effect on each (logits).

    Attributes:
        group: code of each item.
        names: of the groups.
        loading: of each group's effect on what they have in common, 0 where nothing is.
        variance: of the rest.
    """

    group: np.ndarray
    names: list[str]
    loading: np.ndarray
    variance: np.ndarray


def fitted_effect_prior(fit: "FitResult") -> EffectPrior | None:
    """Of a fit with effects (`group`); None where it has none."""
    effect = fit.parameters.effect
    if effect is None or fit.parameters.effect_variance is None:
        return None
    group, names = fit.groups()
    return effects_like(np.asarray(effect, np.float64), group, names)


def effects_like(effect: np.ndarray, group: np.ndarray, names: list[str]) -> EffectPrior:
    """The prior of which these effects (models x groups) are a sample."""
    moment = effect.T @ effect / len(effect)
    loading = np.zeros(len(moment))
    own = np.maximum(np.diag(moment), 1e-6)
    if len(effect) >= _FEWEST_MODELS and len(moment) > 2:
        for _ in range(_SWEEPS):
            scale = np.sqrt(own)
            values, vectors = np.linalg.eigh(moment / scale[:, None] / scale)
            loading = scale * vectors[:, -1] * np.sqrt(max(values[-1] - 1, 0))
            least = np.maximum(_LEAST_OWN * np.diag(moment), 1e-6)
            own = np.maximum(np.diag(moment) - loading**2, least)
        loading = loading * (1 if loading.sum() >= 0 else -1)
    own = (1 - _POOLED) * own + _POOLED * own.mean()
    return EffectPrior(group, names, loading, np.maximum(own, 1e-6))

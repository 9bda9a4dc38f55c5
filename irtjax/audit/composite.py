"""One ability a benchmark: what its items mainly measure, whatever the number of dims."""

import dataclasses

import numpy as np
from jaxtyping import Float, Int

from irtjax.data.responses import ResponseMatrix
from irtjax.fit.result import FitResult
from irtjax.fit.tables import slope_and_intercept

__all__ = ["Composite", "benchmark_codes", "composite_abilities"]

_SMALLEST_SPREAD = 1e-3


@dataclasses.dataclass(frozen=True)
class Composite:
    """Abilities by group of items, mean 0 and sd 1 over the models.

    Attributes:
        ability: models x groups.
        error: their standard errors, models x groups.
        group: of each item.
    """

    ability: Float[np.ndarray, "models groups"]
    error: Float[np.ndarray, "models groups"]
    group: Int[np.ndarray, " items"]


def composite_abilities(fit: FitResult) -> Composite:
    """Each group's mean logit over its items, as a function of the model alone.

    At one dim without effects that is the ability itself. With more dims it is the projection on
    the mean slope of the group's items, with effects it includes the group's effect. Groups are
    those of the fit, else (with more than one dim) the benchmarks, else one.
    """
    ability = np.asarray(fit.parameters.ability, np.float64)
    covariance = np.asarray(fit.parameters.ability_covariance, np.float64)
    covariance = np.where(np.isfinite(covariance), covariance, 0)
    if fit.spec.dims == 1 and fit.group is None:
        group, direction = np.zeros(fit.data.n_items, np.int32), np.ones((1, 1))
    else:
        group = fit.groups()[0] if fit.group is not None else benchmark_codes(fit.data)
        slope = slope_and_intercept(fit)[0]
        n_groups = int(group.max()) + 1
        count = np.maximum(np.bincount(group, minlength=n_groups), 1)
        direction = np.stack([np.bincount(group, each, n_groups) / count for each in slope.T], 1)
    composite = ability @ direction.T
    if fit.parameters.effect is not None:
        composite = composite + np.asarray(fit.parameters.effect, np.float64)
    variance = np.einsum("gk,ikl,gl->ig", direction, covariance, direction)
    spread = composite.std(axis=0)
    spread = np.where(spread > _SMALLEST_SPREAD, spread, 1)
    centred = (composite - composite.mean(axis=0)) / spread
    return Composite(centred, np.sqrt(np.maximum(variance, 0)) / spread, group)


def benchmark_codes(data: ResponseMatrix) -> np.ndarray:
    """The benchmark of each item where every item has one; else one group."""
    table = data.item_metadata
    if "benchmark" not in table or table["benchmark"].isna().any():
        return np.zeros(data.n_items, np.int32)
    return data.groups("benchmark")[0]

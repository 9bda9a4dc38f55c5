"""One ability a benchmark: what its items mainly measure, whatever the number of dims."""

import dataclasses

import numpy as np
from jaxtyping import Float, Int

from irtjax.data.responses import ResponseMatrix
from irtjax.fit.result import FitResult
from irtjax.fit.tables import slope_and_intercept

__all__ = ["Composite", "benchmark_codes", "composite_abilities"]

_SMALLEST_SPREAD = 1e-3
# Items that all others count for in the direction of a benchmark: one alone that falls says little.
_ALL_COUNT = 10.0


@dataclasses.dataclass(frozen=True)
class Composite:
    """Abilities by group of items, mean 0 and sd 1 over the models.

    Attributes:
        ability: models x groups.
        error: their standard errors, models x groups.
        group: of each item.
        benchmark: of each item, whose falling items have a share of their own.
    """

    ability: Float[np.ndarray, "models groups"]
    error: Float[np.ndarray, "models groups"]
    group: Int[np.ndarray, " items"]
    benchmark: Int[np.ndarray, " items"]


def composite_abilities(fit: FitResult) -> Composite:
    """Each group's mean logit over its items, as a function of the model alone.

    That is the projection of the abilities on the mean slope of the group's items, with effects
    plus the group's effect: where a whole benchmark falls with an ability, its composite rises as
    the ability falls, and its items rise with the composite. Groups are those of the fit, else the
    benchmarks; at more than one dim without benchmarks, the items that mainly measure one dim.
    At one dim without effects groups are the benchmarks that rise and those that fall.
    """
    ability = np.asarray(fit.parameters.ability, np.float64)
    covariance = np.asarray(fit.parameters.ability_covariance, np.float64)
    covariance = np.where(np.isfinite(covariance), covariance, 0)
    benchmark = fit.groups()[0] if fit.group is not None else benchmark_codes(fit.data)
    slope = slope_and_intercept(fit)[0]
    group, direction = benchmark, _directions(slope, benchmark)
    if fit.group is None and fit.spec.dims == 1:
        direction = np.array([[1.0], [-1.0]])
        group = (_directions(slope, benchmark)[:, 0] < 0).astype(np.int32)[benchmark]
    elif fit.group is None and len(direction) == 1:
        group = np.argmax(np.abs(slope), axis=1)
        direction = _directions(slope, group)
    composite = ability @ direction.T
    if fit.parameters.effect is not None:
        composite = composite + np.asarray(fit.parameters.effect, np.float64)
    variance = np.einsum("gk,ikl,gl->ig", direction, covariance, direction)
    spread = composite.std(axis=0)
    spread = np.where(spread > _SMALLEST_SPREAD, spread, 1)
    centred = (composite - composite.mean(axis=0)) / spread
    return Composite(centred, np.sqrt(np.maximum(variance, 0)) / spread, group, benchmark)


def _directions(slope: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Mean slopes of each group's items, drawn to that of all as by ten items more."""
    count = np.bincount(group)
    total = np.stack([np.bincount(group, each) for each in slope.T], axis=1)
    return (total + _ALL_COUNT * slope.mean(axis=0)) / (count + _ALL_COUNT)[:, None]


def benchmark_codes(data: ResponseMatrix) -> np.ndarray:
    """The benchmark of each item where every item has one; else one group."""
    table = data.item_metadata
    if "benchmark" not in table or table["benchmark"].isna().any():
        return np.zeros(data.n_items, np.int32)
    return data.groups("benchmark")[0]

"""The prior of a new model's benchmark effects, from those of the models in the fit.

Effects of a model are residuals of its abilities, but not of each other: with one dim, what the
benchmarks have in common beside it lies in the effects (on PSN-IRT's data all of a model's effects
have one sign). So they are `loading_g common + own_g`, with `common ~ N(0, 1)` and
`own_g ~ N(0, variance_g)`: a factor analysis of the fitted effects.
"""

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from irtjax.errors import InputError
from irtjax.fit.prediction import cell_probabilities

if TYPE_CHECKING:
    from irtjax.fit.result import FitResult

__all__ = ["EffectPrior", "effect_prior", "fitted_effect_prior", "stratum_prior"]

# Below so many models nothing tells what is common to the effects from what is not.
_FEWEST_MODELS = 5
_SWEEPS = 300
_STRATA, _LEAST_STRATUM = 6, 10
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
    return _prior_of(np.asarray(effect, np.float64), group, names)


def effect_prior(fit: "FitResult", column: str) -> EffectPrior | None:
    """Effects on the values of an item column, whether or not the fit has them.

    Without, the shift in logits of each model's share right in each group against its prediction.

    Args:
        fit: the fit.
        column: of the items' metadata.

    Returns:
        None where all items have the same value.

    Raises:
        InputError: no such column; the fit has the effects of another one.
    """
    if fit.parameters.effect is not None:
        if fit.group != column:
            raise InputError(
                f"the run has effects of {fit.group!r}, so scores are by that column, not by "
                f"{column!r}"
            )
        return fitted_effect_prior(fit)
    group, names = fit.data.groups(column)
    return _residual_prior(fit, group, names) if len(names) > 1 else None


def stratum_prior(fit: "FitResult") -> EffectPrior | None:
    """Effects on strata of difficulty, for items that are of one benchmark.

    A new model's share right need not fall with difficulty as the fitted models' do: ChemBench's
    differ by .9 logits (sd) on the easiest and the hardest sixth of the items. None below ten items
    a stratum.
    """
    if fit.data.n_items < _LEAST_STRATUM * _STRATA:
        return None
    share = np.nan_to_num(fit.data.totals("items")[1], nan=0.5)
    rank = np.argsort(np.argsort(share, kind="stable"), kind="stable")
    group = (rank * _STRATA // len(rank)).astype(np.int32)
    return _residual_prior(fit, group, [str(k) for k in range(_STRATA)])


def _residual_prior(fit: "FitResult", group: np.ndarray, names: list[str]) -> EffectPrior:
    shift = _shifts(fit, group, len(names))
    # Nothing of them is common: the abilities were free to take it.
    return EffectPrior(group, names, np.zeros(len(names)), _shrunk(np.mean(shift**2, axis=0)))


def _prior_of(effect: np.ndarray, group: np.ndarray, names: list[str]) -> EffectPrior:
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
    return EffectPrior(group, names, loading, _shrunk(own))


def _shrunk(variance: np.ndarray) -> np.ndarray:
    return np.maximum((1 - _POOLED) * variance + _POOLED * variance.mean(), 1e-6)


def _shifts(fit: "FitResult", group: np.ndarray, n_groups: int) -> np.ndarray:
    """Models x groups: `sum(y - P) / sum(P (1 - P))` where a model answered, else 0."""
    cells = fit.data.cells()
    predicted = cell_probabilities(fit.prediction_parameters(), cells.model_index, cells.item_index)
    weight = cells.weight.astype(np.float64)
    frame = pd.DataFrame(
        {
            "row": cells.model_index * np.int64(n_groups) + group[cells.item_index],
            "excess": weight * (cells.response - predicted),
            "curvature": weight * predicted * (1 - predicted),
        }
    )
    sums = frame.groupby("row").sum()
    shift = np.zeros(fit.data.n_models * n_groups)
    shift[sums.index.to_numpy()] = sums["excess"] / np.maximum(sums["curvature"], 1.0)
    return shift.reshape(fit.data.n_models, n_groups)

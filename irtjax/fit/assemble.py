"""From blocked estimates on devices to a `FitResult` in the matrix's order."""

import dataclasses
from typing import Any

import jax
import numpy as np

from irtjax.data.blocks import BlockLayout
from irtjax.data.responses import ResponseMatrix
from irtjax.fit.items_estimates import Estimates
from irtjax.fit.result import FittedParameters
from irtjax.fit.rotation import canonical_rotation
from irtjax.model.spec import ModelSpec

__all__ = [
    "Abilities",
    "estimated_parameters",
    "fitted_parameters",
    "with_own_correlations",
    "with_zeros",
]


def fitted_parameters(
    estimates: Estimates, layout: BlockLayout, group: np.ndarray | None = None
) -> FittedParameters:
    """Host arrays, items in the matrix's order; `group` is the group code of each item."""
    host: Any = jax.tree.map(np.asarray, estimates)
    dtype = host.ability.dtype
    asymptotes = jax.tree.map(np.asarray, host.asymptotes)
    errors = host.asymptote_errors
    n_groups = host.distribution.mean.shape[0]
    codes = np.zeros(len(layout.order), np.int32) if group is None else group
    codes = np.minimum(codes, n_groups - 1)
    zero: Any = np.zeros(len(codes), dtype)
    one: Any = np.ones(len(codes), dtype)

    def items_first(leaf: np.ndarray) -> Any:
        return layout.from_blocks(np.moveaxis(leaf, -1, 1))

    fixed: Any = np.zeros_like(host.ability[:1])
    unit: Any = np.eye(host.ability.shape[1], dtype=dtype)[None]
    if host.population is not None:
        fixed, unit = (each[None] for each in host.population)
    return FittedParameters(
        host.ability,
        host.ability_errors.covariance,
        host.ability_errors.clustered,
        host.ability_errors.degrees_of_freedom,
        host.effect,
        host.effect_variance,
        host.expected_score,
        items_first(host.items.mean),
        items_first(host.items.covariance),
        items_first(host.items.share),
        host.distribution.mean,
        host.distribution.covariance,
        host.distribution.log_weight,
        zero if asymptotes is None else asymptotes.guessing[codes],
        one if asymptotes is None else asymptotes.feasibility[codes],
        zero if errors is None else errors[0][codes],
        zero if errors is None else errors[1][codes],
        fixed,
        unit,
        None if host.item_spread is None else items_first(host.item_spread),
    )


@dataclasses.dataclass(frozen=True)
class Abilities:
    """Estimates of the models, host arrays in the order of the data."""

    mean: np.ndarray
    covariance: np.ndarray
    expected_score: np.ndarray


def estimated_parameters(
    data: ResponseMatrix,
    spec: ModelSpec,
    items: Any,
    item_covariance: np.ndarray,
    abilities: Abilities,
    populations: tuple[np.ndarray, np.ndarray],
    *,
    keeps_frame: bool = False,
) -> FittedParameters:
    """Where items are estimated, not integrated out: host arrays in the canonical frame.

    One dim is left as it is, and so are the dims of a confirmatory model.

    Args:
        data: the responses.
        spec: family and dims.
        items: `ItemParameters` as host arrays, in the order of the data.
        item_covariance: of `(slope, intercept, guessing, feasibility)` on their free scales.
        abilities: of the models.
        populations: mean and covariance of each population of models.
        keeps_frame: whether a loading mask or anchors fix the frame.
    """
    dims = spec.dims
    slope = items.slope
    turn = np.eye(dims, dtype=slope.dtype)
    if dims > 1 and not keeps_frame:
        accuracy = data.totals("models")[1]
        turn = canonical_rotation(slope, abilities.mean, accuracy).astype(slope.dtype)
    lift = np.eye(dims + 1, dtype=slope.dtype)
    lift[:dims, :dims] = turn
    within = item_covariance[:, : dims + 1, : dims + 1]
    within = np.einsum("ka,jkl,lb->jab", lift, within, lift, optimize=True)
    rows, columns = np.tril_indices(dims + 1)
    packed: Any = within[:, rows, columns][:, None]
    asymptotes = _asymptotes(spec, items, item_covariance)
    mean: Any = np.concatenate([slope @ turn, items.intercept[:, None]], axis=1)[:, None]
    share: Any = np.ones_like(mean[:, :, 0])
    nothing: Any = np.full_like(abilities.mean, np.nan)
    moved: Any = (
        populations[0] @ turn,
        np.einsum("ka,gkl,lb->gab", turn, populations[1], turn),
    )
    turned: Any = abilities.mean @ turn
    covariance: Any = np.einsum("ka,ikl,lb->iab", turn, abilities.covariance, turn)
    expected_score: Any = abilities.expected_score
    return FittedParameters(
        turned,
        covariance,
        nothing,
        nothing,
        None,
        None,
        expected_score,
        mean,
        packed,
        share,
        None,
        None,
        None,
        *asymptotes,
        *moved,
    )


def _asymptotes(spec: ModelSpec, items: Any, covariance: np.ndarray) -> tuple[Any, Any, Any, Any]:
    """Guessing and feasibility with delta-method errors: `dc = c (1 - c) du`, `dd` by both."""
    zero = np.zeros_like(items.intercept)
    if items.asymptotes is None:
        return zero, np.ones_like(zero), zero, zero
    lower, upper = items.asymptotes.lower, items.asymptotes.upper
    c, t = 1 / (1 + np.exp(-lower)), 1 / (1 + np.exp(-upper))
    gradient = np.zeros_like(covariance[:, :, :2])
    position = spec.dims + 1
    if spec.has_guessing:
        gradient[:, position, 0] = c * (1 - c)
        gradient[:, position, 1] = c * (1 - c) * (1 - t)
        position += 1
    if spec.has_feasibility:
        gradient[:, position, 1] = (1 - c) * t * (1 - t)
    variance = np.einsum("jak,jab,jbk->jk", gradient, covariance, gradient)
    error = np.sqrt(variance)
    return c, c + (1 - c) * t, error[:, 0], error[:, 1]


def with_zeros(fitted: FittedParameters, mask: np.ndarray) -> FittedParameters:
    """Slopes that an item may not have are exactly 0, and so are their errors."""
    rows, columns = np.tril_indices(mask.shape[1] + 1)
    has = np.concatenate([mask, np.ones_like(mask[:, :1])], axis=1)
    changed: Any = {
        "mean": np.array(fitted.mean) * has[:, None],
        "covariance": np.array(fitted.covariance) * (has[:, rows] & has[:, columns])[:, None],
    }
    if fitted.item_spread is not None:
        changed["item_spread"] = np.array(fitted.item_spread) * (has[:, rows] & has[:, columns])
    return dataclasses.replace(fitted, **changed)


def with_own_correlations(fitted: FittedParameters) -> FittedParameters:
    """The abilities' correlations, which nothing held at 0, are those of the estimates."""
    with np.errstate(invalid="ignore", divide="ignore"):
        correlation = np.atleast_2d(np.corrcoef(np.asarray(fitted.ability, np.float64).T))
    # A dim in which all abilities are the same correlates with none.
    correlation = np.where(np.isfinite(correlation), correlation, np.eye(len(correlation)))
    changed: Any = correlation[None].astype(np.asarray(fitted.mean).dtype)
    return dataclasses.replace(fitted, population_covariance=changed)

"""From blocked estimates on devices to a `FitResult` in the matrix's order."""

from typing import Any

import jax
import numpy as np

from irtjax.data.blocks import BlockLayout
from irtjax.fit.marginal_items import Estimates
from irtjax.fit.result import FittedParameters

__all__ = ["fitted_parameters"]


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
    )

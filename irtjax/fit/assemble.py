"""From blocked estimates on devices to a `FitResult` in the matrix's order."""

from typing import Any

import jax
import numpy as np

from irtjax.data.blocks import BlockLayout
from irtjax.fit.marginal_items import Estimates
from irtjax.fit.result import FittedParameters

__all__ = ["fitted_parameters"]


def fitted_parameters(estimates: Estimates, layout: BlockLayout) -> FittedParameters:
    """Host arrays, items in the matrix's order."""
    host: Any = jax.tree.map(np.asarray, estimates)
    dtype = host.ability.dtype
    asymptotes = jax.tree.map(np.asarray, host.asymptotes)
    errors = host.asymptote_errors
    n_groups = host.distribution.mean.shape[0]
    zero: Any = np.zeros(n_groups, dtype)
    one: Any = np.ones(n_groups, dtype)

    def items_first(leaf: np.ndarray) -> Any:
        return layout.from_blocks(np.moveaxis(leaf, -1, 1))

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
        zero if asymptotes is None else asymptotes.guessing,
        one if asymptotes is None else asymptotes.feasibility,
        zero if errors is None else errors[0],
        zero if errors is None else errors[1],
    )

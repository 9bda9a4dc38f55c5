"""From blocked estimates on devices to a `FitResult` in the matrix's order."""

from typing import Any

import jax
import numpy as np

from irtjax.data.blocks import BlockLayout
from irtjax.fit.marginal_items import Estimates
from irtjax.fit.result import FittedParameters
from irtjax.fit.rotation import loadings

__all__ = ["describe_dims", "fitted_parameters"]

# A dim in which one model holds this share of the abilities' variance describes that model alone
# (a Heywood case); with 12 equal models a share is 1/12.
_ONE_MODEL_SHARE = 0.6


def fitted_parameters(estimates: Estimates, layout: BlockLayout) -> FittedParameters:
    """Host arrays, items in the matrix's order."""
    host: Any = jax.tree.map(np.asarray, estimates)
    n_groups = host.distribution.mean.shape[0]
    dtype = host.ability.dtype
    asymptotes = jax.tree.map(np.asarray, host.asymptotes)
    errors = host.asymptote_errors
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


def describe_dims(
    parameters: FittedParameters, model_ids: np.ndarray
) -> tuple[list[dict[str, Any]], list[str]]:
    """Explained variance of each dim and which are carried by one model, with warnings."""
    mean = np.sum(parameters.share[:, :, None] * parameters.mean, axis=1)
    explained = np.mean(loadings(mean[:, :-1].astype(np.float64)) ** 2, axis=0)
    ability = np.asarray(parameters.ability, np.float64)
    share = ability**2 / np.maximum(np.sum(ability**2, axis=0), 1e-12)
    dims, warnings = [], []
    for k in range(ability.shape[1]):
        top = int(np.argmax(share[:, k]))
        flags = ""
        if len(model_ids) > 2 and share[top, k] > _ONE_MODEL_SHARE:
            flags = "one_model"
            warnings.append(
                f"dim {k + 1} is carried by one model ({model_ids[top]!r}, {share[top, k]:.0%} of "
                "its variance): it describes that model, not an ability; use fewer dims"
            )
        dims.append(
            {
                "name": f"dim{k + 1}",
                "explained_variance": float(explained[k]),
                "top_model": str(model_ids[top]),
                "top_model_share": float(share[top, k]),
                "flags": flags,
            }
        )
    return dims, warnings

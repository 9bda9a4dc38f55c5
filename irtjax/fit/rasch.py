"""The Rasch model: the 1PL on the scale where every slope is 1 and the spread is free."""

import dataclasses
from typing import Any

import numpy as np

from irtjax.fit.result import FittedParameters
from irtjax.fit.tower_frame import split_tower, with_frame

__all__ = ["at_slope_one"]


def at_slope_one(fitted: FittedParameters) -> FittedParameters:
    """A 1PL fit with slope a as the Rasch model: abilities times a, slopes 1; no logit changes.

    The error of the common slope becomes one of the abilities' scale: it leaves the items, whose
    intercepts are those of the 1PL.
    """
    common = float(np.sum(fitted.share[0] * fitted.mean[0, :, 0]))
    mean, covariance = np.array(fitted.mean), np.array(fitted.covariance)
    mean[:, :, 0] = 1
    # Packed lower triangle of (slope, intercept): variance of the slope, covariance, variance.
    covariance[:, :, :2] = 0
    moved: dict[str, Any] = {
        "mean": mean,
        "covariance": covariance,
        "ability": fitted.ability * common,
        "ability_covariance": fitted.ability_covariance * common**2,
        "ability_se_clustered": fitted.ability_se_clustered * abs(common),
        "population_mean": fitted.population_mean * common,
        "population_covariance": fitted.population_covariance * common**2,
    }
    if fitted.item_spread is not None:
        moved["item_spread"] = np.array(fitted.item_spread)
        moved["item_spread"][:, :2] = 0
    if fitted.item_tower is not None:
        frame = split_tower(np.asarray(fitted.item_tower), 1, "item")[1]
        # The towers of a 1PL put out slopes of 1.
        frame[:, 0] = [1, 0]
        moved["item_tower"] = with_frame(np.asarray(fitted.item_tower), frame)
    if fitted.model_tower is not None:
        frame = split_tower(np.asarray(fitted.model_tower), 1, "model")[1]
        moved["model_tower"] = with_frame(np.asarray(fitted.model_tower), frame * common)
    if fitted.group_mean is not None and fitted.group_covariance is not None:
        group_mean, group_covariance = (
            np.array(fitted.group_mean),
            np.array(fitted.group_covariance),
        )
        group_mean[..., 0] = 1
        group_covariance[..., 0, :] = group_covariance[..., :, 0] = 0
        moved |= {"group_mean": group_mean, "group_covariance": group_covariance}
    return dataclasses.replace(fitted, **moved)

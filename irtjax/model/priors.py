"""Prior settings of the estimators, each with its default and the reason for it."""

import dataclasses
import math

from irtjax.errors import InputError

__all__ = ["Priors"]


@dataclasses.dataclass(frozen=True)
class Priors:
    """Hyperparameters of the priors; priors are on by default.

    Without them half of the items at 12 models have unbounded estimates.

    Attributes:
        mean_weight: items' worth of the pooled mean in a benchmark's mean of (slope, intercept).
        covariance_weight: items' worth of the pooled covariance in a benchmark's covariance.
        share_weight: items' worth of the pooled component shares (mixtures only).
        covariance_floor: added to the diagonal of every covariance.
        trace_penalty: penalty per item on the trace of a covariance, in squared logits.
        effect_variance: start of the variance of model x benchmark effects (estimated).
        guessing: Beta(a, b) of guessing.
        infeasibility: Beta(a, b) of 1 - feasibility.
    """

    mean_weight: float = 1.0
    covariance_weight: float = 10.0
    share_weight: float = 5.0
    covariance_floor: float = 1e-3
    trace_penalty: float = 0.005
    effect_variance: float = 0.25
    guessing: tuple[float, float] = (5.0, 17.0)
    infeasibility: tuple[float, float] = (2.0, 18.0)

    def __post_init__(self) -> None:
        for name in (
            "mean_weight",
            "covariance_weight",
            "share_weight",
            "covariance_floor",
            "trace_penalty",
        ):
            if not 0 <= getattr(self, name) < math.inf:
                raise InputError(f"prior {name} must be at least 0, not {getattr(self, name)!r}")
        if not 0 < self.effect_variance < math.inf:
            raise InputError(f"prior effect_variance must be above 0, not {self.effect_variance!r}")
        for name in ("guessing", "infeasibility"):
            if min(getattr(self, name)) < 1:
                raise InputError(
                    f"prior {name} is Beta(a, b) with a, b >= 1, not {getattr(self, name)}"
                )

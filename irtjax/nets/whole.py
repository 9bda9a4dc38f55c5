"""What the final towers say of all responses, those kept for validation too."""

import dataclasses
import math

import numpy as np
from jaxtyping import Float

__all__ = ["Whole", "whole"]

# The mean prediction may be off by so many standard errors, and by so much as the last steps of a
# training that stops while they are long leave it: 200 x 50 had .044 at a held-out log-loss of .561
# (.566 of the 1PL), 40 x 900 with 1,800 responses .135 (11 errors) after 8 steps in all.
_ERRORS, _NOISE = 4, 0.06


@dataclasses.dataclass(frozen=True)
class Whole:
    """All responses, those kept for validation too, and what the final towers say of them.

    Attributes:
        log_likelihood: sum over all responses, by the towers.
        log_loss: mean by the towers.
        mean_log_loss: mean by the mean response.
        response: mean response.
        predicted: mean prediction.
        error: standard error of the mean response by the predictions.
    """

    log_likelihood: float
    log_loss: float
    mean_log_loss: float
    response: float
    predicted: float
    error: float

    @property
    def is_biased(self) -> bool:
        """Whether predictions are off on average, by more than chance and noise explain."""
        return abs(self.predicted - self.response) > max(_ERRORS * self.error, _NOISE)


def whole(sums: Float[np.ndarray, "5 items"]) -> Whole:
    """What `sums_by_item` (in float64) says of all responses."""
    weight, right, probability, variance, log_likelihood = sums.sum(axis=1).tolist()
    # Half an answer of each kind more, as in the means of `judged`.
    mean = (right + 0.5) / (weight + 1)
    by_mean = -(right * math.log(mean) + (weight - right) * math.log1p(-mean))
    return Whole(
        log_likelihood,
        -log_likelihood / weight,
        by_mean / weight,
        right / weight,
        probability / weight,
        math.sqrt(variance) / weight,
    )

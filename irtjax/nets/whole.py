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
# Means of so many answers an id hardly fit chance: fitting it gains half a nat an id, .025 nats an
# answer of 20.
_FEWEST_ANSWERS = 20


@dataclasses.dataclass(frozen=True)
class Whole:
    """All responses, those kept for validation too, and what the final towers say of them.

    Attributes:
        log_likelihood: sum over all responses, by the towers.
        log_loss: mean by the towers.
        by_means: mean by the mean response, and by each model's or each item's where they have
            enough answers for it to say something.
        response: mean response.
        predicted: mean prediction.
        error: standard error of the mean response by the predictions.
    """

    log_likelihood: float
    log_loss: float
    by_means: dict[str, float]
    response: float
    predicted: float
    error: float

    @property
    def is_biased(self) -> bool:
        """Whether predictions are off on average, by more than chance and noise explain."""
        return abs(self.predicted - self.response) > max(_ERRORS * self.error, _NOISE)


def whole(sums: Float[np.ndarray, "5 items"], models: Float[np.ndarray, "2 models"]) -> Whole:
    """What the final towers say of all responses.

    Args:
        sums: of each item's cells, of `sums_by_item` (in float64).
        models: weight of each model's cells and of the right ones.
    """
    weight, right, probability, variance, log_likelihood = sums.sum(axis=1).tolist()
    by_means = {"the mean": _loss(np.array([[weight], [right]]))}
    for name, each in (("each model's mean", models), ("each item's mean", sums[:2])):
        seen = each[:, each[0] > 0]
        if weight >= _FEWEST_ANSWERS * seen.shape[1]:
            by_means[name] = _loss(seen)
    return Whole(
        log_likelihood,
        -log_likelihood / weight,
        by_means,
        right / weight,
        probability / weight,
        math.sqrt(variance) / weight,
    )


def _loss(totals: Float[np.ndarray, "2 ids"]) -> float:
    """Log-loss of all answers by means, with half an answer of each kind more, as in `judged`."""
    weight, right = totals
    mean = (right + 0.5) / (weight + 1)
    likelihood = right * np.log(mean) + (weight - right) * np.log1p(-mean)
    return float(-np.sum(likelihood) / np.sum(weight))

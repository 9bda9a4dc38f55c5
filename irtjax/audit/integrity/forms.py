"""What a model would answer in a block: its form there, and how the form drifts along the items.

`logit P = form + steepness easiness`, the easiness of an item being that of the other models. The
form is fitted to cells that are not in question. Items stand by subject, and a model is better in
some subjects than in others: how much is measured in all blocks of the benchmark.
"""

import dataclasses
from collections.abc import Iterable

import numpy as np
from jaxtyping import Float
from scipy.special import expit
from scipy.stats import chi2

__all__ = ["LEAST_DRIFT", "WINDOW", "Form", "drift_of", "fitted_form"]

WINDOW = 50  # cells over which the form is taken to be one
LEAST_DRIFT = 0.3  # logits
# Easiness by few models is noise in part, and another dim's in part: not always 1 to 1.
_STEEPNESS, _STEEPNESS_SPREAD = 1.0, 0.3
_MOST_STEPS, _SMALL_STEP, _LONGEST_STEP = 20, 1e-4, 2.0


@dataclasses.dataclass(frozen=True)
class Form:
    """A model's form in a block.

    Attributes:
        level: logit of a right answer to an item of mean easiness.
        steepness: logits an item's easiness counts for each of its own.
        variance: of the level.
    """

    level: float
    steepness: float
    variance: float

    def logits(self, easiness: Float[np.ndarray, " items"]) -> Float[np.ndarray, " items"]:
        """Of right answers to items of this easiness."""
        return self.level + self.steepness * easiness


def fitted_form(
    response: Float[np.ndarray, " cells"],
    easiness: Float[np.ndarray, " cells"],
    mean: float,
    spread: float,
) -> Form:
    """The likeliest form, given some responses and what is expected of it.

    Args:
        response: observed cells, any number.
        easiness: of their items.
        mean: expected level, logits.
        spread: standard deviation of that expectation.
    """
    design = np.stack([np.ones(len(easiness)), easiness], axis=1)
    centre = np.array([mean, _STEEPNESS])
    precision = np.diag([spread**-2, _STEEPNESS_SPREAD**-2])
    found = centre.copy()
    for _ in range(_MOST_STEPS):
        p = expit(design @ found)
        gradient = design.T @ (response - p) - precision @ (found - centre)
        curvature = (design * (p * (1 - p))[:, None]).T @ design + precision
        step = np.linalg.solve(curvature, gradient)
        longest = float(np.abs(step).max())
        found = found + step * min(1.0, _LONGEST_STEP / max(longest, _SMALL_STEP))
        if longest < _SMALL_STEP:
            break
    return Form(float(found[0]), float(found[1]), float(np.linalg.inv(curvature)[0, 0]))


def drift_of(
    blocks: Iterable[tuple[Float[np.ndarray, " cells"], Float[np.ndarray, " cells"], Form]],
) -> float:
    """Standard deviation, in logits, of models' forms between stretches of a benchmark.

    By the median over blocks and windows, so that a few faulty ones do not count: of the squared
    sum of residuals in a window over its variance, which is 1 + variance x drift^2 times that of a
    squared normal number.

    Args:
        blocks: observed responses, the items' easiness and the form, of some models.
    """
    ratio, variance = [], []
    for response, easiness, form in blocks:
        n_windows = len(response) // WINDOW
        if n_windows < 2:
            continue
        p = expit(form.logits(easiness))[: n_windows * WINDOW].reshape(n_windows, WINDOW)
        away = response[: n_windows * WINDOW].reshape(n_windows, WINDOW) - p
        each = np.maximum(np.sum(p * (1 - p), axis=1), 1e-3)
        ratio.append(np.square(away.sum(axis=1)) / each)
        variance.append(each)
    if not ratio:
        return LEAST_DRIFT
    excess = float(np.median(np.concatenate(ratio))) / chi2.median(1) - 1
    drift = np.sqrt(max(excess, 0.0) / float(np.median(np.concatenate(variance))))
    return max(float(drift), LEAST_DRIFT)

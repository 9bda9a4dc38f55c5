"""Two populations of models that share some items, and an oracle of the second's mean and sd."""

import dataclasses
import functools

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from irtjax.data.responses import ResponseMatrix
from tests.fit.fitting import quiet_fit

MEAN, SD = 0.7, 1.3
# Models, items of each of the three parts (of the first population, of both, of the second).
SHAPES = {"marginal-items": (100, 80), "marginal-models": (1000, 20)}


@dataclasses.dataclass(frozen=True)
class Apart:
    """The first population's fit, the second's responses, and the truth of the second."""

    run: object
    new: ResponseMatrix
    ability: np.ndarray
    slope: np.ndarray
    intercept: np.ndarray
    n_anchors: int


def drawn(rng, ability, slope, intercept, first):
    p = expit(np.outer(ability, slope) + intercept)
    ids = [f"item-{first + k}" for k in range(len(slope))]
    return ResponseMatrix.from_dense((rng.random(p.shape) < p).astype(np.int8), item_ids=ids)


@functools.cache
def apart(estimator):
    n, part = SHAPES[estimator]
    rng = np.random.default_rng(7)
    slope, intercept = np.exp(0.3 * rng.normal(size=3 * part)), rng.normal(size=3 * part)
    old = rng.normal(size=n)
    old = (old - old.mean()) / old.std()  # the scale of the run is that of its models
    ability = MEAN + SD * rng.normal(size=n)
    run = quiet_fit(
        drawn(rng, old, slope[: 2 * part], intercept[: 2 * part], 0), estimator=estimator
    )
    new = drawn(rng, ability, slope[part:], intercept[part:], part)
    return Apart(run, new, ability, slope[part:], intercept[part:], part)


def likeliest_population(responses, slope, intercept):
    """Mean and sd of a normal population that answered known items: direct maximisation."""
    node = np.linspace(-6, 6, 161)

    def objective(place):
        theta = place[0] + np.exp(place[1]) * node
        logit = np.outer(theta, slope) + intercept
        log_p, log_not_p = -np.logaddexp(0, -logit), -np.logaddexp(0, logit)
        each = responses @ log_p.T + (1 - responses) @ log_not_p.T - 0.5 * node**2
        return -np.sum(np.logaddexp.reduce(each, axis=1))

    found = minimize(objective, [0.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-6})
    return found.x[0], np.exp(found.x[1])

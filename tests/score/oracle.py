"""Dense-grid scoring in float64 NumPy: independent of the package's quadrature and derivatives."""

import itertools

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

__all__ = ["CURVE_NODES", "CURVE_WEIGHTS", "GridOracle"]

# The package's own quadrature over an item's logit, for what must agree to rounding: nodes an sd
# apart, weighted by the normal's moments up to the eighth.
CURVE_NODES = np.arange(-4.0, 5.0)
CURVE_WEIGHTS = np.linalg.solve(
    CURVE_NODES ** np.arange(9)[:, None], [1, 0, 1, 0, 3, 0, 15, 0, 105]
)

_HALF_WIDTH = 6.0
_NODES = {1: 2001, 2: 161}
_HERMITE = 60


class GridOracle:
    """Curves of items with (or without) posterior covariances, and a model's likelihood on a grid.

    Curves are `E[P]` over each item's normal by 60 Gauss-Hermite nodes.
    """

    def __init__(self, mean, covariance, guessing=None, feasibility=None):
        self.mean, self.covariance = mean, covariance
        self.guessing = np.zeros(len(mean)) if guessing is None else guessing
        self.feasibility = np.ones(len(mean)) if feasibility is None else feasibility
        self.dims = mean.shape[1] - 1
        line = np.linspace(-_HALF_WIDTH, _HALF_WIDTH, _NODES[self.dims])
        self.grid = np.array(list(itertools.product(line, repeat=self.dims)))

    def curves(self, ability):
        """Points x items."""
        x = np.concatenate([ability, np.ones((len(ability), 1))], axis=1)
        centre = x @ self.mean.T
        sd = np.sqrt(np.maximum(np.einsum("pk,jkl,pl->pj", x, self.covariance, x), 0))
        node, weight = np.polynomial.hermite_e.hermegauss(_HERMITE)
        s = sum(w * expit(centre + z * sd) for z, w in zip(node, weight, strict=True))
        s = s / np.sqrt(2 * np.pi)
        return self.guessing + (self.feasibility - self.guessing) * s

    def log_likelihood(self, ability, answer):
        """Of one model (NaN where missing) at points."""
        seen = ~np.isnan(answer)
        p = self.curves(ability)[:, seen]
        y = answer[seen]
        return np.log(p) @ y + np.log1p(-p) @ (1 - y)

    def eap(self, answer):
        """Posterior mean and sd of every dim under N(0, I)."""
        log = self.log_likelihood(self.grid, answer) - 0.5 * np.sum(self.grid**2, axis=1)
        weight = np.exp(log - log.max())
        weight /= weight.sum()
        mean = weight @ self.grid
        return mean, np.sqrt(weight @ (self.grid - mean) ** 2)

    def map(self, answer):
        """The posterior's mode."""

        def objective(at):
            return -self.log_likelihood(at[None], answer)[0] + 0.5 * at @ at

        return self._best(objective, answer)

    def wle(self, answer):
        """Warm's estimate where it is known to be the mode of `L sqrt(det I)`: 2PL, known items."""

        def objective(at):
            seen = ~np.isnan(answer)
            p = self.curves(at[None])[0, seen]
            slope = self.mean[seen, :-1]
            information = (slope * (p * (1 - p))[:, None]).T @ slope
            half = 0.5 * np.linalg.slogdet(information)[1]
            return -self.log_likelihood(at[None], answer)[0] - half

        return self._best(objective, answer)

    def warm_root(self, answer):
        """Warm's equation `l' + J / (2 I) = 0` of any curves, one dim, by differences on a grid."""
        line = np.linspace(-_HALF_WIDTH, _HALF_WIDTH, 24_001)
        step = line[1] - line[0]
        seen = ~np.isnan(answer)
        p = self.curves(line[:, None])[:, seen]
        first = np.gradient(p, step, axis=0)
        second = np.gradient(first, step, axis=0)
        variance = p * (1 - p)
        score = np.sum((answer[seen] - p) * first / variance, axis=1)
        information = np.sum(first**2 / variance, axis=1)
        bend = np.sum(first * second / variance, axis=1)
        equation = score + bend / (2 * information)
        # Far out, curves with asymptotes and uncertain ones have further roots.
        falls = np.flatnonzero((equation[:-1] > 0) & (equation[1:] <= 0))
        crossing = falls[np.argmin(np.abs(line[falls] - self.eap(answer)[0]))]
        a, b = equation[crossing], equation[crossing + 1]
        return np.array([line[crossing] + step * a / (a - b)])

    def _best(self, objective, answer):
        start, _ = self.eap(answer)
        options = {"xatol": 1e-10, "fatol": 1e-13, "maxiter": 4000}
        return minimize(objective, start, method="Nelder-Mead", options=options).x

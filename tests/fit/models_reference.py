"""The formulas of `marginal-models` in plain NumPy, float64: the oracle.

Nothing of irtjax is imported. Matrices are models x items with -1 for missing. Items are one array,
coordinates x items: natural slopes, intercept, and where the family has them guessing and
feasibility as `c = sigmoid(u)`, `d = c + (1 - c) sigmoid(v)`. Every function takes complex numbers:
`gradient` is a complex step, exact to rounding (Squire & Trapp 1998).
"""

import dataclasses

import numpy as np

TINY = 1e-30
STEP = 1e-5
N_ASYMPTOTES = {"1pl": 0, "2pl": 0, "3pl": 1, "4pl": 2}


@dataclasses.dataclass
class Problem:
    """Responses and the parameters at which a pass is taken."""

    family: str
    response: np.ndarray
    weight: np.ndarray
    population: np.ndarray
    count: np.ndarray
    items: np.ndarray
    mean: np.ndarray
    factor: np.ndarray

    @property
    def dims(self):
        return self.mean.shape[1]

    @property
    def right(self):
        return np.where(self.response < 0, 0, self.weight * self.response)

    @property
    def wrong(self):
        return np.where(self.response < 0, 0, self.weight * (1 - self.response))


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


def random_items(rng, family, dims, n_items):
    """Coordinates x items."""
    slope = rng.lognormal(0, 0.3, (dims, n_items)) * np.where(
        rng.random((dims, n_items)) < 0.2, -1, 1
    )
    if family == "1pl":
        slope = np.full((dims, n_items), 1.3)
    more = [rng.normal(-1.4, 0.3, n_items), rng.normal(2.2, 0.4, n_items)][: N_ASYMPTOTES[family]]
    return np.stack([*slope, rng.normal(0, 1, n_items), *more])


def random_problem(rng, family, *, dims=1, n_models=50, n_items=7, n_populations=2, is_plain=False):
    """Two populations, missing cells, and unless plain: k right of n answers, shared patterns."""
    shape = (n_models, n_items)
    items = random_items(rng, family, dims, n_items)
    population = np.sort(rng.integers(0, n_populations, n_models))
    mean = rng.normal(0, 0.5, (n_populations, dims))
    factor = np.tril(rng.normal(0, 0.2, (n_populations, dims, dims))) + 1.1 * np.eye(dims)
    mean[0], factor[0] = 0, np.eye(dims)
    standard = rng.normal(size=(n_models, dims))
    ability = mean[population] + np.einsum("nkl,nl->nk", factor[population], standard)
    p = curves(family, items, ability).T
    weight, count = np.ones(shape), np.ones(n_models)
    if not is_plain:
        # Powers of two: k / n is then the same number in float32.
        weight = 2.0 ** rng.integers(0, 3, shape)
        count = rng.integers(1, 4, n_models).astype(float)
    response = rng.binomial(weight.astype(int), p) / weight
    response[rng.random(shape) < 0.15] = -1
    response[3] = -1
    return Problem(family, response, weight, population, count, items, mean, factor)


def curves(family, items, node):
    """Probability of a right answer, items x nodes."""
    dims = node.shape[1]
    s = sigmoid(items[:dims].T @ node.T + items[dims][:, None])
    n_more = N_ASYMPTOTES[family]
    c = sigmoid(items[dims + 1])[:, None] if n_more else 0
    d = c + (1 - c) * sigmoid(items[dims + 2])[:, None] if n_more == 2 else 1
    return c + (d - c) * s


def log_curves(family, items, node):
    """Logarithms of right and of wrong answers, of real numbers however large."""
    dims = node.shape[1]
    logit = items[:dims].T @ node.T + items[dims][:, None]
    log_s, log_not_s = -np.logaddexp(0, -logit), -np.logaddexp(0, logit)
    n_more = N_ASYMPTOTES[family]
    if not n_more:
        return log_s, log_not_s
    c = sigmoid(items[dims + 1])[:, None]
    log_p = np.log(curves(family, items, node))
    if n_more == 1:
        return log_p, np.log(1 - c) + log_not_s
    missed = np.log(1 - c) + np.log(sigmoid(-items[dims + 2]))[:, None]
    return log_p, np.logaddexp(missed + log_s, np.log(1 - c) + log_not_s)


def standard_grid(dims, n_nodes, width=6.0):
    """Equally spaced nodes of the standard normal, and their log-weights."""
    line = np.linspace(-width, width, n_nodes)
    node = np.stack([each.ravel() for each in np.meshgrid(*[line] * dims, indexing="ij")], axis=1)
    density = np.exp(-0.5 * np.sum(node**2, axis=1))
    return node, np.log(density / density.sum())


def log_joint(problem, items, node, log_weight):
    """Models x nodes: log-likelihood at each node of a model's population, plus its weight."""
    found = np.empty((len(problem.response), node.shape[1]), items.dtype)
    for g in range(len(problem.mean)):
        p = curves(problem.family, items, node[g])
        own = problem.population == g
        found[own] = problem.right[own] @ np.log(p) + problem.wrong[own] @ np.log(1 - p)
    return found + log_weight[problem.population]


def log_sum(joint):
    """Over the last axis; the largest real part is taken out."""
    top = np.max(joint.real, axis=-1, keepdims=True)
    return np.log(np.sum(np.exp(joint - top), axis=-1)) + top[..., 0]


def nodes_of(problem, base):
    """Populations x nodes x dims."""
    return problem.mean[:, None] + np.einsum("gkl,ql->gqk", problem.factor, base)


def each_log_likelihood(problem, items, grid):
    """Marginal log-likelihood of each model (once, whatever its count)."""
    base, log_weight = grid
    weights = np.broadcast_to(log_weight, (len(problem.mean), len(base)))
    return log_sum(log_joint(problem, items, nodes_of(problem, base), weights))


def log_likelihood(problem, items, grid):
    """Of all models."""
    return np.sum(problem.count * each_log_likelihood(problem, items, grid))


def posteriors(problem, items, grid):
    """Models x nodes: posterior weights; and where the nodes of each model lie."""
    base, log_weight = grid
    weights = np.broadcast_to(log_weight, (len(problem.mean), len(base)))
    node = nodes_of(problem, base)
    joint = log_joint(problem, items, node, weights)
    return np.exp(joint - log_sum(joint)[:, None]), node[problem.population]


def posterior_means(problem, items, grid):
    weight, node = posteriors(problem, items, grid)
    return np.einsum("nq,nqk->nk", weight, node)


def expected_log_likelihood(family, items, node, right, wrong):
    """`sum_q r log P + w log(1 - P)`, each item by itself."""
    p = curves(family, items, node)
    return np.sum(right * np.log(p) + wrong * np.log(1 - p), axis=1)


def log_prior(family, items, dims, slope, intercept, guessing, infeasibility, is_log):
    """Of each item, up to constants; `slope`, `intercept` are (mean, sd), the others Beta(a, b)."""
    place = (
        np.log(np.where(items[:dims].real < 0, -1, 1) * items[:dims]) if is_log else items[:dims]
    )
    total = -0.5 * np.sum(((place - slope[0]) / slope[1]) ** 2, axis=0)
    total = total - 0.5 * ((items[dims] - intercept[0]) / intercept[1]) ** 2
    n_more = N_ASYMPTOTES[family]
    if n_more:
        c = sigmoid(items[dims + 1])
        total = total + (guessing[0] - 1) * np.log(c) + (guessing[1] - 1) * np.log(1 - c)
    if n_more == 2:
        d = c + (1 - c) * sigmoid(items[dims + 2])
        a, b = infeasibility
        total = total + (a - 1) * np.log(1 - d) + (b - 1) * np.log(d)
    return total


def gradient(function, place):
    """`d function / d place`, with the axes of `place` last."""
    flat = place.astype(complex).ravel()
    found = []
    for k in range(flat.size):
        moved = flat.copy()
        moved[k] += 1j * TINY
        found.append(np.imag(function(moved.reshape(place.shape))) / TINY)
    return np.moveaxis(np.array(found), 0, -1).reshape(*np.shape(found[0]), *place.shape)


def hessian(function, place):
    """Central differences of the complex step, of a scalar: size x size."""
    flat = place.ravel()
    rows = []
    for k in range(flat.size):
        move = np.zeros_like(flat)
        move[k] = STEP
        up, down = ((flat + sign * move).reshape(place.shape) for sign in (1, -1))
        rows.append((gradient(function, up) - gradient(function, down)).ravel() / (2 * STEP))
    found = np.array(rows)
    return (found + found.T) / 2

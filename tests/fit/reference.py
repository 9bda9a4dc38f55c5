"""The estimator's formulas in plain NumPy, float64, one item or one model at a time: the oracle.

Nothing of irtjax is imported. Matrices are models x items with -1 for missing; `z = (slope,
intercept)`; covariances are full matrices.
"""

import dataclasses

import numpy as np
from scipy.special import expit, logsumexp, softmax

LONGEST_ITEM_STEP = 2.0
LONGEST_MODEL_STEP = 1.0


def hermite(n_nodes):
    """Nodes and weights of the expectation under N(0, 1)."""
    nodes, weights = np.polynomial.hermite.hermgauss(n_nodes)
    return np.sqrt(2) * nodes, weights / np.sqrt(np.pi)


def cell(z, y, c=0.0, d=1.0):
    """Log-likelihood, its first two derivatives in the logit, and the expected knowing counts."""
    s, not_s = expit(z), expit(-z)
    p, q = c + (d - c) * s, (1 - d) + (d - c) * not_s
    slope = (d - c) * s * not_s
    bend = slope * (not_s - s)
    value = y * np.log(p) + (1 - y) * np.log(q)
    first = y * slope / p - (1 - y) * slope / q
    second = y * (bend / p - (slope / p) ** 2) - (1 - y) * (bend / q + (slope / q) ** 2)
    return value, first, second, y * d * s / p, (1 - y) * (1 - d) * s / q


def expected_cell(mean, variance, y, c, d, n_nodes):
    """The five numbers of `cell`, averaged over N(mean, variance)."""
    nodes, weights = hermite(n_nodes)
    z = mean + nodes[:, None] * np.sqrt(variance)
    return np.array([weights @ each for each in cell(z, y, c, d)])


@dataclasses.dataclass
class Problem:
    """Everything a pass needs; items in the order of the matrix.

    `mean`, `covariance` are items x components x ...; `mu`, `sigma`, `log_weight` groups x
    components x ...; `guessing`, `feasibility` one a group. Abilities and effects are known, or
    have the (co)variances `ability_covariance` and `effect_spread`.
    """

    response: np.ndarray
    weight: np.ndarray
    group: np.ndarray
    ability: np.ndarray
    effect: np.ndarray | None
    mu: np.ndarray
    sigma: np.ndarray
    log_weight: np.ndarray
    guessing: np.ndarray
    feasibility: np.ndarray
    mean: np.ndarray
    covariance: np.ndarray
    share: np.ndarray
    is_free: tuple[bool, ...]
    n_nodes: int
    ability_covariance: np.ndarray | None = None
    effect_spread: np.ndarray | None = None

    @property
    def design(self):
        """Models x coordinates."""
        return np.column_stack([self.ability, np.ones(len(self.ability))])

    def seen(self, j):
        """Models that answered item j, their design, offset, response and weight."""
        i = np.flatnonzero(self.response[:, j] >= 0)
        offset = np.zeros(len(i)) if self.effect is None else self.effect[i, self.group[j]]
        return i, self.design[i], offset, self.response[i, j].astype(float), self.weight[i, j]

    def design_covariance(self, i):
        """Covariance of `(theta, 1)` of some models."""
        size = len(self.is_free)
        full = np.zeros((len(i), size, size))
        if self.ability_covariance is not None:
            full[:, :-1, :-1] = self.ability_covariance[i]
        return full

    def cells(self, j, m, V):
        """Weighted expectations of the five numbers of the seen cells of item j."""
        i, x, offset, y, w = self.seen(j)
        W, g = self.design_covariance(i), self.group[j]
        # Of z'x with z and x independent: E[x]'V E[x] + E[z]'W E[z] + tr(V W).
        variance = np.einsum("ia,ab,ib->i", x, V, x) + np.einsum("a,iab,b->i", m, W, m)
        variance += np.einsum("ab,iab->i", V, W)
        if self.effect_spread is not None:
            variance += self.effect_spread[i, g]
        return w * expected_cell(
            x @ m + offset, variance, y, self.guessing[g], self.feasibility[g], self.n_nodes
        )

    def precision(self, g, c):
        """Prior precision with zeros for the pinned coordinates."""
        free = np.flatnonzero(self.is_free)
        full = np.zeros((len(self.is_free),) * 2)
        full[np.ix_(free, free)] = np.linalg.inv(self.sigma[g, c][np.ix_(free, free)])
        return full


def renewed_posterior(problem, j, c):
    """One Newton step of item j's posterior under component c."""
    g, free = problem.group[j], np.flatnonzero(problem.is_free)
    m, V = problem.mean[j, c], problem.covariance[j, c]
    i, x, _, _, _ = problem.seen(j)
    _, first, second, _, _ = problem.cells(j, m, V)
    prior, W = problem.precision(g, c), problem.design_covariance(i)
    outer = np.einsum("ia,ib->iab", x, x) + W
    information = prior + np.einsum("i,iab->ab", -second, outer)
    if np.linalg.eigvalsh(information[np.ix_(free, free)]).min() <= 0:
        information = prior + np.einsum("i,iab->ab", np.maximum(-second, 0), outer)
    covariance = np.zeros_like(V)
    covariance[np.ix_(free, free)] = np.linalg.inv(information[np.ix_(free, free)])
    score = first @ x + np.einsum("i,iab,b->a", second, W, m)
    step = covariance @ (score - prior @ (m - problem.mu[g, c]))
    length = np.linalg.norm(step)
    return m + step * min(1.0, LONGEST_ITEM_STEP / max(length, 1e-300)), covariance


def divergence(m, V, mu, sigma, is_free):
    """`KL(N(m, V) || N(mu, sigma))` over the free coordinates."""
    free = np.flatnonzero(is_free)
    pick = np.ix_(free, free)
    precision, away = np.linalg.inv(sigma[pick]), (m - mu)[free]
    return 0.5 * (
        np.trace(precision @ V[pick])
        + away @ precision @ away
        - len(free)
        + np.linalg.slogdet(sigma[pick])[1]
        - np.linalg.slogdet(V[pick])[1]
    )


@dataclasses.dataclass
class Pass:
    """What one pass gives."""

    mean: np.ndarray
    covariance: np.ndarray
    share: np.ndarray
    bound: float
    score: np.ndarray  # models x dims
    information: np.ndarray  # models x dims x dims
    effect_score: np.ndarray  # groups x models
    effect_information: np.ndarray
    effect_cross: np.ndarray  # groups x dims x models
    count: np.ndarray  # groups x components
    deviation: np.ndarray
    squares: np.ndarray  # groups x components x coordinates x coordinates
    answers: np.ndarray  # groups x components x 4


def renew(problem):
    """One pass over all items, one at a time."""
    n_models, dims = problem.ability.shape
    n_items = problem.response.shape[1]
    n_groups, n_components, size = problem.mu.shape
    out = Pass(
        np.empty_like(problem.mean),
        np.empty_like(problem.covariance),
        np.empty((n_items, n_components)),
        0.0,
        np.zeros((n_models, dims)),
        np.zeros((n_models, dims, dims)),
        np.zeros((n_groups, n_models)),
        np.zeros((n_groups, n_models)),
        np.zeros((n_groups, dims, n_models)),
        np.zeros((n_groups, n_components)),
        np.zeros((n_groups, n_components, size)),
        np.zeros((n_groups, n_components, size, size)),
        np.zeros((n_groups, n_components, 4)),
    )
    for j in range(n_items):
        g = problem.group[j]
        bound, cells = np.empty(n_components), []
        for c in range(n_components):
            m, V = renewed_posterior(problem, j, c)
            out.mean[j, c], out.covariance[j, c] = m, V
            kl = divergence(m, V, problem.mu[g, c], problem.sigma[g, c], problem.is_free)
            cells.append(problem.cells(j, m, V))
            bound[c] = cells[c][0].sum() - kl + problem.log_weight[g, c]
        out.share[j] = softmax(bound)
        out.bound += logsumexp(bound)
        for c in range(n_components):
            _add_item(out, problem, j, c, cells[c])
    return out


def _add_item(out, problem, j, c, cells):
    """Add item j's statistics under component c, times its share."""
    dims = problem.ability.shape[1]
    g, share = problem.group[j], out.share[j, c]
    m, V = out.mean[j, c], out.covariance[j, c]
    i, x, _, y, w = problem.seen(j)
    _, first, second, known_right, known_wrong = share * cells
    a, positive = m[:dims], np.maximum(-second, 0)
    out.score[i] += first[:, None] * a - (-second)[:, None] * (x @ V[:, :dims])
    out.information[i] += positive[:, None, None] * (np.outer(a, a) + V[:dims, :dims])
    out.effect_score[g, i] += first
    out.effect_information[g, i] += positive
    out.effect_cross[g][:, i] += a[:, None] * positive
    away = m - problem.mu[g, c]
    out.count[g, c] += share
    out.deviation[g, c] += share * away
    out.squares[g, c] += share * (np.outer(away, away) + V)
    right, wrong = share * w * y, share * w * (1 - y)
    out.answers[g, c] += [known_right.sum(), known_wrong.sum(), right.sum(), wrong.sum()]


def newton_models(ability, effect, effect_variance, result):
    """Dense joint Newton step of each model's abilities and effects, then the caps."""
    n_models, dims = ability.shape
    n_groups = 0 if effect is None else effect.shape[1]
    new_ability = np.empty_like(ability)
    new_effect = None if effect is None else np.empty_like(effect)
    for i in range(n_models):
        size = dims + n_groups
        hessian, gradient = np.zeros((size, size)), np.zeros(size)
        hessian[:dims, :dims] = result.information[i] + np.eye(dims)
        gradient[:dims] = result.score[i] - ability[i]
        for g in range(n_groups):
            k = dims + g
            hessian[k, k] = result.effect_information[g, i] + 1 / effect_variance
            hessian[:dims, k] = hessian[k, :dims] = result.effect_cross[g, :, i]
            gradient[k] = result.effect_score[g, i] - effect[i, g] / effect_variance
        step = np.linalg.solve(hessian, gradient)
        length = np.linalg.norm(step[:dims])
        move = step[:dims] * min(1.0, LONGEST_MODEL_STEP / max(length, 1e-300))
        new_ability[i] = ability[i] + move
        if effect is not None:
            # The effects follow the abilities' move as it was made, capped or not.
            rest = gradient[dims:] - hessian[dims:, :dims] @ move
            change = rest / np.diag(hessian)[dims:]
            new_effect[i] = effect[i] + np.clip(change, -LONGEST_MODEL_STEP, LONGEST_MODEL_STEP)
    return new_ability, new_effect


def random_problem(
    rng,
    *,
    n_models,
    n_items,
    dims,
    n_groups,
    n_components=1,
    has_effects=True,
    has_asymptotes=False,
    is_fractional=False,
    is_weighted=False,
    is_uncertain=False,
    missing=0.2,
    is_free=None,
    n_nodes=9,
):
    """A pass in the middle of a fit: nothing at its optimum, nothing at a round number."""
    size = dims + 1
    is_free = is_free or (True,) * size
    shape = (n_models, n_items)
    group = np.sort(rng.integers(0, n_groups, n_items))
    group[:n_groups] = np.arange(n_groups)
    rng.shuffle(group)
    ability = rng.normal(size=(n_models, dims))
    mu = rng.normal(0, 0.5, (n_groups, n_components, size))
    mu[..., 0] += 1
    root = rng.normal(0, 0.4, (n_groups, n_components, size, size))
    sigma = root @ root.swapaxes(-1, -2) + 0.3 * np.eye(size)
    free = np.array(is_free)
    sigma = np.where(free[:, None] & free, sigma, 0)
    weights = rng.dirichlet(np.full(n_components, 5.0), n_groups)
    mean = mu[group] + 0.4 * rng.normal(size=(n_items, n_components, size)) * free
    root = rng.normal(0, 0.2, (n_items, n_components, size, size))
    covariance = root @ root.swapaxes(-1, -2) + 0.05 * np.eye(size)
    covariance = np.where(free[:, None] & free, covariance, 0)
    guessing = rng.uniform(0.1, 0.3, n_groups) if has_asymptotes else np.zeros(n_groups)
    feasibility = rng.uniform(0.8, 0.98, n_groups) if has_asymptotes else np.ones(n_groups)
    truth = rng.normal([1.0] * dims + [0.0], 0.8, (n_items, size))
    logit = np.column_stack([ability, np.ones(n_models)]) @ truth.T
    p = guessing[group] + (feasibility - guessing)[group] * expit(logit)
    response = (rng.random(shape) < p).astype(float)
    if is_fractional:
        part = rng.integers(0, 5, shape) / 4
        response = np.where(rng.random(shape) < 0.3, part, response)
    response[rng.random(shape) < missing] = -1
    weight = rng.integers(1, 5, shape).astype(float) if is_weighted else np.ones(shape)
    ability_covariance = effect_spread = None
    if is_uncertain:
        root = rng.normal(0, 0.2, (n_models, dims, dims))
        ability_covariance = root @ root.swapaxes(1, 2) + 0.02 * np.eye(dims)
        effect_spread = rng.uniform(0.01, 0.3, (n_models, n_groups)) if has_effects else None
    return Problem(
        response,
        weight,
        group,
        ability,
        rng.normal(0, 0.4, (n_models, n_groups)) if has_effects else None,
        mu,
        sigma,
        np.log(weights),
        guessing,
        feasibility,
        mean,
        covariance,
        np.full((n_items, n_components), 1 / n_components),
        is_free,
        n_nodes,
        ability_covariance,
        effect_spread,
    )

"""`marginal-models` with normal posteriors: derivatives of its bound, errors, recovery, and W1.

The pass itself is checked in `test_roles`.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, log_expit, logsumexp
from scipy.stats import multivariate_normal

from benchmarks.problems import problem_w1
from irtjax.data.blocks import make_blocks
from irtjax.data.responses import ResponseMatrix
from irtjax.data.simulate import simulate
from irtjax.fit.item_step import ItemModel, ItemParameters
from irtjax.fit.kernel import Posterior
from irtjax.fit.populations import Populations
from irtjax.fit.tables import slope_and_intercept
from irtjax.fit.variational_pass import score_products, variational_pass
from irtjax.model.priors import Priors
from irtjax.model.response import Asymptotes
from irtjax.model.spec import ModelSpec
from irtjax.parallel import BLOCKED, items_mesh, place
from tests.fit import reference
from tests.fit.bridge import packed
from tests.fit.fitting import quiet_fit
from tests.tolerances import close, tolerance

N_MODELS, N_ITEMS, DIMS, N_NODES = 60, 7, 2, 7
# Answers a cell and nodes: posteriors so narrow, and so many nodes, that the derivative of a sum
# over nodes is that of the integral. With one answer a cell and 7 nodes they differ by 1% (4PL).
WEIGHT, MANY_NODES = 20.0, 15


@functools.cache
def problem(family):
    """Responses, items and posteriors in the middle of a fit (float64)."""
    rng = np.random.default_rng(5)
    slope, intercept = rng.normal(0.9, 0.4, (N_ITEMS, DIMS)), rng.normal(0, 1, N_ITEMS)
    guessing, feasibility = np.zeros(N_ITEMS), np.ones(N_ITEMS)
    if family == "4pl":
        guessing, feasibility = rng.uniform(0.1, 0.3, N_ITEMS), rng.uniform(0.8, 0.98, N_ITEMS)
    mean = rng.normal(size=(N_MODELS, DIMS))
    root = rng.normal(0, 0.3, (N_MODELS, DIMS, DIMS))
    spread = root @ root.swapaxes(1, 2) + 0.05 * np.eye(DIMS)
    response = rng.integers(0, 2, (N_MODELS, N_ITEMS))
    response[rng.random(response.shape) < 0.15] = -1
    count = rng.integers(1, 4, N_MODELS).astype(float)
    return response, slope, intercept, guessing, feasibility, mean, spread, count


def _run(family, function):
    """`function(blocks, multiplicity, posteriors, items, populations)` on the mesh."""
    response, slope, intercept, guessing, feasibility, mean, spread, count = problem(family)
    weight = np.full(response.shape, WEIGHT, np.float32)
    data = ResponseMatrix.from_dense(response, weight=weight).transposed()
    mesh = items_mesh()
    blocks, layout = make_blocks(data, n_shards=mesh.size, items_per_block=32)
    order = layout.to_blocks(np.arange(N_MODELS), N_MODELS - 1)
    known = np.column_stack([mean, np.ones(N_MODELS)])[order]
    covariance = packed(np.pad(spread, ((0, 0), (0, 1), (0, 1))))[order]
    posteriors = Posterior(*(jnp.asarray(np.moveaxis(x, 1, -1)) for x in (known, covariance)))
    asymptotes = None
    if family == "4pl":
        asymptotes = Asymptotes.from_natural(jnp.asarray(guessing), jnp.asarray(feasibility))
    items = ItemParameters(jnp.asarray(slope), jnp.asarray(intercept), asymptotes)
    populations = Populations(jnp.zeros((1, DIMS)), jnp.eye(DIMS)[None], jnp.zeros((1, 0)))
    with jax.set_mesh(mesh):
        per_model = place((blocks, jnp.asarray(layout.to_blocks(count)), posteriors), mesh, BLOCKED)
        return jax.jit(function)(*per_model, items, populations)


def _settled_pass(blocks, multiplicity, posteriors, items, populations):
    """The last of some passes: each renews the posteriors by one Newton step."""

    def run(posteriors):
        return variational_pass(blocks, multiplicity, items, populations, posteriors, MANY_NODES)

    settled = jax.lax.fori_loop(0, 20, lambda _, posteriors: run(posteriors)[1], posteriors)
    return run(settled)


def _expected(slope, intercept, guessing, feasibility, j, mean, spread, response):
    """Expected log-likelihood of every cell of item j."""
    centre = mean @ slope[j] + intercept[j]
    variance = np.einsum("k,ikl,l->i", slope[j], spread, slope[j])
    c, d = guessing[j], feasibility[j]
    found = reference.expected_cell(centre, variance, response[:, j], c, d, MANY_NODES)
    return WEIGHT * found[0] * (response[:, j] >= 0)


# ---------------------------------------------------------------------------------------------
# Derivatives


@pytest.mark.oracle
@pytest.mark.parametrize("family", ["2pl", "4pl"])
def test_the_items_score_is_the_gradient_of_the_bound(family):
    response, slope, intercept, guessing, feasibility, _, _, count = problem(family)
    result, renewed = _run(family, _settled_pass)
    # Of the expected log-likelihood at the posteriors that the pass left; KL has no items in it.
    posterior = [
        np.moveaxis(np.asarray(leaf, np.float64), -1, 1)
        for leaf in (renewed.mean, renewed.covariance)
    ]
    posterior = [leaf.reshape(-1, leaf.shape[-1])[:N_MODELS] for leaf in posterior]
    mean, pairs = posterior[0][:, :DIMS], posterior[1]
    spread = pairs[:, [[0, 1], [1, 2]]]
    step = 1e-4
    for j in range(N_ITEMS):

        def value(z, j=j):
            slopes, intercepts = slope.copy(), intercept.copy()
            slopes[j], intercepts[j] = z[:DIMS], z[DIMS]
            cells = _expected(slopes, intercepts, guessing, feasibility, j, mean, spread, response)
            return count @ cells

        z = np.append(slope[j], intercept[j])
        gradient = [(value(z + step * e) - value(z - step * e)) / (2 * step) for e in np.eye(3)]
        score = np.asarray(result.derivatives.gradient)[:, j]
        # Of sums over 2,400 answers. What 15 nodes miss of a 4PL curve is 2e-5 of them.
        quadrature = {"2pl": 1e-5, "4pl": 3e-3}[family]
        np.testing.assert_allclose(score, gradient, atol=max(quadrature, 20 * tolerance("solve")))


@pytest.mark.oracle
@pytest.mark.parametrize("family", ["2pl", "4pl"])
def test_score_products_are_sums_over_models(family):
    response, count = problem(family)[0], problem(family)[-1]
    model = ItemModel(ModelSpec(family, DIMS), Priors())
    found = _run(
        family,
        lambda blocks, multiplicity, posteriors, items, populations: score_products(
            blocks, multiplicity, model, items, populations, posteriors, N_NODES
        ),
    )
    size = DIMS + 1 + 2 * (family == "4pl")
    expected = np.zeros((size, size, N_ITEMS))
    for j in range(N_ITEMS):
        for i in np.flatnonzero(response[:, j] >= 0):
            score = _cell_score(problem(family), i, j, family)
            expected[:, :, j] += count[i] * np.outer(score, score)
    close(found, expected, kind="solve", scale=10)


def _cell_score(given, i, j, family):
    """`E[s_ij]` of one cell: in slopes and intercept, and in the scales of the asymptotes."""
    response, slope, intercept, guessing, feasibility, mean, spread, _ = given
    a, y, c, d = slope[j], response[i, j], guessing[j], feasibility[j]
    variance = a @ spread[i] @ a
    _, first, second, right, wrong = reference.expected_cell(
        np.array([mean[i] @ a + intercept[j]]), variance, y, c, d, N_NODES
    )[:, 0]
    # Stein: E[theta l'] = E[l'] m + Cov(theta, logit) E[l''].
    score = [*(first * mean[i] + second * spread[i] @ a), first]
    if family == "4pl":
        # By Fisher's identity: right or wrong, knowing or not, with d = c + (1 - c) t.
        t = (d - c) / (1 - c)
        of_c = y * (1 - right) / c - (1 - y) * (1 - wrong) / (1 - c)
        of_d = right / d - wrong / (1 - d)
        score += [c * (1 - c) * (of_c + (1 - t) * of_d), (1 - c) * t * (1 - t) * of_d]
    return WEIGHT * np.array(score)


# ---------------------------------------------------------------------------------------------
# Fits


@functools.cache
def short_test():
    """600 models x 20 items, with the fits by fixed nodes and by normal posteriors."""
    drawn = simulate(ModelSpec("2pl"), n_models=600, n_items=20, missing=0.1, seed=4)
    return [
        quiet_fit(drawn.data, estimator="marginal-models", quadrature=quadrature)
        for quadrature in ("fixed", "variational")
    ]


def test_it_agrees_with_fixed_nodes_on_a_short_test():
    exact, normal = short_test()
    assert normal.status == "converged"
    one, two = exact.parameters, normal.parameters
    np.testing.assert_allclose(two.ability, one.ability, atol=0.05)
    np.testing.assert_allclose(two.expected_score, one.expected_score, atol=0.01)
    # A bound is below what it bounds, by 20 nats of 6,000 here.
    gap = exact.report["log_likelihood"] - normal.report["log_likelihood"]
    assert 0 < gap < 30
    assert normal.report["log_likelihood_is"] == "elbo"


def test_its_errors_are_those_of_fixed_nodes():
    exact, normal = (fit.item_parameters() for fit in short_test())
    for name in ("dim1_slope_se", "intercept_se"):
        # The cross-product of each item's scores by itself, against the observed information of
        # all items together: noisier, and with 20 items 5% smaller.
        np.testing.assert_allclose(normal[name], exact[name], rtol=0.25)
        assert 0.92 < np.mean(normal[name] / exact[name]) < 1.02
    one, two = (fit.abilities()["dim1_ability_se"] for fit in short_test())
    np.testing.assert_allclose(two, one, rtol=0.1)


def test_four_dims_are_recovered():
    drawn = simulate(ModelSpec("2pl", 4), n_models=2000, n_items=40, n_benchmarks=4, seed=6)
    fit = quiet_fit(drawn.data, ModelSpec("2pl", 4), estimator="marginal-models")
    assert fit.status == "converged"
    assert fit.report["settings"]["n_nodes"] == N_NODES  # auto: variational
    # Up to a rotation: the truth's slopes explain the estimate's and the other way round.
    slope, intercept = slope_and_intercept(fit)[:2]
    turn = np.linalg.lstsq(slope, drawn.truth.slope, rcond=None)[0]
    np.testing.assert_allclose(turn @ turn.T, np.eye(4), atol=0.2)
    errors = fit.item_parameters().filter(regex="slope_se").to_numpy()
    away = slope @ turn - drawn.truth.slope
    assert np.sqrt(np.mean(away**2)) < 1.3 * np.sqrt(np.mean(errors**2))
    assert np.corrcoef(intercept, drawn.truth.intercept)[0, 1] > 0.99
    ability = fit.parameters.ability @ np.linalg.inv(turn).T
    for k in range(4):
        assert np.corrcoef(ability[:, k], drawn.truth.theta[:, k])[0, 1] > 0.75


# ---------------------------------------------------------------------------------------------
# W1: 12 models, 41,871 items


@pytest.mark.slow
@pytest.mark.shared
def test_on_w1_it_equals_adaptive_quadrature(shared_dir):
    train = problem_w1(shared_dir).train
    exact, normal = (
        quiet_fit(train, estimator="marginal-models", quadrature=quadrature)
        for quadrature in ("adaptive", "variational")
    )
    assert len(np.unique(np.asarray(exact.parameters.ability).round(2))) == 12
    np.testing.assert_allclose(normal.parameters.ability, exact.parameters.ability, atol=0.01)


@pytest.mark.slow
@pytest.mark.shared
def test_on_w1_items_integrated_by_normals_equal_a_dense_grid(shared_dir):
    train = problem_w1(shared_dir).train
    chosen = np.arange(0, train.n_items, 60)
    data = ResponseMatrix.from_dense(train.to_dense()[:, chosen])
    fit = quiet_fit(data, estimator="marginal-items")
    fitted = fit.parameters
    exact = exact_abilities(
        data.to_dense(),
        np.asarray(fitted.ability, np.float64)[:, 0],
        np.asarray(fitted.group_mean, np.float64)[0, 0],
        np.asarray(fitted.group_covariance, np.float64)[0, 0],
    )
    np.testing.assert_allclose(fitted.ability[:, 0], exact, atol=0.01)


def exact_abilities(response, start, mu, sigma):
    """Abilities that maximise the likelihood with the items integrated on a dense grid (float64).

    `sum_j log of the integral over (slope, intercept) ~ N(mu, sigma)`, and the standard normal
    prior of abilities; mean 0 and sd 1 afterwards. 61 x 61 nodes within 5 sd of the principal axes.
    """
    line = np.linspace(-5, 5, 61)
    white = np.stack(np.meshgrid(line, line, indexing="ij"), -1).reshape(-1, 2)
    node = mu + white @ np.linalg.cholesky(sigma).T
    log_weight = multivariate_normal.logpdf(white, np.zeros(2))
    log_weight -= logsumexp(log_weight)
    right, wrong = (response == 1).astype(float), (response == 0).astype(float)

    def objective(theta):
        logit = theta[:, None] * node[:, 0] + node[:, 1]
        log_p = right.T @ log_expit(logit) + wrong.T @ log_expit(-logit) + log_weight
        total = logsumexp(log_p, axis=1)
        share = np.exp(log_p - total[:, None])
        p = expit(logit)
        first = (right @ share) * (1 - p) - (wrong @ share) * p
        gradient = first @ node[:, 0] - theta
        return -(total.sum() - theta @ theta / 2), -gradient

    found = minimize(objective, start, jac=True, method="BFGS", options={"gtol": 1e-4}).x
    return (found - found.mean()) / found.std()

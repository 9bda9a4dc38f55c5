"""W1, 12 models of up to 41,871 items: adaptive quadrature against dense grids in float64."""

import functools

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logit

from benchmarks.problems import problem_w1
from irtjax.data.checks import MISSING
from irtjax.data.responses import ResponseMatrix
from irtjax.fit.api import fit
from irtjax.model.spec import ModelSpec
from tests.fit.fitting import quiet_fit
from tests.tolerances import close

pytestmark = pytest.mark.shared

# Every so many items of W1: few enough that a general optimiser finds the maximum.
EVERY = 60
# The default prior of slopes with few models, and the intercepts'.
LOG_SLOPE_SD, INTERCEPT_SD = 0.5, 10.0


@functools.cache
def w1(shared):
    return problem_w1(shared).train


@functools.cache
def fitted_w1(shared):
    return quiet_fit(w1(shared), estimator="marginal-models", quadrature="adaptive")


@functools.cache
def fitted_part(shared):
    """A sixtieth of W1's items, and its fit."""
    part = ResponseMatrix.from_dense(w1(shared).to_dense()[:, ::EVERY])
    return part, quiet_fit(part, estimator="marginal-models", quadrature="adaptive")


def slopes_and_intercepts(result):
    mean = np.asarray(result.parameters.mean[:, 0], np.float64)
    return mean[:, 0], mean[:, 1]


def expected_abilities(responses, slope, intercept):
    """EAP of each model by grids that close in on its posterior, and its standard deviation."""
    means, sds = [], []
    for row in responses:
        seen = row >= 0
        right, a, b = row[seen].astype(float), slope[seen], intercept[seen]
        low, high = -8.0, 8.0
        for n_nodes in (65, 65, 201):
            node = np.linspace(low, high, n_nodes)
            z = np.outer(node, a) + b
            density = z @ right - np.logaddexp(0, z).sum(axis=1) - 0.5 * node**2
            weight = np.exp(density - density.max())
            weight /= weight.sum()
            mean = weight @ node
            sd = np.sqrt(weight @ (node - mean) ** 2)
            reach = 8 * sd + 2 * (node[1] - node[0])
            low, high = mean - reach, mean + reach
        means.append(mean)
        sds.append(sd)
    return np.array(means), np.array(sds)


def maximum(responses, sign):
    """Abilities where the penalised marginal likelihood of the 2PL is highest, on a dense grid."""
    node = np.linspace(-6, 6, 241)  # posteriors have sd .13 and more: the sums are exact
    log_weight = -0.5 * node**2
    log_weight = log_weight - np.log(np.exp(log_weight).sum())
    right, seen = (responses == 1).astype(float), (responses >= 0).astype(float)
    n = responses.shape[1]

    def posteriors(slope, intercept):
        z = np.outer(slope, node) + intercept[:, None]
        joint = right @ z - seen @ np.logaddexp(0, z) + log_weight
        top = joint.max(axis=1, keepdims=True)
        total = np.exp(joint - top).sum(axis=1, keepdims=True)
        return z, np.exp(joint - top) / total, np.sum(np.log(total) + top)

    def cost(place):
        slope, intercept = sign * np.exp(place[:n]), place[n:]
        z, weight, value = posteriors(slope, intercept)
        away = right.T @ weight - (seen.T @ weight) * expit(z)
        sd = np.repeat([LOG_SLOPE_SD, INTERCEPT_SD], n)
        gradient = np.concatenate([(away @ node) * slope, away.sum(axis=1)])
        return 0.5 * np.sum((place / sd) ** 2) - value, place / sd**2 - gradient

    share = (right.sum(axis=0) + 0.5) / (seen.sum(axis=0) + 1)
    start = np.concatenate([np.zeros(n), logit(share)])
    settings = {"maxiter": 3000, "maxfun": 4000, "maxcor": 30, "ftol": 1e-15, "gtol": 1e-5}
    found = minimize(cost, start, jac=True, method="L-BFGS-B", options=settings)
    assert np.abs(found.jac).max() < 1e-4
    slope, intercept = sign * np.exp(found.x[:n]), found.x[n:]
    return posteriors(slope, intercept)[1] @ node, slope, intercept, -found.fun


def test_w1_has_twelve_different_abilities(shared_dir):
    result = fitted_w1(shared_dir)
    assert result.status == "converged"
    assert result.report["settings"]["n_nodes"] == 15
    ability = np.sort(result.parameters.ability[:, 0])
    error = np.sqrt(result.parameters.ability_covariance[:, 0, 0])
    assert len(ability) == 12
    # Differences are of models, not of rounding.
    assert np.diff(ability).min() > 0.005
    assert np.all((error > 0.003) & (error < 0.1))


def test_abilities_of_w1_are_those_of_a_dense_grid(shared_dir):
    result = fitted_w1(shared_dir)
    mean, sd = expected_abilities(w1(shared_dir).to_dense(), *slopes_and_intercepts(result))
    np.testing.assert_allclose(result.parameters.ability[:, 0], mean, atol=1e-3)
    error = np.sqrt(result.parameters.ability_covariance[:, 0, 0])
    # The errors of 41,871 items from 12 models come on top of the posteriors'.
    assert np.all(error > 0.98 * sd)


@pytest.mark.oracle
def test_the_estimator_is_the_maximum_on_a_dense_grid(shared_dir):
    part, result = fitted_part(shared_dir)
    assert result.status == "converged"
    slope, intercept = slopes_and_intercepts(result)
    ability, best_slope, best_intercept, value = maximum(part.to_dense(), np.sign(slope))
    is_float32 = result.parameters.ability.dtype == np.float32
    bound = 0.002 if is_float32 else 0.001
    np.testing.assert_allclose(result.parameters.ability[:, 0], ability, atol=bound)
    np.testing.assert_allclose(slope, best_slope, atol=5 * bound)
    np.testing.assert_allclose(intercept, best_intercept, atol=5 * bound)
    np.testing.assert_allclose(result.report["trace"]["objective"][-1], value, rtol=1e-6)


@pytest.mark.oracle
def test_abilities_given_the_items_are_exact(shared_dir):
    part, result = fitted_part(shared_dir)
    mean, _ = expected_abilities(part.to_dense(), *slopes_and_intercepts(result))
    np.testing.assert_allclose(result.parameters.ability[:, 0], mean, atol=1e-4)


def test_fixed_nodes_confuse_the_models_of_w1(shared_dir):
    """Why the nodes go with the models: at the fitted items 61 fixed nodes tell fewer apart."""
    slope, intercept = slopes_and_intercepts(fitted_w1(shared_dir))
    node = np.linspace(-6, 6, 61)
    responses = w1(shared_dir).to_dense()
    z = np.outer(node, slope) + intercept
    log_p, log_not_p = -np.logaddexp(0, -z), -np.logaddexp(0, z)
    joint = (responses == 1) @ log_p.T + (responses == 0) @ log_not_p.T - 0.5 * node**2
    weight = np.exp(joint - joint.max(axis=1, keepdims=True))
    mean = (weight @ node) / weight.sum(axis=1)
    assert len(np.unique(np.round(mean, 2))) < 12


def test_auto_takes_nodes_of_each_models_own_where_posteriors_are_narrow(shared_dir):
    result = fitted_part(shared_dir)[1]
    answers = w1(shared_dir).to_dense()[:, ::EVERY]
    again = fit(ResponseMatrix.from_dense(answers), ModelSpec("2pl"), estimator="marginal-models")
    assert again.report["item_errors"] == "complete-data"
    close(again.parameters.ability, result.parameters.ability, kind="fit")
    assert np.count_nonzero(answers != MISSING, axis=1).max() > 400

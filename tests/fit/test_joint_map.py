"""`joint-map` against a constrained float64 optimiser; its errors; what it does without priors."""

import dataclasses

import numpy as np
import pytest
from jax import dtypes
from scipy.optimize import minimize

from irtjax.data.responses import ResponseMatrix
from irtjax.errors import InputError
from irtjax.fit.joint_map import joint_priors
from irtjax.model.priors import LogNormal, Normal, Priors
from irtjax.model.spec import ModelSpec
from tests.fit.fitting import quiet_fit

N_MODELS, N_ITEMS = 9, 8
FAMILIES = {
    "1pl": ModelSpec("1pl"),
    "2pl": ModelSpec("2pl"),
    "2pl-2d": ModelSpec("2pl", 2),
    "3pl": ModelSpec("3pl"),
    "4pl": ModelSpec("4pl"),
}


def responses(seed=5):
    """Fractions with weights, NaN where missing; model 2 is all right."""
    rng = np.random.default_rng(seed)
    ability, slope = rng.normal(size=(N_MODELS, 2)), rng.normal(0.9, 0.5, (N_ITEMS, 2))
    p = 1 / (1 + np.exp(-(ability @ slope.T + rng.normal(size=N_ITEMS))))
    weight = rng.integers(1, 5, p.shape)
    response = rng.binomial(weight, p) / weight
    response[2] = 1
    response[rng.random(p.shape) < 0.1] = np.nan
    return response, weight.astype(float)


class Reference:
    """The joint log-posterior as a function of one vector, complex-step derivatives, SLSQP."""

    def __init__(self, spec, priors, response, weight, sign):
        self.spec, self.priors = spec, priors
        # Under a lognormal prior slopes enter by their logarithm, with the signs of their start.
        self.sign = sign if isinstance(priors.of_slopes(spec), LogNormal) else None
        self.right = np.where(np.isnan(response), 0, weight * response)
        self.wrong = np.where(np.isnan(response), 0, weight * (1 - response))
        self.n_models, self.n_items = response.shape
        seen, all_right = self.right + self.wrong, self.wrong.sum(axis=1) == 0
        self.inside = (seen.sum(axis=1) > 0) & ~all_right & (self.right.sum(axis=1) > 0)

    def parts(self, x):
        """Abilities, slopes, intercepts, guessing, feasibility."""
        dims, spec = self.spec.dims, self.spec
        n_slopes = 1 if spec.has_common_slope else self.n_items
        sizes = [self.n_models * dims, n_slopes * dims, self.n_items]
        sizes += [self.n_items * spec.has_guessing, self.n_items * spec.has_feasibility]
        ability, slope, intercept, lower, upper = np.split(x, np.cumsum(sizes)[:-1])
        slope = slope.reshape(n_slopes, dims) * np.ones((self.n_items, 1))
        slope = slope if self.sign is None else np.exp(slope) * self.sign
        c = 1 / (1 + np.exp(-lower)) if spec.has_guessing else np.zeros(self.n_items)
        d = c + (1 - c) / (1 + np.exp(-upper)) if spec.has_feasibility else np.ones(self.n_items)
        return ability.reshape(self.n_models, dims), slope, intercept, c, d

    def probability(self, x):
        ability, slope, intercept, c, d = self.parts(x)
        return c + (d - c) / (1 + np.exp(-(ability @ slope.T + intercept)))

    def objective(self, x):
        ability, slope, intercept, c, d = self.parts(x)
        # The line search tries points from where 1 - P rounds to 0.
        p = self.probability(x)
        p = p + 1e-15 * (0.5 - p)
        total = np.sum(self.right * np.log(p) + self.wrong * np.log(1 - p))
        prior, level = self.priors.of_slopes(self.spec), self.priors.of_intercepts()
        slope = slope[:1] if self.spec.has_common_slope else slope
        place = slope if self.sign is None else np.log(slope * self.sign)
        total -= 0.5 * np.sum(((place - prior.mean) / prior.sd) ** 2) + 0.5 * np.sum(ability**2)
        total -= 0.5 * np.sum(((intercept - level.mean) / level.sd) ** 2)
        if self.spec.has_guessing:
            a, b = self.priors.guessing
            total += np.sum((a - 1) * np.log(c) + (b - 1) * np.log(1 - c))
        if self.spec.has_feasibility:
            a, b = self.priors.infeasibility
            total += np.sum((a - 1) * np.log(1 - d) + (b - 1) * np.log(d))
        return total

    def frame(self, x):
        """0 where the abilities inside have mean 0 and covariance I."""
        inside = self.parts(x)[0][self.inside]
        covariance = inside.T @ inside / len(inside) - np.eye(self.spec.dims)
        return np.append(inside.mean(axis=0), covariance[np.tril_indices(self.spec.dims)])

    @staticmethod
    def gradient(function, x):
        """By the complex step: exact to the last digits."""
        steps = 1e-30j * np.eye(len(x))
        return np.stack([np.imag(function(x + step)) for step in steps], axis=-1) / 1e-30

    def maximum(self, start):
        return minimize(
            lambda x: -self.objective(x),
            start,
            jac=lambda x: -self.gradient(self.objective, x),
            constraints={
                "type": "eq",
                "fun": self.frame,
                "jac": lambda x: self.gradient(self.frame, x),
            },
            method="SLSQP",
            options={"maxiter": 1000, "ftol": 1e-14},
        ).x

    def start(self):
        """Abilities by row sums (and a second direction), slopes 1, asymptotes by their priors."""
        seen = np.maximum(self.right + self.wrong, 1)
        sums = np.stack([(self.right / seen).sum(axis=1), (self.right / seen)[:, 0]], axis=1)
        ability = sums[:, : self.spec.dims]
        inside = ability[self.inside]
        whiten = np.linalg.inv(
            np.linalg.cholesky(np.cov(inside.T, bias=True).reshape(self.spec.dims, self.spec.dims))
        )
        ability = (ability - inside.mean(axis=0)) @ whiten.T
        slopes = np.ones((1 if self.spec.has_common_slope else self.n_items) * self.spec.dims)
        slopes = slopes if self.sign is None else 0 * slopes
        more = [np.full(self.n_items, -1.3)] * self.spec.has_guessing
        more += [np.full(self.n_items, 2.0)] * self.spec.has_feasibility
        return np.concatenate([ability.ravel(), slopes, np.zeros(self.n_items), *more])


def everything(fit):
    """Predicted probabilities of all cells."""
    models, items = np.divmod(np.arange(fit.data.n_models * fit.data.n_items), fit.data.n_items)
    return fit.predict_cells(models, items).reshape(fit.data.n_models, fit.data.n_items)


@pytest.mark.oracle
@pytest.mark.parametrize("family", list(FAMILIES))
def test_it_is_the_maximum_of_the_joint_posterior_in_the_frame(family):
    spec = FAMILIES[family]
    response, weight = responses()
    data = ResponseMatrix.from_dense(response, weight=weight)
    fit = quiet_fit(data, spec, estimator="joint-map")
    is_double = dtypes.canonicalize_dtype(float) == np.float64
    # In float32 items with asymptotes wander where nine models leave the objective flat: which of
    # the 3PL and 4PL stall depends on the order of sums.
    assert fit.status == "converged" or (spec.has_asymptotes and not is_double)
    sign = np.sign(fit.item_parameters()[["dim1_slope"]].to_numpy())
    reference = Reference(spec, joint_priors(Priors(), spec), response, weight, sign)
    best = reference.maximum(reference.start())
    np.testing.assert_allclose(
        fit.report["log_likelihood"], reference.objective(best), atol=1e-6 if is_double else 1e-3
    )
    # Probabilities do not depend on the frame (the model that is all right lies outside it); the
    # abilities may have 1e-4 to go.
    np.testing.assert_allclose(
        everything(fit), reference.probability(best), atol=1e-4 if is_double else 2e-3
    )
    objective = fit.report["trace"]["objective"]
    assert np.all(np.diff(objective) > -1e-5 * abs(objective[-1]))


@pytest.mark.oracle
def test_errors_are_the_inverse_information_given_the_other_side():
    response, weight = responses()
    fit = quiet_fit(ResponseMatrix.from_dense(response, weight=weight), estimator="joint-map")
    assert fit.report["item_errors"] == "conditional"
    assert fit.report["priors"]["slope"] == "normal(1, 1)"
    items, models = fit.item_parameters(), fit.abilities()
    theta, slope = models.dim1_ability.to_numpy(), items.dim1_slope.to_numpy()
    p = everything(fit)
    information = np.where(np.isnan(response), 0, weight) * p * (1 - p)
    # In the loop's frame the model that is all right is outside, and 1 is the prior's precision.
    inside = np.arange(N_MODELS) != 2
    unit = theta[inside].std()
    expected = 1 / np.sqrt(information @ slope**2 + 1 / unit**2)
    np.testing.assert_allclose(models.dim1_ability_se, expected, rtol=2e-3)
    for j in range(N_ITEMS):
        design = np.stack([(theta - theta[inside].mean()) / unit, np.ones(N_MODELS)], axis=1)
        precision = design.T @ (information[:, j, None] * design) + np.diag([1, 1 / 4])
        back = np.array([[1 / unit, 0], [-theta[inside].mean() / unit, 1]])
        expected = np.sqrt(np.diag(back @ np.linalg.inv(precision) @ back.T))
        np.testing.assert_allclose(
            [items.dim1_slope_se[j], items.intercept_se[j]], expected, rtol=2e-3
        )


@pytest.mark.parametrize("family", ["2pl", "4pl"])
def test_without_priors_unbounded_items_are_finite_and_flagged(family):
    rng = np.random.default_rng(0)
    theta = rng.normal(size=30)
    dense = (rng.random((30, 20)) < 1 / (1 + np.exp(-theta[:, None]))).astype(int)
    # All right, all wrong, and one that splits the models by their ability without a fault.
    dense[:, 0], dense[:, 1], dense[:, 2] = 1, 0, np.argsort(np.argsort(theta)) >= 15
    # The models by the item that splits them must be those of the other items too.
    order = np.argsort(dense[:, 3:].sum(axis=1), kind="stable")
    dense[order, 2] = np.arange(30) >= 15
    data = ResponseMatrix.from_dense(dense)
    fit = quiet_fit(data, FAMILIES[family], estimator="joint-map", priors=Priors.off())
    items, models = fit.item_parameters(), fit.abilities()
    numbers = items.filter(regex="slope|intercept|guessing|feasibility")
    assert np.isfinite(numbers.to_numpy()).all()
    assert np.isfinite(models.filter(regex="ability(_se)?$").to_numpy()).all()
    flagged = items["flags"].str.contains("unbounded")
    assert flagged[0]
    assert flagged[1]
    assert fit.report["priors"]["slope"] == "off"
    assert items.intercept.abs().max() <= 60
    if family == "2pl":
        with_priors = quiet_fit(data, FAMILIES[family], estimator="joint-map")
        assert not with_priors.item_parameters()["flags"].str.contains("unbounded").any()
        # Maximum likelihood fits its own cells better than the penalised fit.
        assert _log_likelihood(fit, dense) > _log_likelihood(with_priors, dense)


def _log_likelihood(fit, dense):
    p = everything(fit)
    return np.sum(np.log(np.where(dense == 1, p, 1 - p)))


def test_defaults_of_the_priors_are_filled_in_and_given_ones_kept():
    assert joint_priors(Priors(), ModelSpec("2pl")).slope == Normal(1, 1)
    assert joint_priors(Priors(), ModelSpec("2pl", 3)).slope == Normal(0, 1)
    assert joint_priors(Priors(), ModelSpec("3pl")).slope == LogNormal(0, 0.5)
    assert joint_priors(Priors(), ModelSpec()).intercept == Normal(0, 2)
    given = Priors(slope=Normal(0, 3), intercept=Normal(0, 10))
    assert joint_priors(given, ModelSpec()) == given
    assert joint_priors(Priors.off(), ModelSpec()) == Priors.off()


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"nodes": 21}, "no nodes"),
        ({"item_distribution": "mixture"}, "an item distribution does not go with .* joint-map"),
        ({"starts": 3}, "starts=3 does not go with estimator joint-map"),
    ],
)
def test_settings_that_it_does_not_have_are_refused(settings, message):
    data = ResponseMatrix.from_dense([[0, 1], [1, 0], [1, 1]])
    with pytest.raises(InputError, match=message):
        quiet_fit(data, estimator="joint-map", **settings)


def test_lognormal_slopes_in_two_dims_are_refused():
    data = ResponseMatrix.from_dense(np.eye(4, dtype=int))
    priors = dataclasses.replace(Priors(), slope=LogNormal())
    with pytest.raises(InputError, match="turns 2 dims; use a normal one"):
        quiet_fit(data, ModelSpec("2pl", 2), estimator="joint-map", priors=priors)


@pytest.mark.oracle
def test_the_common_slope_has_the_error_of_all_items_together():
    rng = np.random.default_rng(2)
    ability, intercept = rng.normal(size=40), rng.normal(0, 1, 25)
    p = 1 / (1 + np.exp(-0.8 * ability[:, None] - intercept))
    matrix = ResponseMatrix.from_dense((rng.random(p.shape) < p).astype(float))
    fit = quiet_fit(matrix, ModelSpec("1pl"), estimator="joint-map")
    items, theta = fit.item_parameters(), fit.abilities()["dim1_ability"].to_numpy()
    slope = items["dim1_slope"].to_numpy()
    p = 1 / (1 + np.exp(-theta[:, None] * slope - items["intercept"].to_numpy()))
    weight = p * (1 - p)
    priors = joint_priors(Priors(), ModelSpec("1pl"))
    information = np.zeros((26, 26))
    information[0, 0] = np.sum(weight * theta[:, None] ** 2)
    information[0, 0] += 1 / priors.of_slopes(ModelSpec("1pl")).sd ** 2
    information[0, 1:] = information[1:, 0] = np.sum(weight * theta[:, None], axis=0)
    # The intercepts' prior stands in what the fit says of them: its precision is recovered there.
    information[1:, 1:] = np.diag(weight.sum(axis=0) + 1 / priors.intercept.sd**2)
    expected = np.sqrt(np.diagonal(np.linalg.inv(information)))
    np.testing.assert_allclose(items["dim1_slope_se"], expected[0], rtol=0.02)
    np.testing.assert_allclose(items["intercept_se"], expected[1:], rtol=0.02)

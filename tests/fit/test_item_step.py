"""Derivatives and steps of items that are estimated, against NumPy."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from irtjax.fit import item_step
from irtjax.fit.item_step import ExpectedCounts, ItemModel
from irtjax.fit.packed import unpack
from irtjax.model.priors import LogNormal, Normal, Priors
from irtjax.model.spec import ModelSpec
from tests.fit import models_reference as reference
from tests.fit.models_bridge import coordinates, item_parameters
from tests.tolerances import close

N_ITEMS, N_NODES = 6, 15
SLOPES = {"normal": Normal(0.3, 2.0), "lognormal": LogNormal(0.1, 0.5)}
KINDS = [
    (family, dims, prior)
    for family in ("1pl", "2pl", "3pl", "4pl")
    for dims in (1, 2)
    for prior in SLOPES
    if (family, dims) != ("1pl", 2)
]


derivatives = jax.jit(item_step.item_derivatives, static_argnums=0)
prior_derivatives = jax.jit(item_step.prior_derivatives, static_argnums=0)
climb = jax.jit(item_step.climb_items, static_argnums=(0, 3))


@dataclasses.dataclass
class Case:
    """Random items with random counts at random nodes."""

    model: ItemModel
    items: np.ndarray
    node: np.ndarray
    right: np.ndarray
    wrong: np.ndarray

    @property
    def family(self):
        return self.model.spec.family

    @property
    def dims(self):
        return self.model.spec.dims

    @property
    def parameters(self):
        return item_parameters(self.family, self.items, self.dims)

    @property
    def counts(self):
        return ExpectedCounts(*(jnp.asarray(v) for v in (self.node, self.right, self.wrong)))

    def value(self, items, right=None, wrong=None):
        """Sum of the items' expected log-likelihoods."""
        right = self.right if right is None else right
        wrong = self.wrong if wrong is None else wrong
        found = reference.expected_log_likelihood(self.family, items, self.node, right, wrong)
        return np.sum(found)

    def prior(self, items):
        """Sum of the items' log-priors."""
        priors = self.model.priors
        slope = priors.slope
        return np.sum(
            reference.log_prior(
                self.family,
                items,
                self.dims,
                (slope.mean, slope.sd),
                (priors.intercept.mean, priors.intercept.sd),
                priors.guessing,
                priors.infeasibility,
                self.model.has_log_slopes,
            )
        )

    def on_steps_scale(self, function):
        """`function(items)` of the coordinates that the steps move, and where these are now."""
        if not self.model.has_log_slopes:
            return function, self.items
        sign = np.sign(self.items[: self.dims])
        place = self.items.copy()
        place[: self.dims] = np.log(np.abs(place[: self.dims]))

        def moved(place):
            return function(np.concatenate([sign * np.exp(place[: self.dims]), place[self.dims :]]))

        return moved, place


def name_of(kind):
    return f"{kind[0]}-{kind[1]}d-{kind[2]}"


@pytest.fixture(params=KINDS, ids=name_of)
def case(request):
    return random_case(*request.param)


def random_case(family, dims, prior):
    rng = np.random.default_rng(5)
    priors = Priors(guessing=(5, 17), infeasibility=(2, 18), slope=SLOPES[prior])
    priors = dataclasses.replace(priors, intercept=Normal(-0.2, 3.0))
    model = ItemModel(ModelSpec(family, dims), priors)
    return Case(
        model,
        reference.random_items(rng, family, dims, N_ITEMS),
        rng.normal(0, 1.5, (N_NODES, dims)),
        rng.uniform(0, 20, (N_ITEMS, N_NODES)),
        rng.uniform(0, 20, (N_ITEMS, N_NODES)),
    )


def within_items(matrix, n_coordinates):
    """Blocks of each item from coordinates-and-items twice: coordinates, coordinates, items."""
    full = matrix.reshape(n_coordinates, N_ITEMS, n_coordinates, N_ITEMS)
    return np.einsum("ajbj->abj", full)


@pytest.mark.oracle
def test_gradient_of_the_expected_log_likelihood(case):
    found = derivatives(case.model, case.parameters, case.counts)
    expected = reference.gradient(*case.on_steps_scale(case.value))
    close(found.gradient, expected, kind="solve", scale=10)


@pytest.mark.oracle
def test_information_is_the_expected_hessian(case):
    """With counts as the curves expect them, minus the Hessian is Fisher's information."""
    found = derivatives(case.model, case.parameters, case.counts)
    n = case.model.n_coordinates
    information = np.asarray(unpack(found.information, n), np.float64)
    cells = case.right + case.wrong
    p = reference.curves(case.family, case.items, case.node)
    value, place = case.on_steps_scale(lambda items: case.value(items, cells * p, cells * (1 - p)))
    expected = -within_items(reference.hessian(value, place), n)
    np.testing.assert_allclose(information, expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())
    assert np.linalg.eigvalsh(np.moveaxis(information, 2, 0)).min() > 0


@pytest.mark.oracle
def test_log_prior(case):
    found = jnp.sum(item_step.log_prior(case.model, case.parameters))
    expected = case.prior(case.items)
    if case.model.spec.has_common_slope:
        # One parameter, one prior: the reference counts it for every item.
        one = case.items[:, :1]
        expected = case.prior(case.items) - (N_ITEMS - 1) * slope_part(case, one)
    close(found, expected, kind="reduction")


def slope_part(case, items):
    """Log-prior of one item's slopes alone."""
    moved = items.copy()
    moved[case.dims :] = 0
    none = (0.0, np.inf)
    slope = case.model.priors.slope
    return reference.log_prior(
        "2pl", moved, case.dims, (slope.mean, slope.sd), none, None, None, case.model.has_log_slopes
    )[0]


@pytest.mark.oracle
def test_gradient_of_the_priors(case):
    found = prior_derivatives(case.model, case.parameters)
    expected = reference.gradient(*case.on_steps_scale(case.prior))
    close(found.gradient, expected, kind="solve", scale=10)


@pytest.mark.oracle
def test_information_of_the_priors(case):
    found = prior_derivatives(case.model, case.parameters)
    n = case.model.n_coordinates
    information = np.asarray(unpack(found.information, n), np.float64)
    assert np.linalg.eigvalsh(np.moveaxis(information, 2, 0)).min() > -1e-6
    hessian = reference.hessian(*case.on_steps_scale(case.prior))
    # Only the curvature of feasibility's prior is replaced by one that is positive.
    exact = n - case.model.spec.has_feasibility * 2
    np.testing.assert_allclose(
        information[:exact, :exact],
        -within_items(hessian, n)[:exact, :exact],
        rtol=1e-5,
        atol=1e-5,
    )


@pytest.mark.oracle
def test_probabilities_at_the_nodes(case):
    p, not_p = item_step.node_probabilities(case.parameters, case.counts.node)
    expected = reference.curves(case.family, case.items, case.node)
    close(np.log(p), np.log(expected), kind="reduction")
    close(np.log(not_p), np.log(1 - expected), kind="reduction")


@pytest.mark.oracle
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind[1] == 1], ids=name_of)
def test_steps_climb_to_the_maximum(kind):
    case = random_case(*kind)
    climbed = climb(case.model, case.parameters, case.counts, 300)
    found = coordinates(case.family, climbed)
    if case.model.spec.has_common_slope:
        assert np.ptp(found[: case.dims], axis=1).max() < 1e-5
    top = dataclasses.replace(case, items=found)
    total, place = top.on_steps_scale(lambda items: top.value(items) + top.prior(items))
    gradient = reference.gradient(total, place)
    if case.model.spec.has_common_slope:
        prior, _ = top.on_steps_scale(top.prior)
        extra = reference.gradient(prior, place)[: case.dims] * (1 - 1 / N_ITEMS)
        gradient[: case.dims] = np.sum(gradient[: case.dims] - extra, axis=1, keepdims=True)
    # Of up to 300 answers an item: in float32 a gain below the last digit of 300 nats is not seen.
    assert np.abs(gradient).max() < (0.2 if climbed.slope.dtype == np.float32 else 1e-4)


@pytest.mark.oracle
def test_a_pinned_slope_stays_at_zero():
    rng = np.random.default_rng(6)
    is_loading = np.array([[1, 0], [0, 1], [1, 1]])
    items = reference.random_items(rng, "2pl", 2, 3)
    items[:2] *= is_loading.T
    model = ItemModel(ModelSpec("2pl", 2), Priors())
    counts = ExpectedCounts(
        jnp.asarray(rng.normal(size=(N_NODES, 2))),
        *(jnp.asarray(rng.uniform(0, 9, (3, N_NODES))) for _ in range(2)),
    )
    start = item_parameters("2pl", items, 2)
    mask = jnp.asarray(is_loading, start.slope.dtype)
    climbed = climb(model, start, counts, 5, mask)
    assert np.all(np.asarray(climbed.slope)[is_loading == 0] == 0)
    # The others move as if the item had no other slope.
    alone = climb(
        ItemModel(ModelSpec("2pl", 1), Priors()),
        item_parameters("2pl", items[[0, 2], :1], 1),
        ExpectedCounts(counts.node[:, :1], counts.right[:1], counts.wrong[:1]),
        5,
    )
    close(climbed.slope[0, 0], alone.slope[0, 0], kind="solve")


def test_an_item_without_answers_goes_to_its_prior():
    model = ItemModel(ModelSpec("2pl"), Priors(slope=Normal(0.7, 0.5), intercept=Normal(0.4, 2)))
    items = item_parameters("2pl", np.array([[2.0], [-1.0]]), 1)
    nothing = jnp.zeros((1, N_NODES))
    counts = ExpectedCounts(jnp.linspace(-3, 3, N_NODES)[:, None], nothing, nothing)
    climbed = climb(model, items, counts, 5)
    np.testing.assert_allclose(climbed.slope, [[0.7]], rtol=1e-4)
    np.testing.assert_allclose(climbed.intercept, [0.4], rtol=1e-4)

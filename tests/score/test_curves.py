"""Mean curves, their derivatives and their likelihoods: against dense quadrature in float64."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import expit

from irtjax.model.response import Asymptotes
from irtjax.score.cells import Answers
from irtjax.score.curves import CurveItems, bends, curve, curve_slopes
from irtjax.score.likelihood import likelihood_parts, log_likelihoods
from irtjax.score.posterior import standard_nodes
from tests.tolerances import tolerance

N_ITEMS, DIMS = 16, 2
HERMITE = np.polynomial.hermite_e.hermegauss(120)


def _items(sd, *, has_asymptotes=False, n_components=1, seed=0):
    """Items all models meet, with correlated posteriors of slopes and intercept."""
    rng = np.random.default_rng(seed)
    shape = (n_components, 1, N_ITEMS)
    mean = np.concatenate(
        [rng.lognormal(0, 0.4, (*shape, DIMS)), rng.normal(0, 1.5, (*shape, 1))], axis=-1
    )
    factor = sd * rng.normal(size=(*shape, DIMS + 1, DIMS + 1)) / np.sqrt(DIMS + 1)
    covariance = factor @ np.swapaxes(factor, -1, -2)
    rows, columns = np.tril_indices(DIMS + 1)
    share = rng.dirichlet(np.ones(n_components), (1, N_ITEMS)).transpose(2, 0, 1)
    asymptotes = None
    if has_asymptotes:
        guessing = rng.uniform(0.05, 0.3, (1, N_ITEMS))
        asymptotes = Asymptotes.from_natural(guessing, rng.uniform(0.9, 0.99, (1, N_ITEMS)))
    leaves = (mean, covariance[..., rows, columns], share)
    return CurveItems(
        *(jnp.asarray(leaf, float) for leaf in leaves),
        asymptotes,
        jnp.zeros((1, N_ITEMS), jnp.int32),
        sd > 0,
    )


def _latent(n_models=7, seed=1):
    return jnp.asarray(np.random.default_rng(seed).normal(0, 1.2, (n_models, DIMS)), float)


def _dense(items, latent, shift=0.0):
    """P of every cell, float64."""
    x = np.concatenate([np.asarray(latent, np.float64), np.ones((len(latent), 1))], axis=1)
    mean, packed = (np.asarray(part, np.float64) for part in (items.mean, items.covariance))
    full = np.zeros((*mean.shape, DIMS + 1))
    rows, columns = np.tril_indices(DIMS + 1)
    full[..., rows, columns] = full[..., columns, rows] = packed
    centre = np.einsum("crnk,mk->cmn", mean, x) + shift
    sd = np.sqrt(np.einsum("mk,crnkl,ml->cmn", x, full, x))
    node, weight = HERMITE[0], HERMITE[1] / np.sqrt(2 * np.pi)
    s = sum(w * expit(centre + z * sd) for z, w in zip(node, weight, strict=True))
    s = np.einsum("cmn,crn->mn", s, np.asarray(items.share, np.float64))
    if items.asymptotes is None:
        return s
    low, high = (
        np.asarray(part, np.float64)
        for part in (items.asymptotes.guessing, items.asymptotes.feasibility)
    )
    return low + (high - low) * s


@pytest.mark.oracle
@pytest.mark.parametrize(
    "sd, bound, options",
    [
        (0.0, 0.0, {}),
        (0.4, 5e-6, {}),
        (0.4, 5e-6, {"has_asymptotes": True, "n_components": 2}),
        (0.8, 1e-3, {}),
    ],
)
def test_the_mean_curve_is_the_integral(sd, bound, options):
    items, latent = _items(sd, **options), _latent()
    shift = jnp.linspace(-2, 2, N_ITEMS)[None] * jnp.ones((len(latent), 1))
    p, not_p = curve(items, latent, shift)
    expected = _dense(items, latent, np.asarray(shift, np.float64))
    atol = bound + tolerance("reduction")
    np.testing.assert_allclose(p, expected, rtol=0, atol=atol)
    np.testing.assert_allclose(not_p, 1 - expected, rtol=0, atol=atol)


@pytest.mark.oracle
@pytest.mark.parametrize("sd", [0.0, 0.6])
def test_derivatives_are_those_of_the_curve(sd):
    items, latent = _items(sd, has_asymptotes=True, n_components=2), _latent()
    shift = jnp.linspace(-1, 1, N_ITEMS)[None] * jnp.ones((len(latent), 1))

    def right(at, moved):
        return curve(items, at[None], moved[None])[0][0]

    def each(function):
        return jax.vmap(function)(latent, shift)

    found = curve_slopes(items, latent, shift)
    by_latent = each(jax.jacfwd(right))
    by_shift = each(lambda at, moved: jnp.diagonal(jax.jacfwd(right, 1)(at, moved)))
    ones = jnp.ones(N_ITEMS)
    twice = each(
        lambda at, moved: jax.jvp(
            lambda m: jax.jvp(lambda k: right(at, k), (m,), (ones,))[1], (moved,), (ones,)
        )[1]
    )
    atol = 10 * tolerance("reduction")
    np.testing.assert_allclose(found.p, curve(items, latent, shift)[0], rtol=0, atol=atol)
    np.testing.assert_allclose(np.moveaxis(found.by_latent, 0, 2), by_latent, rtol=0, atol=atol)
    np.testing.assert_allclose(found.by_shift, by_shift, rtol=0, atol=atol)
    np.testing.assert_allclose(found.by_shift_twice, twice, rtol=0, atol=atol)
    metric = jnp.asarray([[0.7, -0.2], [-0.2, 0.4]], float) * jnp.ones((len(latent), 1, 1))
    hessian = each(jax.hessian(right))
    bent = np.einsum("mkl,mnkl->mn", metric, hessian)
    np.testing.assert_allclose(bends(items, latent, shift, metric), bent, rtol=0, atol=5 * atol)


@pytest.mark.oracle
@pytest.mark.parametrize("options", [{}, {"has_asymptotes": True}, {"n_components": 2}])
def test_parts_sum_to_the_likelihood_of_all_answers(options):
    items, latent = _items(0.5, **options), _latent()
    shift = jnp.zeros((len(latent), N_ITEMS), latent.dtype)
    rng = np.random.default_rng(2)
    response = rng.integers(0, 2, shift.shape)
    weight = rng.integers(0, 2, shift.shape)
    p = _dense(items, latent)
    expected = np.sum(weight * np.log(np.where(response == 1, p, 1 - p)), axis=1)
    given = [jnp.asarray(part, latent.dtype) for part in (response, weight)]
    for is_plain, function in itertools.product((True, False), (likelihood_parts, log_likelihoods)):
        found = function(Answers(*given, is_plain), items, latent, shift)
        np.testing.assert_allclose(jnp.sum(found, axis=1), expected, rtol=0, atol=1e-3)
    by_parts = likelihood_parts(Answers(*given, True), items, latent, shift)
    by_cells = log_likelihoods(Answers(*given), items, latent, shift)
    np.testing.assert_allclose(
        jnp.sum(by_parts, axis=1), jnp.sum(by_cells, axis=1), rtol=10 * tolerance("reduction")
    )


@pytest.mark.parametrize("sd", [0.0, 1.0, 20.0])
def test_the_least_likely_answers_have_finite_likelihoods_that_fall(sd):
    items = _items(sd)
    distance = jnp.asarray([10.0, 30.0, 60.0])
    latent = jnp.zeros((3, DIMS))
    shift = distance[:, None] * jnp.ones((1, N_ITEMS))
    wrong = Answers(jnp.zeros_like(shift), jnp.ones_like(shift), True)
    found = jnp.sum(likelihood_parts(wrong, items, latent, shift), axis=1)
    assert np.isfinite(found).all()
    assert np.all(np.diff(found) < 0)
    slopes = curve_slopes(items, latent, shift)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(slopes))


@pytest.mark.parametrize("n_latent, degree", [(1, 9), (2, 8), (3, 7)])
def test_nodes_have_the_moments_of_the_normal(n_latent, degree):
    nodes, log_weight = standard_nodes(n_latent)
    for powers in itertools.product(range(degree + 1), repeat=n_latent):
        if sum(powers) > degree:
            continue
        moment = np.exp(log_weight) @ np.prod(nodes ** np.array(powers), axis=1)
        expected = np.prod([np.prod(np.arange(k - 1, 0, -2)) * (k % 2 == 0) for k in powers])
        np.testing.assert_allclose(moment, expected, rtol=0, atol=1e-10)

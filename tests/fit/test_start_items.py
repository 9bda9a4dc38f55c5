"""Where items start: signs, scale, pinned slopes, and other starts."""

import jax
import numpy as np
import pytest
from scipy.special import expit

from irtjax.fit.item_step import ItemModel
from irtjax.fit.start_items import start_items
from irtjax.model.priors import Priors
from irtjax.model.spec import ModelSpec
from tests.fit import models_reference as reference
from tests.fit.models_bridge import PlacedModels

N_MODELS, N_ITEMS = 300, 8


def started(family="2pl", dims=1, is_loading=None, is_jittered=False, seed=0):
    """The start of simulated data whose last item falls with ability; and its true slopes."""
    rng = np.random.default_rng(6)
    slope = rng.lognormal(0.2, 0.2, (N_ITEMS, dims))
    if dims == 2:
        slope *= np.repeat([[1, 0.1], [0.1, 1]], N_ITEMS // 2, axis=0)
    slope[-1] *= -1
    intercept = rng.normal(0, 1, N_ITEMS)
    p = expit(rng.normal(size=(N_MODELS, dims)) @ slope.T + intercept)
    response = (rng.random(p.shape) < p).astype(float)
    response[rng.random(p.shape) < 0.1] = -1
    problem = reference.Problem(
        family,
        response,
        np.ones(p.shape),
        np.zeros(N_MODELS, int),
        np.ones(N_MODELS),
        reference.random_items(rng, family, dims, N_ITEMS),
        np.zeros((1, dims)),
        np.eye(dims)[None],
    )
    placed = PlacedModels(problem, 5)
    model = ItemModel(ModelSpec(family, dims), Priors())
    found = placed.run(
        lambda blocks, _: start_items(
            blocks, model, jax.random.key(seed), is_jittered=is_jittered, is_loading=is_loading
        )
    )
    return found, slope, response


@pytest.mark.parametrize("family", ["2pl", "3pl", "4pl"])
def test_an_item_that_falls_starts_with_a_negative_slope(family):
    found, slope, _ = started(family)
    np.testing.assert_array_equal(np.sign(found.slope), np.sign(slope))


def test_a_common_slope_is_one_and_positive():
    found, _, _ = started("1pl")
    assert np.all(np.asarray(found.slope) == np.asarray(found.slope)[0])
    assert found.slope[0, 0] > 0


def test_intercepts_are_the_logits_of_the_means():
    found, _, response = started()
    right, wrong = (np.sum(response == answer, axis=0) for answer in (1, 0))
    expected = np.log((right + 0.5) / (wrong + 0.5))
    np.testing.assert_allclose(found.intercept, expected, rtol=1e-4, atol=1e-5)


def test_asymptotes_start_at_the_means_of_their_priors():
    found, _, _ = started("4pl")
    np.testing.assert_allclose(found.asymptotes.guessing, 5 / 22, rtol=1e-5)
    np.testing.assert_allclose(found.asymptotes.feasibility, 1 - 2 / 20, rtol=1e-5)


def test_two_dims_start_along_the_clusters_of_items():
    found, slope, _ = started(dims=2)
    first, second = np.asarray(found.slope, np.float64), slope
    # Up to rotation: the items' cosines with each other are those of the true slopes.
    one, other = ((v / np.linalg.norm(v, axis=1, keepdims=True)) for v in (first, second))
    assert np.corrcoef((one @ one.T).ravel(), (other @ other.T).ravel())[0, 1] > 0.8


def test_pinned_slopes_start_at_zero_and_free_ones_do_not():
    is_loading = np.repeat([[1.0, 0.0], [0.0, 1.0]], N_ITEMS // 2, axis=0)
    found, _, _ = started(dims=2, is_loading=is_loading.astype(np.float32))
    np.testing.assert_array_equal(np.asarray(found.slope) != 0, is_loading == 1)


@pytest.mark.parametrize("family", ["1pl", "3pl"])
def test_other_starts_are_elsewhere_with_the_same_signs(family):
    plain, one, other = (started(family, is_jittered=seed > 0, seed=seed)[0] for seed in (0, 1, 2))
    assert np.all(np.sign(one.slope) == np.sign(plain.slope))
    for a, b in [(plain, one), (one, other)]:
        assert np.abs(np.asarray(a.intercept - b.intercept)).max() > 0.1
        assert np.abs(np.asarray(a.slope - b.slope)).max() > 0.05

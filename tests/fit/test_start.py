"""Where a fit starts: singular vectors against NumPy's, above 512 models too."""

import jax
import numpy as np
import pytest

from irtjax.data.responses import ResponseMatrix
from irtjax.fit.start import (
    free_coordinates,
    model_accuracy,
    start_abilities,
    start_distribution,
    start_posteriors,
)
from irtjax.model.spec import ModelSpec
from tests.fit.fitting import placed_blocks
from tests.tolerances import close


def _data(n_models, n_items, dims=2, seed=0, weight=None):
    rng = np.random.default_rng(seed)
    theta, slope = rng.normal(size=(n_models, dims)), rng.normal(size=(n_items, dims))
    slope[:, 0] += 1.0
    slope[:, 1:] *= 0.6
    p = 1 / (1 + np.exp(-(theta @ slope.T + rng.normal(size=n_items))))
    dense = np.where(rng.random(p.shape) < 0.1, -1, rng.random(p.shape) < p)
    dense[3] = -1
    if weight is not None:
        weight = rng.integers(1, 4, p.shape).astype(np.float32)
    return ResponseMatrix.from_dense(dense, weight=weight)


def _vectors(data, dims):
    """Left singular vectors of the item-centred matrix, missing cells 0, whitened."""
    dense = data.to_dense().astype(float)
    weight = np.where(dense >= 0, 1.0 if data.dense_weight is None else data.dense_weight, 0)
    mean = (weight * dense).sum(axis=0) / weight.sum(axis=0)
    left, _, _ = np.linalg.svd(weight * (dense - mean), full_matrices=False)
    return left[:, :dims]


def _run(blocks, mesh, function):
    with jax.set_mesh(mesh):
        return jax.jit(function)(blocks)


@pytest.mark.oracle
@pytest.mark.parametrize("is_weighted", [False, True])
def test_abilities_start_at_the_singular_vectors(is_weighted):
    data = _data(40, 300, weight=is_weighted or None)
    blocks, _, mesh = placed_blocks(data, items_per_block=64)
    ability, is_scored = _run(
        blocks, mesh, lambda blocks: start_abilities(blocks, 2, jax.random.key(0))
    )
    assert np.flatnonzero(~np.asarray(is_scored)).tolist() == [3]
    seen = np.asarray(is_scored)
    close(np.asarray(ability)[seen].mean(axis=0), np.zeros(2), kind="solve")
    covariance = np.cov(np.asarray(ability)[seen].T, bias=True)
    close(covariance, np.eye(2), kind="fit")
    # The same plane of models, and each dim rises with accuracy.
    expected = _vectors(data, 2)[seen]
    expected = expected - expected.mean(axis=0)
    coefficients, *_ = np.linalg.lstsq(expected, np.asarray(ability, float)[seen], rcond=None)
    close(expected @ coefficients, np.asarray(ability)[seen], kind="fit")
    accuracy = data.totals("models")[1][seen]
    assert np.corrcoef(np.asarray(ability)[seen, 0], accuracy)[0, 1] > 0.9


def test_above_512_models_the_subspace_is_found_by_iteration():
    data = _data(600, 200)
    blocks, _, mesh = placed_blocks(data)
    ability, _ = _run(blocks, mesh, lambda blocks: start_abilities(blocks, 2, jax.random.key(0)))
    expected = _vectors(data, 2)
    # Canonical correlations of the two planes.
    q1 = np.linalg.qr(np.asarray(ability, float) - np.asarray(ability, float).mean(axis=0))[0]
    q2 = np.linalg.qr(expected - expected.mean(axis=0))[0]
    assert np.linalg.svd(q1.T @ q2)[1].min() > 0.999


@pytest.mark.oracle
def test_accuracies_are_weighted_means():
    data = _data(40, 300, weight=True)
    blocks, _, mesh = placed_blocks(data, items_per_block=64)
    accuracy = _run(blocks, mesh, model_accuracy)
    expected = data.totals("models")[1]
    assert np.isnan(accuracy[3])
    close(np.delete(accuracy, 3), np.delete(expected, 3), kind="reduction")


@pytest.mark.oracle
@pytest.mark.parametrize("family", ["1pl", "2pl"])
def test_items_start_at_the_logit_of_their_mean_response(family):
    spec, data = ModelSpec(family), _data(40, 300)
    blocks, layout, mesh = placed_blocks(data, items_per_block=64)
    distribution = start_distribution(1, spec, 1)
    is_free = free_coordinates(spec)
    assert is_free == ((False, True) if family == "1pl" else (True, True))
    items = _run(blocks, mesh, lambda blocks: start_posteriors(blocks, distribution, is_free))
    mean = layout.from_blocks(np.moveaxis(np.asarray(items.mean), -1, 1))[:, 0]
    dense = np.ma.masked_less(data.to_dense(), 0)
    right, seen = dense.sum(axis=0), dense.count(axis=0)
    close(mean[:, 1], np.log((right + 0.5) / (seen - right + 0.5)).filled(), kind="reduction")
    assert np.all(mean[:, 0] == (1 if family == "1pl" else 0))


def test_components_of_a_mixture_start_apart():
    for family in ("1pl", "2pl"):
        start = start_distribution(2, ModelSpec(family), 3)
        mean = np.asarray(start.mean[0])
        assert len(np.unique(mean.round(6), axis=0)) == 3
        np.testing.assert_allclose(np.exp(start.log_weight).sum(axis=1), 1, rtol=1e-6)

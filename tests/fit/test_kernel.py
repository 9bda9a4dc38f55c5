"""One block: what a missing cell, a weight, a cap and a fallback do."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from irtjax.fit import kernel
from irtjax.fit.kernel import BlockData, FixedSide, ItemPrior, Posterior
from irtjax.model.response import Asymptotes
from tests.fit import reference
from tests.fit.bridge import packed
from tests.tolerances import close

update_posterior, evidence = jax.jit(kernel.update_posterior), jax.jit(kernel.evidence)

N_MODELS, N_ITEMS, DIMS = 30, 8, 2


def _block(seed=0, *, is_free=(True, True, True), asymptotes=None, prior_variance=1.0):
    """Data, fixed side, prior and posterior of one small block."""
    rng = np.random.default_rng(seed)
    response = rng.integers(0, 2, (N_MODELS, N_ITEMS)).astype(float)
    weight = (rng.random((N_MODELS, N_ITEMS)) < 0.8).astype(float)
    ability = rng.normal(size=(N_MODELS, DIMS))
    free = np.array(is_free)
    covariance = np.where(free[:, None] & free, prior_variance * np.eye(DIMS + 1), 0)
    precision = np.where(free[:, None] & free, np.eye(DIMS + 1) / prior_variance, 0)

    def repeated(matrix):
        return jnp.asarray(np.repeat(packed(matrix)[:, None], N_ITEMS, axis=1))

    mean = jnp.asarray(rng.normal(size=(DIMS + 1, N_ITEMS)) * free[:, None])
    return (
        BlockData(jnp.asarray(response * weight), jnp.asarray(weight)),
        FixedSide(
            jnp.asarray(np.column_stack([ability, np.ones(N_MODELS)])),
            jnp.asarray(rng.normal(size=(N_MODELS, N_ITEMS))),
            asymptotes,
            9,
        ),
        ItemPrior(
            jnp.zeros_like(mean),
            repeated(precision),
            jnp.full(N_ITEMS, free.sum() * np.log(prior_variance)),
            is_free,
        ),
        Posterior(mean, repeated(0.3 * covariance / prior_variance)),
    )


def _asymptotes(guessing=0.25, feasibility=0.9):
    return Asymptotes.from_natural(jnp.full(N_ITEMS, guessing), jnp.full(N_ITEMS, feasibility))


def test_a_missing_cell_contributes_nothing_whatever_its_response():
    data, fixed, prior, posterior = _block()
    other = dataclasses.replace(data, response=jnp.where(data.weight > 0, data.response, 1.0))
    for function in (update_posterior, evidence):
        one = jax.tree.leaves(function(data, fixed, prior, posterior))
        two = jax.tree.leaves(function(other, fixed, prior, posterior))
        assert all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))


@pytest.mark.parametrize("asymptotes", [None, _asymptotes()])
def test_case_17_a_masked_cell_has_no_gradient_and_an_extreme_one_a_finite_one(asymptotes):
    data, fixed, prior, posterior = _block(asymptotes=asymptotes)

    def bound(offset):
        return jnp.sum(evidence(data, dataclasses.replace(fixed, offset=offset), prior, posterior))

    for logit in (0.0, 1e4, -1e4):
        value, gradient = jax.value_and_grad(bound)(fixed.offset + logit)
        assert np.isfinite(value)
        assert np.all(np.isfinite(gradient))
        assert np.all(np.asarray(gradient)[np.asarray(data.weight) == 0] == 0)
        moved = update_posterior(
            data, dataclasses.replace(fixed, offset=fixed.offset + logit), prior, posterior
        )
        assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(moved))


@pytest.mark.oracle
def test_weight_2_is_the_row_twice():
    data, fixed, prior, posterior = _block(asymptotes=_asymptotes())
    doubled = dataclasses.replace(data, weight=2 * data.weight)
    twice = BlockData(*(jnp.concatenate([leaf, leaf]) for leaf in (data.response, data.weight)))
    rows_twice = FixedSide(
        jnp.concatenate([fixed.design] * 2),
        jnp.concatenate([fixed.offset] * 2),
        fixed.asymptotes,
        fixed.n_nodes,
    )
    for function in (update_posterior, evidence):
        weighted = function(doubled, fixed, prior, posterior)
        repeated = function(twice, rows_twice, prior, posterior)
        for a, b in zip(jax.tree.leaves(weighted), jax.tree.leaves(repeated), strict=True):
            close(a, b, kind="solve", scale=10)


@pytest.mark.oracle
@pytest.mark.parametrize("has_asymptotes", [False, True])
def test_a_fraction_of_n_trials_is_its_right_and_wrong_answers(has_asymptotes):
    # k of n right as one cell (k / n, weight n) = k right and n - k wrong cells.
    # (With asymptotes only the bound: the fallback of an indefinite item takes the positive part of
    # each cell, and of a fraction that is not the sum of its answers' positive parts.)
    data, fixed, prior, posterior = _block(asymptotes=_asymptotes() if has_asymptotes else None)
    right = jnp.asarray(np.random.default_rng(3).integers(0, 4, data.weight.shape), float)
    cell = BlockData(right / 3, 3 * data.weight)
    split = BlockData(
        jnp.concatenate([jnp.ones_like(right), jnp.zeros_like(right)]),
        jnp.concatenate([right * data.weight, (3 - right) * data.weight]),
    )
    both = FixedSide(
        jnp.concatenate([fixed.design] * 2),
        jnp.concatenate([fixed.offset] * 2),
        fixed.asymptotes,
        fixed.n_nodes,
    )
    for function in (evidence,) if has_asymptotes else (update_posterior, evidence):
        one = function(cell, fixed, prior, posterior)
        other = function(split, both, prior, posterior)
        for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
            close(a, b, kind="solve", scale=10)


def test_pinned_coordinates_stay_where_they_are():
    data, fixed, prior, posterior = _block(is_free=(False, False, True))
    moved = update_posterior(data, fixed, prior, posterior)
    assert np.array_equal(moved.mean[:DIMS], posterior.mean[:DIMS])
    covariance = np.asarray(moved.covariance)
    assert np.all(covariance[:-1] == 0)
    assert np.all(covariance[-1] > 0)
    assert np.all(np.isfinite(evidence(data, fixed, prior, moved)))


def test_a_step_is_no_longer_than_its_cap():
    data, fixed, prior, posterior = _block(prior_variance=1e4)
    far = Posterior(posterior.mean + 60, posterior.covariance)
    moved = update_posterior(data, fixed, prior, far)
    length = np.linalg.norm(moved.mean - far.mean, axis=0)
    assert np.all(length <= reference.LONGEST_ITEM_STEP * (1 + 1e-6))
    assert np.any(length > reference.LONGEST_ITEM_STEP * (1 - 1e-6))


@pytest.mark.oracle
def test_where_the_information_is_indefinite_the_positive_part_takes_its_place():
    # Wrong answers far above the feasibility's knee: the log-likelihood is convex there.
    data, fixed, prior, posterior = _block(asymptotes=_asymptotes(0.3, 0.99), prior_variance=50.0)
    data = dataclasses.replace(data, response=jnp.zeros_like(data.response))
    lifted = Posterior(posterior.mean.at[-1].set(3.0), posterior.covariance * 0.05)
    cells = kernel.expected_cells(data, fixed, lifted)
    outer = np.einsum("ia,ib->iab", fixed.design, fixed.design)
    precision = np.eye(DIMS + 1) / 50
    observed = precision + np.einsum("ij,iab->jab", cells.negative_second, outer)
    is_indefinite = np.linalg.eigvalsh(observed)[:, 0] < -1e-3
    assert is_indefinite.any()
    positive = np.maximum(cells.negative_second, 0)
    expected = np.linalg.inv(precision + np.einsum("ij,iab->jab", positive, outer))
    moved = update_posterior(data, fixed, prior, lifted)
    close(
        np.asarray(moved.covariance).T[is_indefinite],
        packed(expected)[is_indefinite],
        kind="solve",
        scale=10,
    )


def test_a_step_raises_the_bound_of_every_item():
    # Newton from the last step's posterior, in the regime of a fit: no item may lose.
    data, fixed, prior, posterior = _block()
    start = update_posterior(data, fixed, prior, posterior)
    before = evidence(data, fixed, prior, start)
    for _ in range(4):
        start = update_posterior(data, fixed, prior, start)
        after = evidence(data, fixed, prior, start)
        assert np.all(after >= before - 1e-5 * np.abs(before))
        before = after

"""Changes of frame move everything together: no logit and no divergence changes."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import dtypes

from irtjax.fit import frame
from irtjax.fit.frame import FrameChange
from irtjax.fit.hyperparameters import ItemDistribution
from irtjax.fit.item_pass import ItemPosteriors
from tests.fit import reference
from tests.fit.bridge import packed, unpacked
from tests.tolerances import close

standardise, residual_effects = jax.jit(frame.standardise), jax.jit(frame.residual_effects)

N_MODELS, N_ITEMS, N_GROUPS = 40, 30, 4
# What a change of frame may do to a logit or a divergence of order 1 to 10.
UNCHANGED = {"float32": 1e-5, "float64": 1e-10}


def _unchanged(actual, expected):
    bound = UNCHANGED[np.dtype(dtypes.canonicalize_dtype(float)).name]
    np.testing.assert_allclose(actual, expected, rtol=bound, atol=bound)


@pytest.fixture(scope="module", params=[1, 3], ids="dims={}".format)
def problem(request):
    """Items, abilities and distributions in a crooked frame; model 5 has no responses."""
    made = reference.random_problem(
        np.random.default_rng(4),
        n_models=N_MODELS,
        n_items=N_ITEMS,
        dims=request.param,
        n_groups=N_GROUPS,
        n_components=2,
    )
    rng = np.random.default_rng(5)
    bent = rng.normal(size=(request.param, request.param)) + 2 * np.eye(request.param)
    made.ability = made.ability @ bent + rng.normal(size=request.param)
    return made


@pytest.fixture(scope="module")
def is_scored():
    """All models but one."""
    return jnp.asarray(np.arange(N_MODELS) != 5)


def _logits(ability, effect, mean, group):
    design = np.column_stack([ability, np.ones(len(ability))])
    logit = np.einsum("ia,jca->ijc", design, mean)
    return logit if effect is None else logit + np.asarray(effect)[:, group][:, :, None]


def _moved(problem, change):
    """Items and distributions after a change of frame, in the oracle's layout."""
    blocked = ItemPosteriors(
        jnp.asarray(problem.mean.transpose(1, 2, 0)[None]),
        jnp.asarray(packed(problem.covariance).transpose(1, 2, 0)[None]),
        jnp.asarray(problem.share.T[None]),
    )
    items = change.apply_to_items(blocked, jnp.asarray(problem.group[None]))
    distribution = change.apply_to_distribution(
        ItemDistribution(*(jnp.asarray(v) for v in (problem.mu, problem.sigma, problem.log_weight)))
    )
    return dataclasses.replace(
        problem,
        mean=np.asarray(items.mean[0]).transpose(2, 0, 1),
        covariance=unpacked(np.asarray(items.covariance[0]).transpose(2, 0, 1)),
        share=np.asarray(items.share[0]).T,
        mu=np.asarray(distribution.mean),
        sigma=np.asarray(distribution.covariance),
        log_weight=np.asarray(distribution.log_weight),
    )


def _divergences(problem):
    return np.array(
        [
            reference.divergence(
                problem.mean[j, c].astype(float),
                problem.covariance[j, c].astype(float),
                problem.mu[g, c].astype(float),
                problem.sigma[g, c].astype(float),
                problem.is_free,
            )
            for j, g in enumerate(problem.group)
            for c in range(2)
        ]
    )


@pytest.mark.oracle
def test_standardising_leaves_logits_variances_and_divergences(problem, is_scored):
    ability, matrix = standardise(jnp.asarray(problem.ability), is_scored)
    change = FrameChange(matrix, jnp.zeros((N_GROUPS, len(matrix)), matrix.dtype))
    moved, seen = _moved(problem, change), np.asarray(is_scored)
    before = _logits(problem.ability, None, problem.mean, problem.group)
    after = _logits(ability, None, moved.mean, problem.group)
    _unchanged(after[seen], before[seen])
    x, y = (np.column_stack([a, np.ones(N_MODELS)])[seen] for a in (problem.ability, ability))
    _unchanged(
        np.einsum("ia,jcab,ib->ijc", y, moved.covariance, y),
        np.einsum("ia,jcab,ib->ijc", x, problem.covariance, x),
    )
    _unchanged(_divergences(moved), _divergences(problem))
    assert np.array_equal(moved.share, np.asarray(jnp.asarray(problem.share)))


@pytest.mark.oracle
def test_standard_abilities_have_mean_0_and_covariance_1(problem, is_scored):
    ability, _ = standardise(jnp.asarray(problem.ability), is_scored)
    seen = np.asarray(ability)[np.asarray(is_scored)]
    dims = ability.shape[1]
    close(seen.mean(axis=0), np.zeros(dims), kind="solve")
    close(seen.T @ seen / len(seen), np.eye(dims), kind="solve")
    assert np.all(np.asarray(ability)[~np.asarray(is_scored)] == 0)


@pytest.mark.oracle
def test_of_all_standard_frames_the_nearest_to_the_reference_is_taken(problem, is_scored):
    rng = np.random.default_rng(0)
    near = problem.ability + 0.1 * rng.normal(size=problem.ability.shape)
    reference_ability, _ = standardise(jnp.asarray(near), is_scored)
    ability, _ = standardise(jnp.asarray(problem.ability), is_scored, reference_ability)
    away = np.linalg.norm(ability - reference_ability)
    for _ in range(200):
        turn, _ = np.linalg.qr(rng.normal(size=(ability.shape[1],) * 2))
        assert away <= np.linalg.norm(np.asarray(ability) @ turn - reference_ability) + 1e-4
    # What is standard already does not move.
    again, matrix = standardise(ability, is_scored, ability)
    close(again, ability, kind="solve")
    close(matrix, np.eye(len(matrix)), kind="solve")


@pytest.mark.oracle
@pytest.mark.parametrize("has_slopes", [True, False])
def test_effects_become_residuals_and_their_fitted_part_moves_into_the_items(
    problem, is_scored, has_slopes
):
    ability, _ = standardise(jnp.asarray(problem.ability), is_scored)
    dims, seen = ability.shape[1], np.asarray(is_scored)
    design = np.column_stack([ability, np.ones(N_MODELS)])
    used = design * np.array([has_slopes] * dims + [True])
    effect, shift = residual_effects(
        jnp.asarray(used, ability.dtype), jnp.asarray(problem.effect), is_scored
    )
    change = FrameChange(jnp.eye(dims + 1, dtype=shift.dtype), shift)
    moved = _moved(problem, change)
    before = _logits(ability, problem.effect, problem.mean, problem.group)
    after = _logits(ability, effect, moved.mean, problem.group)
    _unchanged(after[seen], before[seen])
    _unchanged(_divergences(moved), _divergences(problem))
    # Least squares in float64: what is left is orthogonal to the design, up to the ridge (1e-6).
    kept = used[seen][:, np.array([has_slopes] * dims + [True])]
    coefficients = np.linalg.lstsq(kept, problem.effect[seen], rcond=None)[0]
    residual = problem.effect[seen] - kept @ coefficients
    np.testing.assert_allclose(np.asarray(effect)[seen], residual, atol=1e-4)
    assert np.all(np.asarray(effect)[~seen] == 0)


def test_the_identity_changes_nothing(problem):
    dims = problem.ability.shape[1]
    any_change = FrameChange(2 * jnp.eye(dims + 1), jnp.ones((N_GROUPS, dims + 1)))
    moved = _moved(problem, any_change.identity())
    for name in ("mean", "covariance", "mu", "sigma"):
        expected = np.asarray(jnp.asarray(getattr(problem, name)))
        assert np.array_equal(getattr(moved, name), expected), name


def test_a_dim_that_vanishes_stays_small():
    # Two dims of which the data support one: the second must not be blown up to variance 1.
    rng = np.random.default_rng(1)
    one = rng.normal(size=(N_MODELS, 1))
    ability = jnp.asarray(np.hstack([one, 2 * one + 1e-7 * rng.normal(size=one.shape)]))
    standard, matrix = standardise(ability, jnp.ones(N_MODELS, bool))
    assert np.all(np.isfinite(standard))
    assert np.all(np.isfinite(matrix))
    variance = np.linalg.eigvalsh(np.cov(np.asarray(standard).T, bias=True))
    assert variance[1] == pytest.approx(1, rel=1e-3)
    assert variance[0] < 0.1

"""Standard errors of abilities and asymptotes against formulas written out one model at a time."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import beta

from irtjax.fit import uncertainty
from irtjax.fit.packed import unpack_index
from irtjax.fit.uncertainty import collapse, uncertainty_sums
from irtjax.model.priors import Priors
from irtjax.model.response import Asymptotes
from tests.fit import reference
from tests.fit.bridge import Placed, unpacked
from tests.tolerances import close

ability_errors = jax.jit(uncertainty.ability_errors)
N_MODELS, N_ITEMS, DIMS, N_GROUPS, TAU_SQUARED = 24, 300, 2, 9, 0.4
KINDS = {"plain": {"has_effects": False}, "everything": {"has_asymptotes": True, "n_components": 2}}


@pytest.fixture(scope="module", params=list(KINDS))
def passed(request):
    """The problem, each item's single normal, and the two kinds of sums."""
    problem = reference.random_problem(
        np.random.default_rng(11),
        n_models=N_MODELS,
        n_items=N_ITEMS,
        dims=DIMS,
        n_groups=N_GROUPS,
        is_weighted=True,
        **KINDS[request.param],
    )
    problem.share = np.random.default_rng(1).dirichlet(np.ones(problem.share.shape[1]), N_ITEMS)
    placed = Placed(problem, 64)
    return (
        placed,
        _collapsed(problem),
        *placed.run(
            lambda blocks, items, context: uncertainty_sums(blocks, items, context),
            placed.posteriors,
            placed.context,
        ),
    )


def _collapsed(problem):
    """Mean and covariance of each item's mixture, by the law of total covariance."""
    mean = np.einsum("jc,jca->ja", problem.share, problem.mean)
    away = problem.mean - mean[:, None]
    spread = problem.covariance + np.einsum("jca,jcb->jcab", away, away)
    return mean, np.einsum("jc,jcab->jab", problem.share, spread)


@pytest.mark.oracle
def test_a_mixture_collapses_to_its_mean_and_covariance(passed):
    placed, (mean, covariance), _, _ = passed
    one = placed.items_first(placed.run(lambda _, items: collapse(items), placed.posteriors))
    close(one[0][:, 0], mean)
    close(one[1][:, 0], covariance)
    assert np.all(one[2] == 1)


def _sums(problem, mean, covariance):
    """Information, spread, scores by group and expected score of every model, by loops."""
    n_groups = problem.mu.shape[0]
    information = np.zeros((N_MODELS, DIMS, DIMS))
    spread, score = np.zeros_like(information), np.zeros((n_groups, DIMS, N_MODELS))
    share = np.zeros((n_groups, DIMS, DIMS, N_MODELS))
    effects = np.zeros((3, n_groups, N_MODELS)), np.zeros((n_groups, DIMS, N_MODELS))
    for j, g in enumerate(problem.group):
        a, V = mean[j, :DIMS], covariance[j]
        i, x, _, _, _ = problem.seen(j)
        _, first, second, _, _ = problem.cells(j, mean[j], V)
        for row, design, f, n in zip(i, x, first, -second, strict=True):
            information[row] += n * (np.outer(a, a) + V[:DIMS, :DIMS])
            # The score is `f a - n (V x)`; its derivative in (slope, intercept), the curvature
            # of the next order left out:
            B = f * np.eye(DIMS, DIMS + 1) - n * np.outer(a, design)
            spread[row] += B @ V @ B.T
            score[g, :, row] += f * a - n * (V @ design)[:DIMS]
            share[g, :, :, row] += n * np.outer(a, a)
            effects[0][0, g, row] += f
            effects[0][1, g, row] += max(n, 0)
            effects[1][g, :, row] += a * max(n, 0)
    return information, spread, score, share, effects


@pytest.mark.oracle
def test_sums_over_items(passed):
    placed, (mean, covariance), total, groups = passed
    information, spread, score, share, effects = _sums(placed.problem, mean, covariance)
    close(unpacked(total.information), information, kind="solve", scale=30)
    close(total.spread, spread, kind="solve", scale=30)
    close(groups.score, score, kind="solve", scale=30)
    full = np.asarray(groups.information)[:, unpack_index(DIMS)]
    close(full, share, kind="solve", scale=30)
    if placed.effect is not None:
        close(groups.effects.score, effects[0][0], kind="solve", scale=30)
        close(groups.effects.information, effects[0][1], kind="solve", scale=30)
        close(groups.effects.cross, effects[1], kind="solve", scale=30)


@pytest.mark.oracle
def test_ability_errors_are_the_profile_information_and_the_items_spread(passed):
    placed, (mean, covariance), total, groups = passed
    information, spread, score, share, effects = _sums(placed.problem, mean, covariance)
    tau = jnp.asarray(TAU_SQUARED)
    errors = ability_errors(total, groups, placed.effect, tau)
    n_floored = n_few = 0
    for i in range(N_MODELS):
        H = information[i] + np.eye(DIMS)
        U = score[:, :, i].copy()
        if placed.effect is not None:
            # The dense information of abilities and effects, reduced to the abilities.
            full = np.zeros((DIMS + N_GROUPS,) * 2)
            full[:DIMS, :DIMS] = H
            full[DIMS:, DIMS:] = np.diag(effects[0][1, :, i] + 1 / TAU_SQUARED)
            full[:DIMS, DIMS:] = effects[1][:, :, i].T
            full[DIMS:, :DIMS] = full[:DIMS, DIMS:].T
            H = np.linalg.inv(np.linalg.inv(full)[:DIMS, :DIMS])
            pull = effects[0][0, :, i] - placed.problem.effect[i] / TAU_SQUARED
            U -= effects[1][:, :, i] * (pull / (effects[0][1, :, i] + 1 / TAU_SQUARED))[:, None]
        # What the responses say is at least nothing beside the prior's precision of 1.
        values, vectors = np.linalg.eigh(H)
        n_floored += np.sum(values < 1)
        inverse = (vectors / np.maximum(values, 1)) @ vectors.T
        close(
            errors.covariance[i], inverse + inverse @ spread[i] @ inverse, kind="solve", scale=0.1
        )
        carried = np.zeros((N_GROUPS, DIMS))
        n_seen = 0
        for g in range(N_GROUPS):
            I = share[g, :, :, i].copy()
            n_seen += np.any(I != 0)
            if placed.effect is not None:
                cross = effects[1][g, :, i]
                I -= np.outer(cross, cross) / (effects[0][1, g, i] + 1 / TAU_SQUARED)
            carried[g] = np.maximum(np.einsum("ka,ab,kb->k", inverse, I, inverse), 0)
        assert n_seen >= uncertainty.FEWEST_CLUSTERS
        effective = carried.sum(axis=0) ** 2 / (carried**2).sum(axis=0)
        close(errors.degrees_of_freedom[i], effective - 1, kind="solve", scale=10)
        meat = U.T @ U * n_seen / (n_seen - 1)
        clustered = np.sqrt(np.diag(inverse @ meat @ inverse))
        is_few = effective < uncertainty.FEWEST_EFFECTIVE_CLUSTERS
        n_few += is_few.sum()
        assert np.isnan(errors.clustered[i]).tolist() == is_few.tolist()
        close(np.asarray(errors.clustered[i])[~is_few], clustered[~is_few], kind="solve", scale=0.1)
    assert n_few < N_MODELS * DIMS / 4
    assert (n_floored > 0) == (placed.asymptotes is not None)


def test_clustered_errors_are_empty_with_few_groups(passed):
    placed, _, total, groups = passed
    few = jax.tree.map(lambda leaf: leaf[: uncertainty.FEWEST_CLUSTERS - 1], groups)
    effect = None if placed.effect is None else placed.effect[:, : uncertainty.FEWEST_CLUSTERS - 1]
    errors = ability_errors(total, few, effect, jnp.asarray(TAU_SQUARED))
    assert np.all(np.isnan(errors.clustered))
    assert np.all(np.isnan(errors.degrees_of_freedom))
    assert np.all(np.isfinite(errors.covariance))


def _in_one_group(sums, groups, dominance):
    """Sums of which one group has `dominance` times its share, and so the total."""
    weight = np.ones(groups.information.shape[0])
    weight[0] = dominance
    scaled = jax.tree.map(lambda leaf: leaf * weight.reshape(-1, *[1] * (leaf.ndim - 1)), groups)
    scaled = dataclasses.replace(scaled, asymptotes=None)
    total = np.asarray(scaled.information).sum(axis=0).T
    return dataclasses.replace(sums, information=jnp.asarray(total)), scaled


def test_where_one_benchmark_carries_an_ability_its_clustered_error_is_empty(passed):
    placed, _, sums, groups = passed
    if placed.effect is not None:
        pytest.skip("what an effect takes up is no longer the benchmark's to carry")
    n_known = []
    for dominance in (1, 30, 10_000):
        errors = ability_errors(*_in_one_group(sums, groups, dominance), None, jnp.asarray(1.0))
        freedom = np.asarray(errors.degrees_of_freedom)
        known = np.isfinite(np.asarray(errors.clustered))
        assert np.all(freedom >= 0)
        assert (known == (freedom >= uncertainty.FEWEST_EFFECTIVE_CLUSTERS - 1)).all()
        n_known.append(known.mean())
    assert n_known[0] > 0.9
    assert n_known[-1] == 0


def test_items_of_another_dim_and_benchmarks_with_effects_of_their_own_carry_nothing():
    n_groups, n_models = 10, 3
    information = np.zeros((n_groups, 3, n_models))
    information[:, 0] = 10  # the first dim is in all of them alike
    information[0, 0] = 1e4
    cross = np.zeros((n_groups, 2, n_models))
    cross[0, 0], count = 1e3, np.full((n_groups, n_models), 1e2)
    information[1:4, 2] = 50  # the second in three
    total = jnp.asarray(information.sum(axis=0).T)
    sums = uncertainty.UncertaintySums(total, jnp.zeros((n_models, 2, 2)))
    score = jnp.asarray(np.random.default_rng(0).normal(size=(n_groups, 2, n_models)))
    statistics = uncertainty.EffectStatistics(jnp.zeros_like(count), jnp.asarray(count), cross)
    groups = uncertainty.GroupSums(score, jnp.asarray(information), None, None)
    plain = ability_errors(sums, groups, None, jnp.asarray(1.0))
    assert np.isnan(np.asarray(plain.clustered)[:, 0]).all()
    np.testing.assert_allclose(plain.degrees_of_freedom[:, 1], 2, rtol=1e-5)
    # All but 10 of what the first benchmark says of the first dim could be an effect of its own.
    variance = jnp.asarray(1 / (1e6 / 9990 - 100))
    free = dataclasses.replace(groups, effects=statistics)
    effect = jnp.zeros((n_models, n_groups))
    profiled = ability_errors(sums, free, effect, variance)
    np.testing.assert_allclose(profiled.degrees_of_freedom[:, 0], n_groups - 1, rtol=1e-2)
    assert np.isfinite(np.asarray(profiled.clustered)[:, 0]).all()


@pytest.mark.oracle
def test_asymptote_errors_are_the_inverse_cross_products_of_item_scores(passed):
    placed, (mean, covariance), _, groups = passed
    problem = placed.problem
    if placed.asymptotes is None:
        assert groups.asymptotes is None
        return
    cross = np.zeros((N_GROUPS, 2, 2))
    h = 1e-5

    def value(j, c, d):
        _, x, offset, y, w = problem.seen(j)
        variance = np.einsum("ia,ab,ib->i", x, covariance[j], x)
        cells = reference.expected_cell(x @ mean[j] + offset, variance, y, c, d, problem.n_nodes)
        return w @ cells[0]

    for j, g in enumerate(problem.group):
        c, d = problem.guessing[g], problem.feasibility[g]
        score = np.array(
            [
                value(j, c + h, d) - value(j, c - h, d),
                value(j, c, d + h) - value(j, c, d - h),
            ]
        ) / (2 * h)
        cross[g] += np.outer(score, score)
    priors = Priors()
    cross += np.diag([1 / beta(*p).var() for p in (priors.guessing, priors.infeasibility)])
    expected = np.array([np.sqrt(np.diag(np.linalg.inv(each))) for each in cross])
    guessing_se, feasibility_se = uncertainty.asymptote_errors(groups, placed.asymptotes, priors)
    # The scores themselves are central differences here: 1e-6 at best.
    np.testing.assert_allclose(guessing_se, expected[:, 0], rtol=1e-3)
    np.testing.assert_allclose(feasibility_se, expected[:, 1], rtol=1e-3)
    # A fixed asymptote has no error, and the other one the error it has alone.
    fixed = Asymptotes(placed.asymptotes.lower, jnp.full(N_GROUPS, jnp.inf))
    alone, none = uncertainty.asymptote_errors(groups, fixed, priors)
    np.testing.assert_allclose(alone, 1 / np.sqrt(cross[:, 0, 0]), rtol=1e-3)
    assert np.all(np.asarray(none) == 0)


@pytest.mark.oracle
def test_asymptotes_of_which_the_data_say_nothing_have_the_errors_of_their_priors(passed):
    groups, priors = passed[-1], Priors(guessing=(1.0, 1.0))
    nothing = dataclasses.replace(groups, asymptotes=jnp.zeros((N_GROUPS, 3)))
    asymptotes = Asymptotes.from_natural(jnp.full(N_GROUPS, 0.2), jnp.full(N_GROUPS, 0.9))
    guessing_se, feasibility_se = uncertainty.asymptote_errors(nothing, asymptotes, priors)
    close(guessing_se, np.full(N_GROUPS, 1 / np.sqrt(12)))
    close(feasibility_se, np.full(N_GROUPS, beta(*priors.infeasibility).std()))

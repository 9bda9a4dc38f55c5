"""Expected scores: mean probabilities over all items, by every item or by an interpolant."""

import jax
import numpy as np
import pytest
from scipy.special import expit

from irtjax.fit import expected_score
from irtjax.fit.expected_score import expected_scores
from irtjax.fit.smooth_score import Seen, points_for
from tests.fit import reference
from tests.fit.bridge import Placed
from tests.tolerances import close, tolerance

# Models, dims, and what else a problem has; those above the line meet every item.
DIRECT = {
    "two dims": (24, 2, {"has_effects": False}),
    "everything": (24, 2, {"has_asymptotes": True, "n_components": 2}),
    "three dims": (600, 3, {"has_effects": False}),
}
SMOOTH = {
    "one dim": (520, 1, {"has_effects": False}),
    "two dims of many": (4_100, 2, {"has_effects": False, "has_asymptotes": True}),
    "effects": (2_050, 1, {"has_asymptotes": True, "n_components": 2}),
}
KINDS = DIRECT | SMOOTH


def problem_of(kind):
    n_models, dims, more = KINDS[kind]
    problem = reference.random_problem(
        np.random.default_rng(2), n_models=n_models, n_items=40, dims=dims, n_groups=3, **more
    )
    problem.share = np.random.default_rng(1).dirichlet(np.ones(problem.share.shape[1]), 40)
    return problem


def oracle(problem):
    """Over all items, answered or not, with the full mixture."""
    nodes, weights = reference.hermite(problem.n_nodes)
    total = np.zeros(len(problem.design))
    for j, g in enumerate(problem.group):
        offset = 0 if problem.effect is None else problem.effect[:, g]
        for share, m, V in zip(
            problem.share[j], problem.mean[j], problem.covariance[j], strict=True
        ):
            center = problem.design @ m + offset
            sd = np.sqrt(np.einsum("ia,ab,ib->i", problem.design, V, problem.design))
            s = weights @ expit(center + nodes[:, None] * sd)
            c, d = problem.guessing[g], problem.feasibility[g]
            total += share * (c + (d - c) * s)
    return total / len(problem.group)


def scores(problem, devices=None):
    placed = Placed(problem, 16, devices)
    return placed.run(
        lambda blocks, items, context: expected_scores(blocks, items, context),
        placed.posteriors,
        placed.context,
    )


@pytest.mark.oracle
@pytest.mark.parametrize("kind", list(KINDS))
def test_expected_scores_are_mean_probabilities_over_all_items(kind):
    problem = problem_of(kind)
    context = Placed(problem, 16).context
    assert (points_for(Seen(context.design, context.effect)) is not None) == (kind in SMOOTH)
    if kind in DIRECT:
        close(scores(problem), oracle(problem), kind="reduction")
    else:  # in float64 what is left is the interpolation
        bound = max(1e-9, tolerance("reduction"))
        np.testing.assert_allclose(scores(problem), oracle(problem), atol=bound)


@pytest.mark.parametrize("kind", list(SMOOTH))
def test_the_interpolant_is_what_is_used(kind, monkeypatch):
    problem = problem_of(kind)
    monkeypatch.setitem(expected_score._TOLERANCE, "float32", 0.0)
    direct = scores(problem)
    monkeypatch.setitem(expected_score._TOLERANCE, "float32", np.inf)
    smooth = scores(problem)
    assert np.any(direct != smooth)
    np.testing.assert_allclose(smooth, direct, atol=3e-6)


@pytest.mark.devices
@pytest.mark.parametrize("kind", list(SMOOTH))
def test_four_devices_give_the_scores_of_one(kind):
    one, four = (scores(problem_of(kind), jax.devices()[:n]) for n in (1, 4))
    np.testing.assert_allclose(four, one, atol=1e-6)


@pytest.mark.oracle
def test_where_curves_are_too_steep_for_it_every_model_meets_every_item():
    problem = problem_of("two dims of many")
    problem.mean[..., :-1] *= 30
    problem.covariance *= 1e-4
    close(scores(problem), oracle(problem), kind="solve")

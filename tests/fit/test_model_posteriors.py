"""Posterior means, covariances and expected scores of models that are integrated out."""

import numpy as np
import pytest

from irtjax.fit.model_posteriors import model_posteriors
from irtjax.fit.populations import default_nodes
from tests.fit import models_reference as reference
from tests.fit.models_bridge import PlacedModels
from tests.tolerances import close

KINDS = [("2pl", 1), ("2pl", 2), ("4pl", 1)]
N_DENSE = {1: 5001, 2: 201}


@pytest.fixture(scope="module", params=KINDS, ids=lambda kind: f"{kind[0]}-{kind[1]}d")
def passed(request):
    """The problem, the covariances of its items, and the posteriors that were found."""
    family, dims = request.param
    rng = np.random.default_rng(14)
    problem = reference.random_problem(rng, family, dims=dims, n_models=30)
    placed = PlacedModels(problem, default_nodes(dims))
    n, n_items = problem.items.shape
    root = rng.normal(0, 0.15, (n_items, n, n))
    covariance = root @ root.swapaxes(1, 2)
    found = placed.run(
        lambda blocks, _, items, covariance, populations: model_posteriors(
            blocks, items, covariance, populations, placed.grid, placed.model
        ),
        placed.items,
        covariance.astype(placed.items.slope.dtype),
        placed.populations,
    )
    return problem, covariance, placed.models_first(found)


def moments(problem, grid):
    weight, node = reference.posteriors(problem, problem.items, grid)
    mean = np.einsum("nq,nqk->nk", weight, node)
    away = node - mean[:, None]
    return mean, np.einsum("nq,nqk,nql->nkl", weight, away, away)


@pytest.mark.oracle
def test_means_and_covariances_on_the_same_nodes(passed):
    problem, _, found = passed
    grid = reference.standard_grid(problem.dims, default_nodes(problem.dims))
    mean, covariance = moments(problem, grid)
    close(found.mean, mean, kind="solve", scale=3)
    close(found.posterior_only, covariance, kind="solve", scale=3)


@pytest.mark.oracle
def test_the_default_nodes_are_as_good_as_a_dense_grid(passed):
    problem, _, found = passed
    mean, covariance = moments(
        problem, reference.standard_grid(problem.dims, N_DENSE[problem.dims], width=8.0)
    )
    # In two dims nodes are .6 apart: right for few responses (see `ModelsRoute`), here some 20.
    bound = {1: 2e-4, 2: 0.05}[problem.dims]
    np.testing.assert_allclose(found.mean, mean, atol=bound)
    np.testing.assert_allclose(found.posterior_only, covariance, atol=bound)


@pytest.mark.oracle
def test_errors_of_the_items_are_added(passed):
    """By the delta method on the posterior mean, whose derivative is a complex step."""
    problem, covariance, found = passed
    grid = reference.standard_grid(problem.dims, default_nodes(problem.dims))
    slope = reference.gradient(
        lambda items: reference.posterior_means(problem, items, grid), problem.items
    )
    added = np.einsum("nkaj,jab,nlbj->nkl", slope, covariance, slope)
    close(found.covariance - found.posterior_only, added, kind="solve", scale=3)


@pytest.mark.oracle
def test_expected_scores(passed):
    problem, _, found = passed
    grid = reference.standard_grid(problem.dims, default_nodes(problem.dims))
    weight, node = reference.posteriors(problem, problem.items, grid)
    expected = [
        w @ reference.curves(problem.family, problem.items, place).mean(axis=0)
        for w, place in zip(weight, node, strict=True)
    ]
    close(found.expected_score, np.array(expected), kind="solve")


@pytest.mark.oracle
def test_a_model_without_responses_has_the_posterior_of_its_population(passed):
    problem, _, found = passed
    assert np.all(problem.response[3] == -1)
    g = problem.population[3]
    np.testing.assert_allclose(found.mean[3], problem.mean[g], atol=1e-5)
    spread = problem.factor[g] @ problem.factor[g].T
    np.testing.assert_allclose(found.posterior_only[3], spread, rtol=1e-4, atol=1e-5)

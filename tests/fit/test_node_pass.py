"""The E-step on fixed nodes against NumPy: log-likelihood, masses and expected counts."""

import dataclasses

import numpy as np
import pytest

from irtjax.fit.node_pass import expected_counts
from irtjax.fit.populations import Grid
from tests.fit import models_reference as reference
from tests.fit.models_bridge import PlacedModels
from tests.tolerances import close

N_NODES = {1: 31, 2: 9}
KINDS = [("1pl", 1), ("2pl", 1), ("2pl", 2), ("3pl", 1), ("4pl", 2)]


# Blocks of 256 models of one population: their products are taken in two pieces.
IN_PIECES = {"models_per_block": 256}, {"n_models": 300, "n_populations": 1}
SIZES = [*((family, dims, ({}, {})) for family, dims in KINDS), ("2pl", 1, IN_PIECES)]


@pytest.fixture(scope="module", params=SIZES, ids=lambda kind: f"{kind[0]}-{kind[1]}d")
def passed(request):
    """The problem, its nodes and what the pass found."""
    family, dims, (blocks, size) = request.param
    problem = reference.random_problem(np.random.default_rng(3), family, dims=dims, **size)
    placed = PlacedModels(problem, N_NODES[dims], **blocks)
    found = placed.run(
        lambda blocks, count, items, populations: expected_counts(
            blocks, count, items, populations, placed.grid
        ),
        placed.items,
        placed.populations,
    )
    return problem, reference.standard_grid(dims, N_NODES[dims]), found


@pytest.mark.oracle
def test_log_likelihood(passed):
    problem, grid, found = passed
    expected = reference.log_likelihood(problem, problem.items, grid)
    close(found.log_likelihood, expected, kind="reduction")


@pytest.mark.oracle
def test_masses_and_counts(passed):
    problem, grid, found = passed
    weight, _ = reference.posteriors(problem, problem.items, grid)
    mass, right, wrong = [], [], []
    for g in range(len(problem.mean)):
        own = problem.population == g
        counted = weight[own] * problem.count[own, None]
        mass.append(counted.sum(axis=0))
        right.append(problem.right[own].T @ counted)
        wrong.append(problem.wrong[own].T @ counted)
    close(found.mass, np.array(mass), kind="solve", scale=10)
    close(found.counts.right, np.concatenate(right, axis=1), kind="solve", scale=10)
    close(found.counts.wrong, np.concatenate(wrong, axis=1), kind="solve", scale=10)
    close(found.counts.node, np.concatenate(reference.nodes_of(problem, grid[0])))


@pytest.mark.oracle
def test_counts_add_up_to_the_answers(passed):
    problem, _, found = passed
    close(np.sum(found.mass), problem.count.sum(), kind="reduction")
    close(np.sum(found.counts.right, axis=1), problem.count @ problem.right, kind="reduction")
    close(np.sum(found.counts.wrong, axis=1), problem.count @ problem.wrong, kind="reduction")


@pytest.mark.parametrize("dims", [1, 2])
def test_the_grid_is_that_of_a_standard_normal(dims):
    grid, (node, log_weight) = Grid(dims, 21), reference.standard_grid(dims, 21)
    np.testing.assert_allclose(grid.node, node, rtol=0, atol=1e-12)
    np.testing.assert_allclose(grid.log_weight, log_weight, rtol=1e-12)
    weight = np.exp(grid.log_weight)
    np.testing.assert_allclose(weight @ grid.node, 0, atol=1e-12)
    np.testing.assert_allclose(weight @ grid.node**2, 1, atol=1e-6)
    np.testing.assert_allclose(weight @ grid.node**4, 3, atol=1e-5)


@pytest.mark.oracle
def test_a_pattern_counts_as_often_as_models_have_it():
    problem = reference.random_problem(np.random.default_rng(4), "2pl")
    whole = reference.log_likelihood(problem, problem.items, reference.standard_grid(1, 31))
    rows = np.repeat(np.arange(len(problem.count)), problem.count.astype(int))
    repeated = reference.Problem(
        problem.family,
        problem.response[rows],
        problem.weight[rows],
        problem.population[rows],
        np.ones(len(rows)),
        problem.items,
        problem.mean,
        problem.factor,
    )
    placed = PlacedModels(repeated, 31)
    found = placed.run(
        lambda blocks, count, items, populations: expected_counts(
            blocks, count, items, populations, placed.grid
        ),
        placed.items,
        placed.populations,
    )
    close(found.log_likelihood, whole, kind="reduction")


@pytest.mark.oracle
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind[0]}-{kind[1]}d")
def test_where_every_cell_is_one_answer_half_of_the_rows_do(kind):
    family, dims = kind
    rng = np.random.default_rng(5)
    problem = reference.random_problem(rng, family, dims=dims)
    # Fractions as well: what is not right is wrong.
    response = rng.integers(0, 3, problem.response.shape) / 2
    problem = dataclasses.replace(problem, response=response, weight=np.ones_like(response))
    placed = PlacedModels(problem, N_NODES[dims])

    def found(is_complete):
        return placed.run(
            lambda blocks, count, items, populations: expected_counts(
                blocks, count, items, populations, placed.grid, is_complete=is_complete
            ),
            placed.items,
            placed.populations,
        )

    half, whole = found(True), found(False)
    close(half.log_likelihood, whole.log_likelihood, kind="reduction")
    close(half.mass, whole.mass, kind="solve", scale=10)
    close(half.counts.right, whole.counts.right, kind="solve", scale=10)
    close(half.counts.wrong, whole.counts.wrong, kind="solve", scale=10)
    assert np.all(np.asarray(half.counts.wrong) >= 0)

"""Items that are equal up to rounding go by id: in selections and in adaptive tests."""

import dataclasses

import numpy as np
import pytest

import irtjax as ij
from tests.score.fits import N_ITEMS, fit_of

BUDGET = 5


def alike(dims, seed):
    """A fit whose items differ by rounding only, ids in random order."""
    rng = np.random.default_rng(seed)
    noise = 1 + 2e-7 * rng.integers(-2, 3, (N_ITEMS, dims + 1))
    mean = np.full((N_ITEMS, dims + 1), 0.9) * noise
    covariance = np.broadcast_to(0.05 * np.eye(dims + 1), (N_ITEMS, dims + 1, dims + 1))
    spec = ij.ModelSpec("2pl", dims)
    fit = fit_of(mean, covariance, np.zeros(N_ITEMS), np.ones(N_ITEMS), spec, np.float32)
    ids = [f"q{k:02d}" for k in rng.permutation(N_ITEMS)]
    data = ij.ResponseMatrix.from_dense(fit.data.to_dense(), item_ids=ids)
    return dataclasses.replace(fit, data=data)


@pytest.mark.parametrize("dims", [1, 2])
@pytest.mark.parametrize(
    "settings",
    [
        {"criterion": "d-optimal"},
        {"criterion": "a-optimal"},
        {"criterion": "d-optimal", "method": "exchange"},
        {"criterion": "fisher"},
        {"criterion": "fisher", "method": "milp"},
        {"criterion": "leh"},
        {"criterion": "discrimination"},
    ],
)
def test_the_first_ids_are_selected(dims, settings):
    for seed in range(3):
        found = ij.select_items(alike(dims, seed), BUDGET, **settings).item_ids
        assert found.tolist() == [f"q{k:02d}" for k in range(BUDGET)]


@pytest.mark.parametrize("dims", [1, 2])
def test_the_first_ids_are_asked(dims):
    for seed in range(3):
        fit = alike(dims, seed)
        answers = np.random.default_rng(seed).integers(0, 2, (4, N_ITEMS))
        ids = [f"new-{k}" for k in range(4)]
        new = ij.ResponseMatrix.from_dense(answers, model_ids=ids, item_ids=fit.data.item_ids)
        for _, steps in ij.adapt(fit, new, max_items=BUDGET).steps.groupby("model_id"):
            assert steps["item_id"].tolist() == [f"q{k:02d}" for k in range(BUDGET)]


def test_draws_among_the_best_are_among_the_first_ids():
    asked = [
        ij.adaptive_test(alike(1, seed), randomesque=3, seed=4).next_item() for seed in range(3)
    ]
    assert len(set(asked)) == 1
    assert asked[0] in ("q00", "q01", "q02")

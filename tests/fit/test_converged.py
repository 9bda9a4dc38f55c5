"""Converged means: 100 further steps move no ability by more than .002."""

import jax
import numpy as np
import pytest

from benchmarks.problems import problem_w1
from irtjax.fit.driver import Look, Status, advance, drive
from irtjax.fit.marginal_items import MarginalItems
from irtjax.model.priors import Priors
from irtjax.model.spec import ModelSpec
from tests.fit.fitting import KINDS, placed_blocks, simulated

FURTHER = 100
MOST = 0.002


def _moved(data, spec, group, n_components=1, n_nodes=9):
    """Status, abilities at the end and after 100 further steps, in the published frame."""
    blocks, _, mesh = placed_blocks(data)
    estimator = MarginalItems(
        has_effects=group is not None, n_components=n_components, n_nodes=n_nodes
    )
    look = Look()
    with jax.set_mesh(mesh):
        state = estimator.init(blocks, spec, Priors(), jax.random.key(0))
        state, progress = drive(estimator, blocks, state, look=look)
        before = np.asarray(estimator.finish(blocks, state).ability)
        for _ in range(FURTHER // look.every):
            state = advance(estimator, look.every, blocks, state, look.every).state
        after = np.asarray(estimator.finish(blocks, state).ability)
    return progress, before, after


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "mixture"])
def test_simulated(kind):
    spec, settings = KINDS[kind]
    progress, before, after = _moved(simulated(kind).data, spec, settings.get("group"))
    assert progress.status is Status.converged
    assert np.abs(after - before).max() < MOST


def test_a_mixture_says_so_when_it_does_not_settle():
    # The shares of two components trade places slowly: a status that does not claim too much.
    spec, settings = KINDS["mixture"]
    progress, before, after = _moved(
        simulated("mixture").data, spec, settings["group"], settings["components"]
    )
    if progress.status is Status.converged:
        assert np.abs(after - before).max() < MOST
    else:
        assert progress.status is Status.stalled
        assert np.abs(after - before).max() < 0.1


@pytest.mark.shared
@pytest.mark.parametrize("group", [None, "benchmark"])
def test_w1_at_one_dim(shared_dir, group):
    data = problem_w1(shared_dir).train
    progress, before, after = _moved(data, ModelSpec("2pl"), group)
    assert progress.status is Status.converged
    assert np.abs(after - before).max() < MOST


@pytest.mark.shared
@pytest.mark.slow
def test_w1_at_three_dims(shared_dir):
    data = problem_w1(shared_dir).train
    progress, before, after = _moved(data, ModelSpec("2pl", 3), "benchmark")
    assert progress.status is Status.converged
    assert np.abs(after - before).max() < MOST

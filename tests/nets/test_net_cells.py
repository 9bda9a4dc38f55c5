"""Minibatches visit every cell taken once; validation cells are apart."""

import jax
import jax.numpy as jnp
import numpy as np

from irtjax.data.simulate import simulate
from irtjax.model.spec import ModelSpec
from irtjax.nets.cells import cell_table, is_training_cell, minibatches


def test_minibatches_hold_every_cell_once_those_taken_first():
    cells = simulate(ModelSpec("2pl"), n_models=7, n_items=11, missing=0.2).data.cells()
    table, n = cell_table(cells), len(cells)
    is_taken = np.arange(n) % 3 > 0
    batches, n_steps = minibatches(jax.random.key(1), jnp.asarray(is_taken), 8)
    places, n_taken = np.asarray(batches).ravel(), np.count_nonzero(is_taken)
    assert sorted(places[:n]) == list(range(n))
    assert np.all(places[n:] == n)
    assert np.all(is_taken[places[:n_taken]])
    assert int(n_steps) == -(-n_taken // 8)
    assert float(table.weight[n]) == 0
    assert np.all(np.asarray(table.weight[:n]) == 1)
    other, _ = minibatches(jax.random.key(2), jnp.asarray(is_taken), 8)
    assert np.any(np.asarray(other).ravel()[:n_taken] != places[:n_taken])


def test_validation_cells_are_a_share_at_random_and_at_least_one():
    is_training = is_training_cell(300, 0.2, seed=3)
    assert np.count_nonzero(~is_training) == 60
    assert np.array_equal(is_training, is_training_cell(300, 0.2, seed=3))
    assert np.any(is_training != is_training_cell(300, 0.2, seed=4))
    assert sorted(is_training_cell(2, 0.01, seed=0)) == [False, True]
    assert np.count_nonzero(is_training_cell(3, 0.9, seed=0)) == 1

"""Minibatches visit every cell once; validation cells are apart."""

import jax
import numpy as np

from irtjax.data.simulate import simulate
from irtjax.model.spec import ModelSpec
from irtjax.nets.cells import cell_table, is_training_cell, minibatches


def test_a_minibatch_holds_every_cell_once_and_fills_up_with_the_cell_of_no_weight():
    cells = simulate(ModelSpec("2pl"), n_models=7, n_items=11, missing=0.2).data.cells()
    table = cell_table(cells)
    places = np.asarray(minibatches(jax.random.key(1), len(cells), 8))
    seen, counts = np.unique(places, return_counts=True)
    assert seen[: len(cells)].tolist() == list(range(len(cells)))
    assert np.all(counts[: len(cells)] == 1)
    assert places.size == -(-len(cells) // 8) * 8
    assert float(table.weight[len(cells)]) == 0
    assert np.all(np.asarray(table.weight[: len(cells)]) == 1)
    other = np.asarray(minibatches(jax.random.key(2), len(cells), 8))
    assert np.any(other != places)


def test_validation_cells_are_a_share_at_random_and_at_least_one():
    is_training = is_training_cell(300, 0.2, seed=3)
    assert np.count_nonzero(~is_training) == 60
    assert np.array_equal(is_training, is_training_cell(300, 0.2, seed=3))
    assert np.any(is_training != is_training_cell(300, 0.2, seed=4))
    assert sorted(is_training_cell(2, 0.01, seed=0)) == [False, True]
    assert np.count_nonzero(is_training_cell(3, 0.9, seed=0)) == 1

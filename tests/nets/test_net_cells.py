"""Minibatches visit every cell once; validation cells are apart."""

import jax
import numpy as np

from irtjax.data.simulate import simulate
from irtjax.model.spec import ModelSpec
from irtjax.nets.cells import cell_table, minibatches, split_cells


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


def test_training_and_validation_cells_are_all_cells():
    cells = simulate(ModelSpec("2pl"), n_models=10, n_items=30).data.cells()
    train, validation = split_cells(cells, 0.2, seed=3)
    assert (len(train), len(validation)) == (240, 60)
    both = np.concatenate([train.item_index * 10 + train.model_index,
                           validation.item_index * 10 + validation.model_index])  # fmt: skip
    assert np.sort(both).tolist() == list(range(300))
    again, _ = split_cells(cells, 0.2, seed=3)
    assert np.array_equal(train.item_index, again.item_index)
    assert len(split_cells(cells.taken(slice(0, 2)), 0.2, seed=0)[1]) == 1

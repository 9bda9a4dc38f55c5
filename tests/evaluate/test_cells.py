"""Test responses find their cells in the training matrix, whatever their order."""

import warnings

import numpy as np
import pytest

from irtjax.data.responses import ResponseMatrix
from irtjax.errors import InputError, IrtjaxWarning
from irtjax.evaluate.cells import cells_of_test

RNG = np.random.default_rng(0)


def _train(sparse=False):
    matrix = RNG.integers(0, 2, (6, 9)).astype(float)
    matrix[RNG.random(matrix.shape) < 0.4] = -1
    matrix[:, 4] = -1
    data = ResponseMatrix.from_dense(
        matrix, model_ids=list("abcdef"), item_ids=[f"q{k}" for k in range(9)]
    )
    return data.replace(dense=None, sparse=data.cells()) if sparse else data


@pytest.mark.parametrize("sparse", [False, True])
def test_cells_are_those_of_the_ids_and_sorted(sparse):
    train = _train(sparse)
    absent = np.argwhere(train.to_dense() < 0)
    models = train.model_ids[RNG.permutation(6)]
    items = train.item_ids[RNG.permutation(9)]
    value, weight = {}, {}
    matrix = np.full((6, 9), -1.0)
    weights = np.ones((6, 9))
    for i, j in absent:
        key = (train.model_ids[i], train.item_ids[j])
        value[key], weight[key] = RNG.random(), RNG.integers(1, 5)
        at = list(models).index(key[0]), list(items).index(key[1])
        matrix[at], weights[at] = value[key], weight[key]
    test = ResponseMatrix.from_dense(matrix, model_ids=models, item_ids=items, weight=weights)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cells = cells_of_test(train, test)
    order = cells.item_index * 6 + cells.model_index
    assert np.all(np.diff(order) > 0)
    assert cells.model_index.dtype == cells.item_index.dtype == np.int32
    assert len(cells) == len(absent)
    for k in range(len(cells)):
        key = (train.model_ids[cells.model_index[k]], train.item_ids[cells.item_index[k]])
        assert cells.response[k] == np.float32(value[key])
        assert cells.weight[k] == weight[key]


@pytest.mark.parametrize("sparse", [False, True])
def test_cells_of_the_training_data_are_counted_and_warned_of(sparse):
    train = _train(sparse)
    seen = int(np.count_nonzero(train.to_dense() >= 0))
    everything = ResponseMatrix.from_dense(
        np.ones((6, 9)), model_ids=list(train.model_ids), item_ids=list(train.item_ids)
    )
    with pytest.warns(IrtjaxWarning, match=rf"^{seen} of 54 test responses .*first: model '[ab]'"):
        assert len(cells_of_test(train, everything)) == 54


def test_unknown_ids_are_counted_and_one_is_named():
    train = _train()
    two = ResponseMatrix.from_dense([[1, 1]], model_ids=["a"], item_ids=["new", "newer"])
    with pytest.raises(InputError, match=r"^2 items of the test data .*first: 'new'"):
        cells_of_test(train, two)
    one = ResponseMatrix.from_dense([[1]], model_ids=["z"], item_ids=["q4"])
    with pytest.raises(InputError, match=r"^1 model of the test data is .*'z'"):
        cells_of_test(train, one)


def test_an_unknown_id_without_responses_does_not_matter():
    test = ResponseMatrix.from_dense([[1, -1]], model_ids=["a"], item_ids=["q4", "new"])
    assert cells_of_test(_train(), test).item_index.tolist() == [4]


def test_no_response_at_all():
    test = ResponseMatrix.from_dense([[-1]], model_ids=["a"], item_ids=["q4"])
    with pytest.raises(InputError, match="no response"):
        cells_of_test(_train(), test)

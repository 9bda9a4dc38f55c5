"""Cells given by index: sorted, checked, and refused by name."""

import numpy as np
import pytest

from irtjax.data.cells import Cells
from irtjax.data.responses import ResponseMatrix
from irtjax.errors import InputError


def test_taken_is_the_same_by_mask_slice_and_ranks():
    index = np.arange(4, dtype=np.int32)
    cells = Cells(index, index + 1, np.array([0, 1, 0.5, 1]), np.array([1, 2, 3, 4.0]))
    by_mask = cells.taken(np.array([False, True, True, False]))
    for taken in (by_mask, cells.taken(slice(1, 3)), cells.taken(np.array([1, 2]))):
        assert len(taken) == 2
        assert taken.model_index.tolist() == [1, 2]
        assert taken.item_index.tolist() == [2, 3]
        assert taken.response.tolist() == [1, 0.5]
        assert taken.weight.tolist() == [2, 3]
    assert not cells.is_binary
    assert cells.taken(slice(0, 2)).is_binary


def test_the_same_cell_twice_is_refused_by_name():
    with pytest.raises(InputError, match="item 'y' has two responses of model 'a'"):
        ResponseMatrix.from_cells(
            [0, 1, 0], [1, 0, 1], [1, 0, 1], model_ids=["a", "b"], item_ids=["x", "y"]
        )
    # One of them missing is no duplicate.
    made = ResponseMatrix.from_cells(
        [0, 1, 0], [1, 0, 1], [1, 0, np.nan], model_ids=["a", "b"], item_ids=["x", "y"]
    )
    assert made.n_responses == 2


@pytest.mark.parametrize("index", [[0, 2], [0, -1]])
def test_an_index_past_the_ids_is_refused(index):
    with pytest.raises(InputError, match="model index"):
        ResponseMatrix.from_cells(index, [0, 1], [1, 0], model_ids=["a", "b"], item_ids=["x", "y"])
    with pytest.raises(InputError, match="item index"):
        ResponseMatrix.from_cells([0, 1], index, [1, 0], model_ids=["a", "b"], item_ids=["x", "y"])


def test_columns_of_cells_have_one_length():
    with pytest.raises(InputError, match="3 model indices for 2 cells"):
        ResponseMatrix.from_cells(
            [0, 1, 1], [0, 1], [1, 0], model_ids=["a", "b"], item_ids=["x", "y"]
        )


@pytest.mark.parametrize(
    "given, message",
    [
        (([0, 1.5], [0, 1], [1, 1]), r"model indices must be whole numbers .* \(0.0, ...\)"),
        (([0, 1], ["x", "y"], [1, 1]), r"item indices must be whole numbers .*text \('x', ...\)"),
        (([0, 1], [[0, 1]], [1, 1]), "item indices must be one whole number a cell"),
        (
            ([True, False], [0, 1], [1, 1]),
            "model indices must be whole numbers from 0 on, not bool",
        ),
        (([0, 1], [0, 1], ["right", 1]), "responses must be numbers, not text"),
        (([0, 1], [0, 1], [[1, 1]]), "responses must be one a cell, not 2-dimensional"),
        (([0, 1], [0, 1], [1, -1]), "not in .0, 1.; leave a missing cell out, or give it NaN"),
    ],
)
def test_cells_that_cannot_be_meant(given, message):
    with pytest.raises(InputError, match=message) as caught:
        ResponseMatrix.from_cells(*given, model_ids=["a", "b"], item_ids=["x", "y"])
    assert "\n" not in str(caught.value)


def test_weights_and_ids_of_cells_that_cannot_be_meant():
    given = {"model_ids": ["a", "b"], "item_ids": ["x", "y"]}
    with pytest.raises(InputError, match="3 weights for 2 cells"):
        ResponseMatrix.from_cells([0, 1], [0, 1], [1, 1], weight=[1, 2, 3], **given)
    with pytest.raises(InputError, match="model_ids must be one string a model, not None"):
        ResponseMatrix.from_cells([0, 1], [0, 1], [1, 1], **given | {"model_ids": None})
    assert ResponseMatrix.from_cells([], [], [], **given).n_responses == 0


def test_case_15_counts_and_flat_indices_do_not_overflow():
    # 60,000 x 50,000 is past 2^31 cells; only 4 are observed.
    n_models, n_items = 60_000, 50_000
    made = ResponseMatrix.from_cells(
        [59_999, 0, 59_998, 59_999],
        [49_999, 0, 49_999, 49_998],
        [1, 0, 1, 0],
        model_ids=list(map(str, range(n_models))),
        item_ids=list(map(str, range(n_items))),
    )
    cells = made.cells()
    assert cells.item_index.tolist() == [0, 49_998, 49_999, 49_999]
    assert cells.model_index.tolist() == [0, 59_999, 59_998, 59_999]
    assert made.density == pytest.approx(4 / 3e9)
    assert made.totals("models")[0].sum() == 4

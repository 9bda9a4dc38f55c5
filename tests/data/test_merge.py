"""New responses beside old ones: ids in order, cells once, contradictions named."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

from irtjax.data.merge import cells_not_in, merged_responses
from irtjax.data.responses import ResponseMatrix
from irtjax.errors import InputError, IrtjaxWarning

OLD = ResponseMatrix.from_dense(
    [[1, 0, -1], [0, 1, 1]],
    model_ids=["a", "b"],
    item_ids=["p", "q", "r"],
    item_metadata=pd.DataFrame({"benchmark": ["x", "x", "y"]}),
)
NEW = ResponseMatrix.from_dense(
    [[1, 0, -1], [-1, 1, 1]],
    model_ids=["c", "b"],
    item_ids=["s", "q", "r"],
    item_metadata=pd.DataFrame({"benchmark": ["z", "ignored", "y"], "format": ["f", "g", "h"]}),
)


def test_old_ids_come_first_and_equal_cells_count_once():
    with pytest.raises(InputError, match="item 'q' has the response 1 of model 'b' in the run and"):
        merged_responses(OLD, ResponseMatrix.from_dense([[0]], model_ids=["b"], item_ids=["q"]))
    with pytest.warns(IrtjaxWarning, match="benchmark of 'q' is 'x', not 'ignored'$"):
        found = merged_responses(OLD, NEW)
    assert list(found.model_ids) == ["a", "b", "c"]
    assert list(found.item_ids) == ["p", "q", "r", "s"]
    expected = [[1, 0, -1, -1], [0, 1, 1, -1], [-1, 0, -1, 1]]
    np.testing.assert_array_equal(found.to_dense(), expected)
    assert list(found.item_metadata["benchmark"]) == ["x", "x", "y", "z"]
    assert found.item_metadata["format"].isna().tolist() == [True, False, False, False]


def test_metadata_that_were_missing_are_filled_without_a_word():
    old = dataclasses.replace(OLD, item_metadata=pd.DataFrame({"benchmark": ["x", None, "y"]}))
    new = dataclasses.replace(NEW, item_metadata=pd.DataFrame({"benchmark": ["z", "x", "y"]}))
    found = merged_responses(old, new)
    assert list(found.item_metadata["benchmark"]) == ["x", "x", "y", "z"]


def test_contradictions_are_replaced_when_asked():
    other = ResponseMatrix.from_dense([[0, 0]], model_ids=["b"], item_ids=["q", "r"])
    with pytest.raises(InputError, match=r"2 cells differ; pass --replace"):
        merged_responses(OLD, other)
    found = merged_responses(OLD, other, replace=True)
    np.testing.assert_array_equal(found.to_dense(), [[1, 0, -1], [0, 0, 0]])


def test_weights_are_part_of_a_response():
    heavy = ResponseMatrix.from_dense([[1]], model_ids=["a"], item_ids=["p"], weight=[[3.0]])
    with pytest.raises(InputError, match="item 'p'"):
        merged_responses(OLD, heavy)


def test_cells_that_are_held_out_stay_out():
    cells = OLD.cells().taken(slice(0, 2))
    found = cells_not_in(OLD, cells)
    assert found.n_responses == OLD.n_responses - 2
    assert cells_not_in(found, cells) is found

"""`ResponseMatrix`: values, ids, weights and metadata, kept or refused with their place."""

import numpy as np
import pandas as pd
import pytest

from irtjax.data.checks import MISSING
from irtjax.data.responses import ResponseMatrix
from irtjax.errors import InputError


def test_missing_is_minus_1_nan_none_or_masked():
    expected = np.array([[1, MISSING], [0, 1]], np.int8)
    for dense in (
        [[1, -1], [0, 1]],
        [[1, np.nan], [0, 1]],
        np.array([[1, None], [0, 1]], object),
        np.ma.masked_array([[1, 7], [0, 1]], [[0, 1], [0, 0]]),
    ):
        made = ResponseMatrix.from_dense(dense)
        np.testing.assert_array_equal(made.to_dense(), expected)
        assert made.to_dense().dtype == np.int8
        assert made.n_responses == 3
    booleans = ResponseMatrix.from_dense(np.array([[True, False]]))
    np.testing.assert_array_equal(booleans.to_dense(), [[1, 0]])


def test_case_12_fractions_are_kept_as_they_are():
    made = ResponseMatrix.from_dense([[0.5, 1.0], [1 / 3, 0.0]])
    assert not made.is_binary
    np.testing.assert_array_equal(made.to_dense(), np.array([[0.5, 1], [1 / 3, 0]], np.float32))


@pytest.mark.parametrize("value", [2, -9, 1.0001, -0.5, np.inf, -np.inf, 99])
def test_case_4_a_value_outside_0_and_1_is_refused_with_its_place(value):
    dense = np.zeros((3, 4))
    dense[2, 1] = value
    with pytest.raises(InputError, match=r"of model 'model-2' to item 'item-1' is not in \[0, 1\]"):
        ResponseMatrix.from_dense(dense)
    with pytest.raises(InputError, match="of model 'b' to item 'y'"):
        ResponseMatrix.from_cells(
            [0, 1], [0, 1], [1, value], model_ids=["a", "b"], item_ids=["x", "y"]
        )


@pytest.mark.parametrize(
    "dense, message",
    [
        ([1, 0, 1], "models x items matrix, not 1-dimensional"),
        (np.zeros((2, 2, 2)), "not 3-dimensional"),
        ([["yes", "no"]], "must be numbers"),
        (np.array([[1, "x"]], object), "must be numbers"),
        (np.zeros((2, 2), complex), "must be numbers, not complex128"),
    ],
)
def test_what_is_no_matrix_of_numbers_is_refused(dense, message):
    with pytest.raises(InputError, match=message):
        ResponseMatrix.from_dense(dense)


def test_ids_are_unique_strings_in_the_order_given():
    made = ResponseMatrix.from_dense([[1, 0]], model_ids=[7], item_ids=["b", "a"])
    assert made.model_ids.tolist() == ["7"]
    assert made.item_ids.tolist() == ["b", "a"]
    with pytest.raises(InputError, match="item id 'a' stands twice"):
        ResponseMatrix.from_dense([[1, 0]], item_ids=["a", "a"])
    with pytest.raises(InputError, match="model id '1' stands twice"):
        ResponseMatrix.from_dense([[1], [0]], model_ids=[1, "1"])
    with pytest.raises(InputError, match="3 item ids for 2 items"):
        ResponseMatrix.from_dense([[1, 0]], item_ids=["a", "b", "c"])


@pytest.mark.parametrize("weight", [0.0, -1.0, np.nan, np.inf])
def test_weights_are_positive_and_finite_where_observed(weight):
    with pytest.raises(InputError, match="weights must be positive and finite"):
        ResponseMatrix.from_dense([[1, 0]], weight=[[1, weight]])
    # Of a missing cell nobody asks the weight.
    assert ResponseMatrix.from_dense([[1, -1]], weight=[[1, weight]]).n_responses == 1
    with pytest.raises(InputError, match=r"weight has shape \(1, 3\), the responses \(1, 2\)"):
        ResponseMatrix.from_dense([[1, 0]], weight=[[1, 1, 1]])


def test_metadata_have_one_row_an_item():
    with pytest.raises(InputError, match="item metadata has 1 row for 2 items"):
        ResponseMatrix.from_dense([[1, 0]], item_metadata=pd.DataFrame({"b": ["x"]}))
    with pytest.raises(InputError, match="model metadata has 2 rows for 1 model"):
        ResponseMatrix.from_dense([[1, 0]], model_metadata=pd.DataFrame({"b": ["x", "y"]}))


def test_a_data_frame_brings_its_ids():
    frame = pd.DataFrame([[1, 0], [0, 1]], index=["gpt", "llama"], columns=["q1", "q2"])
    made = ResponseMatrix.from_dense(frame)
    assert made.model_ids.tolist() == ["gpt", "llama"]
    assert made.item_ids.tolist() == ["q1", "q2"]
    given = ResponseMatrix.from_dense(frame, model_ids=["a", "b"])
    assert given.model_ids.tolist() == ["a", "b"]
    assert given.item_ids.tolist() == ["q1", "q2"]
    # An index that only counts names nothing.
    plain = ResponseMatrix.from_dense(frame.reset_index(drop=True))
    assert plain.model_ids.tolist() == ["model-0", "model-1"]
    filtered = frame.set_axis([3, 8])
    assert ResponseMatrix.from_dense(filtered).model_ids.tolist() == ["3", "8"]


def test_a_data_frame_may_hold_nullable_numbers():
    frame = pd.DataFrame({"q1": pd.array([1, None], "Int64"), "q2": pd.array([0, 1], "Int64")})
    np.testing.assert_array_equal(ResponseMatrix.from_dense(frame).to_dense(), [[1, 0], [-1, 1]])


def test_labelled_weights_and_metadata_stand_beside_their_ids():
    frame = pd.DataFrame([[1, 0], [0, 1]], index=["a", "b"], columns=["x", "y"])
    weight = pd.DataFrame([[1, 2], [3, 4]], index=["b", "a"], columns=["y", "x"])
    items = pd.DataFrame({"benchmark": ["of y", "of x"]}, index=["y", "x"])
    models = pd.DataFrame({"size": [1, 2]})
    made = ResponseMatrix.from_dense(
        frame, weight=weight, item_metadata=items, model_metadata=models
    )
    np.testing.assert_array_equal(made.dense_weight, [[4, 3], [2, 1]])
    assert made.item_metadata["benchmark"].tolist() == ["of x", "of y"]
    assert made.item_metadata.index.tolist() == [0, 1]
    assert made.model_metadata["size"].tolist() == [1, 2]
    cells = ResponseMatrix.from_cells(
        [0, 1], [0, 1], [1, 0], model_ids=["a", "b"], item_ids=["x", "y"], item_metadata=items
    )
    assert cells.item_metadata["benchmark"].tolist() == ["of x", "of y"]


FOUR = [[1, 0], [0, 1]]


@pytest.mark.parametrize(
    "given, message",
    [
        ({"model_ids": ["a", None]}, r"model id 1 is empty \(None\); give a model an id"),
        ({"item_ids": ["a", ""]}, r"item id 1 is empty \(''\); give an item an id"),
        ({"item_ids": [np.nan, "a"]}, r"item id 0 is empty \(nan\)"),
        ({"model_ids": "ab"}, "model_ids must be one string a model, not 'ab'"),
        ({"item_ids": 3}, "item_ids must be one string an item, not 3"),
        ({"model_ids": ["a"]}, "1 model id for 2 models"),
        ({"weight": [["a", 1], [1, 1]]}, "weights must be numbers, not text"),
        ({"weight": [[1, 1], [1]]}, "weights must have rows of one length"),
        ({"weight": [[1, 1], [1, -1]]}, "weights must be positive and finite; found -1.0"),
        ({"weight": [[1e39, 1], [1, 1]]}, "found inf"),
        (
            {"weight": pd.DataFrame(FOUR, columns=["p", "q"])},
            "index of the weights' columns has 'p', ..., which are not the item ids",
        ),
        ({"item_metadata": {"b": ["x", "y"]}}, "item metadata must be a data frame, not dict"),
        (
            {"item_metadata": pd.DataFrame({"b": ["x", "y"]}, index=[1, 0])},
            r"index of item metadata has 1, ..., which are not the item ids \('item-0', ...\); set "
            r"them as its index, or .* reset_index\(drop=True\)",
        ),
        (
            {"model_metadata": pd.DataFrame({"b": [1, 2]}, index=["model-0", "model-0"])},
            "which are not the model ids",
        ),
        (
            {"item_metadata": pd.DataFrame([[1, 2], [3, 4]], columns=["b", "b"])},
            "item metadata has two columns 'b'; rename one",
        ),
    ],
)
def test_labels_and_weights_that_cannot_be_meant(given, message):
    with pytest.raises(InputError, match=message) as caught:
        ResponseMatrix.from_dense(FOUR, **given)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "dense, message",
    [
        ([[1, 0], [1]], "responses must have rows of one length; some are shorter"),
        (np.array([[1, "0"]], object), "responses must be numbers, not text, '0'"),
        (pd.DataFrame({"model": ["a"], "q": [1]}), "responses must be numbers, not text, 'a'"),
        (pd.DataFrame([[1]], index=pd.MultiIndex.from_tuples([("a", 1)])), "not a MultiIndex"),
        (np.array([[7]]), r"response 7 of model 'model-0'"),
    ],
)
def test_no_matrix_in_one_plain_line(dense, message):
    with pytest.raises(InputError, match=message) as caught:
        ResponseMatrix.from_dense(dense)
    assert "\n" not in str(caught.value)
    assert "np." not in str(caught.value)


def test_weights_are_added_up_where_something_was_observed():
    weight = [[2, 7.5], [np.inf, 1]]
    made = ResponseMatrix.from_dense([[1, 0], [-1, 1]], weight=weight)
    assert made.sum_of_weights == 10.5
    assert ResponseMatrix.from_dense([[1, 0]]).sum_of_weights is None
    sparse = ResponseMatrix.from_cells(
        [0, 1], [0, 9], [1, 0], weight=[2, 3], model_ids=["a", "b"], item_ids=list("pqrstuvwxy")
    )
    assert sparse.sparse is not None
    assert sparse.sum_of_weights == 5
    assert sparse.replace(sparse=sparse.sparse.taken(slice(0, 0))).sum_of_weights is None


def test_repr_says_what_it_is():
    text = repr(ResponseMatrix.from_dense(np.eye(3)))
    assert text == "ResponseMatrix(3 models x 3 items, 9 responses, dense)"

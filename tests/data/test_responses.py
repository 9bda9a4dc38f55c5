"""`ResponseMatrix`: values, ids, layouts, totals and groups against plain NumPy."""

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import given

from irtjax.data.responses import DENSE_FROM, MISSING, ResponseMatrix
from irtjax.errors import InputError

VALUES = st.sampled_from([0.0, 1.0, 0.25, -1.0, float("nan")])
SHAPES = hnp.array_shapes(min_dims=2, max_dims=2, max_side=6)
MATRICES = hnp.arrays(np.float64, SHAPES, elements=VALUES)


def _masked(dense):
    return np.ma.masked_array(dense, np.isnan(dense) | (dense == MISSING))


@given(dense=MATRICES, data=st.data())
def test_dense_and_cells_hold_the_same_responses(dense, data):
    masked = _masked(dense)
    weight = data.draw(hnp.arrays(np.float32, dense.shape, elements=st.sampled_from([1.0, 2.5])))
    one = ResponseMatrix.from_dense(dense, weight=weight)
    rows, columns = np.nonzero(~np.ma.getmaskarray(masked))
    order = data.draw(st.permutations(range(len(rows))))
    rows, columns = rows[order], columns[order]
    other = ResponseMatrix.from_cells(
        rows,
        columns,
        dense[rows, columns],
        weight=weight[rows, columns],
        model_ids=one.model_ids.tolist(),
        item_ids=one.item_ids.tolist(),
    )
    expected = masked.filled(MISSING).astype(np.float32)
    for made in (one, other):
        np.testing.assert_array_equal(made.to_dense(), expected)
        assert made.n_responses == masked.count()
        assert made.is_binary == bool(np.isin(masked.compressed(), (0, 1)).all())
        assert made.to_dense().dtype == (np.int8 if made.is_binary else np.float32)
        assert (made.sparse is None) == (made.n_responses >= DENSE_FROM * dense.size)
        cells = made.cells()
        key = cells.item_index.astype(int) * len(dense) + cells.model_index
        assert np.all(np.diff(key) > 0)  # by item, then by model, none twice
        np.testing.assert_array_equal(cells.weight, weight[cells.model_index, cells.item_index])


@given(dense=MATRICES, is_sparse=st.booleans(), is_weighted=st.booleans())
def test_totals_are_weighted_means_of_what_was_observed(dense, is_sparse, is_weighted):
    weight = np.arange(1, dense.size + 1, dtype=np.float32).reshape(dense.shape)
    made = ResponseMatrix.from_dense(dense, weight=weight if is_weighted else None)
    if is_sparse:
        made = made.replace(dense=None, dense_weight=None, sparse=made.cells())
    masked = _masked(dense)
    weight = np.ma.masked_array(weight if is_weighted else np.ones(dense.shape), masked.mask)
    for axis, along in (("models", 1), ("items", 0)):
        count, mean = made.totals(axis)
        np.testing.assert_array_equal(count, masked.count(axis=along))
        assert count.dtype == np.int64
        expected = np.ma.average(masked, axis=along, weights=weight).filled(np.nan)
        np.testing.assert_allclose(mean, expected, rtol=1e-6)
    with pytest.raises(ValueError, match="axis is 'models' or 'items'"):
        made.totals("rows")


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


@pytest.mark.parametrize("weight", [0.0, -1.0, np.nan, np.inf])
def test_weights_are_positive_and_finite_where_observed(weight):
    with pytest.raises(InputError, match="weights must be positive and finite"):
        ResponseMatrix.from_dense([[1, 0]], weight=[[1, weight]])
    # Of a missing cell nobody asks the weight.
    assert ResponseMatrix.from_dense([[1, -1]], weight=[[1, weight]]).n_responses == 1
    with pytest.raises(InputError, match=r"weight has shape \(1, 3\), the responses \(1, 2\)"):
        ResponseMatrix.from_dense([[1, 0]], weight=[[1, 1, 1]])


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


def test_groups_are_numbered_in_order_of_first_appearance():
    metadata = pd.DataFrame({"benchmark": ["z", "a", "z"], "number": [2, 2, 10]}, index=[5, 6, 7])
    made = ResponseMatrix.from_dense([[1, 0, 1]], item_metadata=metadata)
    codes, names = made.groups("benchmark")
    assert codes.tolist() == [0, 1, 0]
    assert codes.dtype == np.int32
    assert names == ["z", "a"]
    assert made.groups("number")[1] == ["2", "10"]
    with pytest.raises(InputError, match="column 'topic' to group by; columns: benchmark, number"):
        made.groups("topic")
    gap = made.replace(item_metadata=pd.DataFrame({"benchmark": ["z", None, "z"]}))
    with pytest.raises(InputError, match="item 'item-1' has no value in column 'benchmark'"):
        gap.groups("benchmark")


def test_metadata_have_one_row_an_item():
    with pytest.raises(InputError, match="item metadata has 1 rows for 2 items"):
        ResponseMatrix.from_dense([[1, 0]], item_metadata=pd.DataFrame({"b": ["x"]}))
    with pytest.raises(InputError, match="model metadata has 2 rows for 1 model"):
        ResponseMatrix.from_dense([[1, 0]], model_metadata=pd.DataFrame({"b": ["x", "y"]}))


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


def test_repr_says_what_it_is():
    text = repr(ResponseMatrix.from_dense(np.eye(3)))
    assert text == "ResponseMatrix(3 models x 3 items, 9 responses, dense)"

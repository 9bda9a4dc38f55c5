"""Totals of models and items against NumPy's masked arrays."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from irtjax.data.responses import ResponseMatrix
from tests.data.matrices import MATRICES, masked


@given(dense=MATRICES, is_sparse=st.booleans(), is_weighted=st.booleans())
def test_totals_are_weighted_means_of_what_was_observed(dense, is_sparse, is_weighted):
    weight = np.arange(1, dense.size + 1, dtype=np.float32).reshape(dense.shape)
    made = ResponseMatrix.from_dense(dense, weight=weight if is_weighted else None)
    if is_sparse:
        made = made.replace(dense=None, dense_weight=None, sparse=made.cells())
    oracle = masked(dense)
    weight = np.ma.masked_array(weight if is_weighted else np.ones(dense.shape), oracle.mask)
    for axis, along in (("models", 1), ("items", 0)):
        count, mean = made.totals(axis)
        np.testing.assert_array_equal(count, oracle.count(axis=along))
        assert count.dtype == np.int64
        expected = np.ma.average(oracle, axis=along, weights=weight).filled(np.nan)
        np.testing.assert_allclose(mean, expected, rtol=1e-6)
    with pytest.raises(ValueError, match="axis is 'models' or 'items'"):
        made.totals("rows")


@pytest.mark.parametrize("is_sparse", [False, True])
def test_what_was_counted_cannot_be_written_to(is_sparse):
    mine = np.array([[1, 0], [1, -1]], np.int8)
    made = ResponseMatrix.from_dense(mine, weight=np.ones((2, 2)))
    if is_sparse:
        made = made.replace(dense=None, dense_weight=None, sparse=made.cells())
    kept = [made.dense, made.dense_weight] if made.sparse is None else [made.sparse.response]
    for array in (*kept, *made.totals("models"), *made.totals("items")):
        with pytest.raises(ValueError, match="read-only"):
            array[:] = 0
    assert made.totals("items") is made.totals("items")
    mine[0, 0] = 0  # an array that was given is still its owner's

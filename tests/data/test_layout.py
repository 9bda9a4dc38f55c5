"""A matrix and its cells hold the same, in the layout for their density, either way round."""

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
from hypothesis import given

from irtjax.data.checks import MISSING
from irtjax.data.layout import DENSE_FROM
from irtjax.data.responses import ResponseMatrix
from tests.data.matrices import MATRICES, masked


@given(dense=MATRICES, data=st.data())
def test_dense_and_cells_hold_the_same_responses(dense, data):
    oracle = masked(dense)
    weight = data.draw(hnp.arrays(np.float32, dense.shape, elements=st.sampled_from([1.0, 2.5])))
    one = ResponseMatrix.from_dense(dense, weight=weight)
    rows, columns = np.nonzero(~np.ma.getmaskarray(oracle))
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
    expected = oracle.filled(MISSING).astype(np.float32)
    for made in (one, other):
        np.testing.assert_array_equal(made.to_dense(), expected)
        assert made.n_responses == oracle.count()
        assert made.is_binary == bool(np.isin(oracle.compressed(), (0, 1)).all())
        assert made.to_dense().dtype == (np.int8 if made.is_binary else np.float32)
        assert (made.sparse is None) == (made.n_responses >= DENSE_FROM * dense.size)
        cells = made.cells()
        key = cells.item_index.astype(int) * len(dense) + cells.model_index
        assert np.all(np.diff(key) > 0)  # by item, then by model, none twice
        np.testing.assert_array_equal(cells.weight, weight[cells.model_index, cells.item_index])


@given(dense=MATRICES, is_weighted=st.booleans())
def test_transposed_is_the_other_way_round_and_back(dense, is_weighted):
    weight = np.arange(1, dense.size + 1, dtype=np.float32).reshape(dense.shape)
    made = ResponseMatrix.from_dense(dense, weight=weight if is_weighted else None)
    turned = made.transposed()
    np.testing.assert_array_equal(turned.to_dense(), made.to_dense().T)
    cells = turned.cells()
    key = cells.item_index.astype(int) * dense.shape[1] + cells.model_index
    assert np.all(np.diff(key) > 0)  # sorted anew
    if is_weighted:
        taken = weight.T[cells.model_index, cells.item_index]
        np.testing.assert_array_equal(cells.weight, taken)
    back = turned.transposed()
    np.testing.assert_array_equal(back.to_dense(), made.to_dense())
    assert back.model_ids.tolist() == made.model_ids.tolist()

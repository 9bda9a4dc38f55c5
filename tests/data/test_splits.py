"""Held-out cells: an exact, seeded, uniform choice that loses nothing else."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from irtjax.data.responses import ResponseMatrix
from irtjax.data.splits import holdout
from irtjax.errors import InputError


def _data(seed=0, n_models=7, n_items=30, missing=0.3, fractions=False):
    rng = np.random.default_rng(seed)
    values = rng.random((n_models, n_items))
    matrix = np.round(values * 4) / 4 if fractions else (values < 0.6).astype(float)
    matrix[rng.random(matrix.shape) < missing] = -1
    return ResponseMatrix.from_dense(
        matrix,
        model_ids=[f"m{k}" for k in range(n_models)],
        item_ids=[f"q{k}" for k in range(n_items)],
        weight=1 + rng.integers(0, 5, matrix.shape),
        item_metadata=pd.DataFrame({"benchmark": ["a", "b"] * (n_items // 2)}),
        model_metadata=pd.DataFrame({"family": ["x"] * n_models}),
    )


def _as_sparse(data):
    return data.replace(dense=None, dense_weight=None, sparse=data.cells())


def _positions(cells):
    return set(zip(cells.model_index.tolist(), cells.item_index.tolist(), strict=True))


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10**6),
    share=st.floats(0.02, 0.98),
    missing=st.sampled_from([0.0, 0.3, 0.9]),
    fractions=st.booleans(),
)
def test_both_parts_make_up_the_data(seed, share, missing, fractions):
    data = _data(seed, missing=missing, fractions=fractions)
    n_held_out = round(share * data.n_responses)
    if not 0 < n_held_out < data.n_responses:
        with pytest.raises(InputError, match="leaves some on both sides"):
            holdout(data, share, seed=seed)
        return
    train, test = holdout(data, share, seed=seed)
    kept, before = train.cells(), data.cells()
    assert len(test) == n_held_out
    assert _positions(kept) | _positions(test) == _positions(before)
    assert not _positions(kept) & _positions(test)
    for cells in (kept, test):
        key = cells.item_index.astype(int) * data.n_models + cells.model_index
        assert np.all(np.diff(key) > 0)
        values = data.to_dense()[cells.model_index, cells.item_index]
        np.testing.assert_array_equal(cells.response, values)
    weights = dict(zip(_keys(before), before.weight.tolist(), strict=True))
    for cells in (kept, test):
        assert [weights[key] for key in _keys(cells)] == cells.weight.tolist()


def _keys(cells):
    return zip(cells.model_index.tolist(), cells.item_index.tolist(), strict=True)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.8])
def test_dense_equals_sparse(share):
    data = _data(fractions=True)
    dense_train, dense_test = holdout(data, share, seed=3)
    sparse_train, sparse_test = holdout(_as_sparse(data), share, seed=3)
    assert sparse_train.sparse is not None
    np.testing.assert_array_equal(dense_train.to_dense(), sparse_train.to_dense())
    for name in ("model_index", "item_index", "response", "weight"):
        dense, sparse = getattr(dense_test, name), getattr(sparse_test, name)
        np.testing.assert_array_equal(dense, sparse)
        assert dense.dtype == sparse.dtype


def test_blocks_of_a_dense_matrix_do_not_matter(monkeypatch):
    data = _data()
    _, whole = holdout(data, 0.3, seed=1)
    monkeypatch.setattr("irtjax.data.splits._CELLS_PER_BLOCK", 20)
    _, blocked = holdout(data, 0.3, seed=1)
    assert _positions(whole) == _positions(blocked)


def test_ids_and_metadata_stay_and_the_data_are_not_changed():
    data = _data()
    before = data.to_dense().copy()
    train, _ = holdout(data, 0.2, seed=0)
    np.testing.assert_array_equal(data.to_dense(), before)
    assert train.model_ids.tolist() == data.model_ids.tolist()
    assert train.item_ids.tolist() == data.item_ids.tolist()
    pd.testing.assert_frame_equal(train.item_metadata, data.item_metadata)
    pd.testing.assert_frame_equal(train.model_metadata, data.model_metadata)


def test_same_seed_same_cells():
    data = _data()
    first, again, other = (_positions(holdout(data, 0.2, seed=s)[1]) for s in (5, 5, 6))
    assert first == again
    assert first != other


def test_every_cell_is_as_likely():
    data = ResponseMatrix.from_dense(np.ones((4, 6), int))
    counts = np.zeros((4, 6))
    n_draws = 2000
    for seed in range(n_draws):
        _, test = holdout(data, 0.25, seed=seed)
        counts[test.model_index, test.item_index] += 1
    z = (counts - n_draws / 4) / np.sqrt(n_draws * 0.25 * 0.75)
    assert np.abs(z).max() < 4
    assert np.sum(z**2) == pytest.approx(24, abs=24)  # 4 sd of a chi-square of about 23 degrees


def test_fractions_all_held_out_leave_a_binary_matrix():
    data = ResponseMatrix.from_dense(np.array([[0.5, 1, 0, 1, 0, 1, 1, 0, 1, 0]]))
    seed = next(s for s in range(100) if holdout(data, 0.1, seed=s)[1].response[0] == 0.5)
    assert holdout(data, 0.1, seed=seed)[0].is_binary


@pytest.mark.parametrize("share", [0, 1, -0.1, 1.5])
def test_refuses_shares_outside_zero_and_one(share):
    with pytest.raises(InputError, match="must lie between 0 and 1"):
        holdout(_data(), share, seed=0)


@pytest.mark.parametrize(
    "data, share, message",
    [
        (np.eye(3), 0.1, "holdout takes a ResponseMatrix, not ndarray; make one with read_resp"),
        (_data(), "0.1", "the held-out share must be a number, not '0.1'"),
        (_data(), None, "the held-out share must be a number, not None"),
        (_data(), float("nan"), "the held-out share must be a number, not nan"),
    ],
)
def test_what_is_no_matrix_or_share_is_refused(data, share, message):
    with pytest.raises(InputError, match=message):
        holdout(data, share, seed=0)

"""Folds partition the cells; who places and who is scored."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from irtjax.data.responses import ResponseMatrix
from irtjax.errors import InputError
from irtjax.evaluate.folds import OVER, make_folds


@st.composite
def matrices(draw):
    """Small matrices with missing cells, dense or sparse, every item with a response."""
    shape = draw(st.integers(3, 8)), draw(st.integers(3, 12))
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    response = rng.integers(0, 2, shape)
    is_missing = rng.random(shape) < draw(st.sampled_from([0.0, 0.4, 0.9]))
    is_missing[:2, 0] = False
    return ResponseMatrix.from_dense(np.where(is_missing, -1, response))


def keys(cells):
    return [*zip(cells.item_index.tolist(), cells.model_index.tolist(), strict=True)]


@settings(max_examples=60)
@given(matrices(), st.sampled_from(OVER), st.integers(2, 3), st.integers(0, 5))
def test_folds_partition_the_cells(data, over, n_folds, seed):
    n_units = {"cells": data.n_responses, "items": data.n_items, "models": data.n_models}[over]
    if n_units < n_folds:
        return
    of_unit = np.bincount(data.cells().model_index if over == "models" else data.cells().item_index)
    if over != "cells" and of_unit.max() < 2:
        with pytest.raises(InputError, match="has two responses"):
            make_folds(data, over, n_folds, seed)
        return
    folds = make_folds(data, over, n_folds, seed)
    everything = keys(data.cells())
    scored = [keys(folds.scored(k)) for k in range(n_folds)]
    assert sum(map(len, scored)) == len(set().union(*scored))
    for k in range(n_folds):
        cells = folds.scored(k)
        assert scored[k] == sorted(scored[k])
        np.testing.assert_array_equal(
            cells.response, data.to_dense()[cells.model_index, cells.item_index]
        )
        unscored, fitted = (keys(m.cells()) for m in (folds.unscored(k), folds.fitted(k)))
        assert set(unscored) == set(everything) - set(scored[k])
        left_out = set(everything) - set(fitted)
        assert set(scored[k]) <= left_out
        if over == "cells":
            assert left_out == set(scored[k])
        else:
            unit = 0 if over == "items" else 1
            units = set(np.flatnonzero(folds.fold_of == k).tolist())
            assert left_out == {cell for cell in everything if cell[unit] in units}
            for each in units:
                n = sum(cell[unit] == each for cell in left_out)
                assert sum(cell[unit] == each for cell in scored[k]) == n // 2
    sizes = np.bincount(folds.fold_of, minlength=n_folds)
    assert sizes.sum() == n_units
    assert np.ptp(sizes) <= 1
    if over == "cells":
        assert sorted(cell for each in scored for cell in each) == everything


@pytest.mark.parametrize("over", OVER)
def test_folds_depend_on_the_seed_not_on_the_layout(over):
    rng = np.random.default_rng(0)
    dense = ResponseMatrix.from_dense(
        np.where(rng.random((9, 30)) < 0.7, -1, rng.integers(0, 2, (9, 30)))
    )
    sparse = dense.replace(dense=None, sparse=dense.cells())
    one, same, other = (
        make_folds(each, over, 3, seed) for each, seed in ((dense, 4), (sparse, 4), (dense, 5))
    )
    for k in range(3):
        assert keys(one.scored(k)) == keys(same.scored(k))
        assert keys(one.unscored(k).cells()) == keys(same.unscored(k).cells())
        assert keys(one.fitted(k).cells()) == keys(same.fitted(k).cells())
        if over == "items":
            assert keys(one.placing(k).cells()) == keys(same.placing(k).cells())
    assert any(keys(one.scored(k)) != keys(other.scored(k)) for k in range(3))


def test_what_places_items_is_the_half_that_is_not_scored():
    rng = np.random.default_rng(1)
    data = ResponseMatrix.from_dense(
        rng.integers(0, 2, (6, 9)), weight=rng.integers(1, 4, (6, 9)).astype(float)
    )
    folds = make_folds(data, "items", 2, 0)
    for k in range(2):
        left_out = np.flatnonzero(folds.fold_of == k)
        placing = folds.placing(k)
        assert placing.item_ids.tolist() == data.item_ids[left_out].tolist()
        cells = placing.cells()
        found = {
            (left_out[j], i): w
            for j, i, w in zip(cells.item_index, cells.model_index, cells.weight, strict=True)
        }
        left = set(keys(data.cells())) - set(keys(folds.fitted(k).cells()))
        assert set(found) == left - set(keys(folds.scored(k)))
        assert all(data.dense_weight[i, j] == w for (j, i), w in found.items())


def test_items_with_one_response_are_counted():
    data = ResponseMatrix.from_dense([[1, 0, 1], [-1, 1, 0], [-1, 0, -1]])
    folds = make_folds(data, "items", 3, 0)
    assert folds.n_unscored == 1
    assert sum(len(folds.scored(k)) for k in range(3)) == 2


def test_many_folds_have_codes_of_their_own():
    data = ResponseMatrix.from_dense(np.ones((20, 20), np.int8))
    folds = make_folds(data, "cells", 200, 0)
    assert [len(folds.scored(k)) for k in range(200)] == [2] * 200


@pytest.mark.parametrize(
    "over, n_folds, said",
    [
        ("cell", 3, "not 'cell'"),
        ("cells", 1, "at least 2"),
        ("cells", 2.0, "at least 2"),
        ("cells", True, "at least 2"),
        ("cells", 7, "there are 6"),
        ("items", 4, "at least 4 items"),
        ("models", 3, "there are 2; use fewer folds"),
    ],
)
def test_impossible_folds(over, n_folds, said):
    data = ResponseMatrix.from_dense([[1, 0, 1], [0, 1, 1]])
    with pytest.raises(InputError, match=said):
        make_folds(data, over, n_folds, 0)


def test_nothing_to_score():
    data = ResponseMatrix.from_dense([[1, -1, -1], [-1, 0, -1], [-1, -1, 1]])
    with pytest.raises(InputError, match="no item has two responses"):
        make_folds(data, "items", 3, 0)

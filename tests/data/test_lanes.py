"""Sparse blocks: every observed cell once, in a lane of its item; padding counts for nothing."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from irtjax.data.blocks import make_blocks
from irtjax.data.checks import MISSING
from irtjax.data.lanes import fill_lanes
from irtjax.data.responses import ResponseMatrix


def _matrix(dense, weight=None):
    data = ResponseMatrix.from_dense(dense, weight=weight)
    return data.replace(dense=None, dense_weight=None, sparse=data.cells())


@st.composite
def problems(draw):
    """A sparse matrix with an empty item, an empty model and an item that everyone answered."""
    n_models, n_items = draw(st.integers(6, 200)), draw(st.integers(6, 60))
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    is_fractional = draw(st.booleans())
    values = rng.integers(0, 5, (n_models, n_items)) / 4
    dense = np.where(rng.random(values.shape) < 0.06, values if is_fractional else values > 0.4, -1)
    dense[:, 1] = 1
    dense[2] = -1
    dense[:, 3] = -1
    weight = rng.uniform(0.5, 2, dense.shape) if draw(st.booleans()) else None
    n_groups = draw(st.integers(1, 4))
    group = rng.integers(0, n_groups, n_items)
    group[:n_groups] = np.arange(n_groups)
    size = draw(st.sampled_from([None, 5, 16]))
    return dense, weight, group, size, draw(st.integers(1, 3))


@given(problem=problems())
def test_every_cell_is_in_a_lane_of_its_item(problem):
    dense, weight, group, size, n_shards = problem
    data = _matrix(dense, weight)
    blocks, layout = make_blocks(
        data, group, n_shards=n_shards, items_per_block=size, sparse_below=1.0
    )
    assert blocks.n_blocks % n_shards == 0
    assert int(blocks.n_items) == dense.shape[1]
    if size is not None:
        assert blocks.items_per_block == size
    positions = layout.to_blocks(np.arange(dense.shape[1]), -1)
    np.testing.assert_array_equal(positions >= 0, blocks.is_item)
    item = np.take_along_axis(positions, blocks.lane_item, axis=1)[:, None]
    item = np.broadcast_to(item, blocks.response.shape)
    taken = np.asarray(blocks.response) != MISSING
    assert taken.sum() == data.n_responses
    found = np.full(dense.shape, -1.0)
    found[blocks.cell_model[taken], item[taken]] = blocks.response[taken]
    np.testing.assert_array_equal(found, dense.astype(np.float32))
    if weight is not None:
        kept = np.zeros(dense.shape, np.float32)
        kept[blocks.cell_model[taken], item[taken]] = blocks.weight[taken]
        np.testing.assert_array_equal(kept[dense >= 0], weight.astype(np.float32)[dense >= 0])
        assert np.all(blocks.weight[~taken] == 0)
    assert np.all(np.asarray(blocks.cell_model)[~taken] == 0)


@given(problem=problems())
def test_groups_and_values_go_to_the_blocks_and_back(problem):
    dense, weight, group, size, n_shards = problem
    blocks, layout = make_blocks(
        _matrix(dense, weight), group, n_shards=n_shards, items_per_block=size, sparse_below=1.0
    )
    np.testing.assert_array_equal(layout.from_blocks(blocks.group), group)
    assert np.all((blocks.group >= 0) & (blocks.group < blocks.n_groups))
    named = np.take_along_axis(np.asarray(blocks.slot_group), np.asarray(blocks.slot), axis=1)
    np.testing.assert_array_equal(named, blocks.group)
    values = np.random.default_rng(0).normal(size=(dense.shape[1], 2))
    np.testing.assert_array_equal(layout.from_blocks(layout.to_blocks(values)), values)


@given(problem=problems())
def test_a_matrix_gives_the_lanes_of_its_cells(problem):
    dense, weight, group, size, n_shards = problem
    data = _matrix(dense, weight)
    kept = data.replace(
        sparse=None,
        dense=data.to_dense(),
        dense_weight=None if weight is None else weight.astype(np.float32),
    )
    settings = {"n_shards": n_shards, "items_per_block": size, "sparse_below": 1.0}
    one, other = (make_blocks(each, group, **settings)[0] for each in (data, kept))
    for name in ("response", "weight", "cell_model", "lane_item", "is_item"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


def test_blocks_are_sparse_only_where_asked_and_where_cells_are_few():
    rng = np.random.default_rng(0)
    for density, is_sparse in ((0.05, True), (0.5, False)):
        data = ResponseMatrix.from_dense(np.where(rng.random((40, 50)) < density, 1, -1))
        assert (make_blocks(data, sparse_below=0.2)[0].cell_model is not None) == is_sparse
        assert make_blocks(data)[0].cell_model is None


def _responses(item_index, model_index, n_models, n_items):
    """All right; a pair given twice is one."""
    item, model = np.divmod(np.unique(item_index * n_models + model_index), n_models)
    ids = {"model_ids": np.arange(n_models), "item_ids": np.arange(n_items)}
    return ResponseMatrix.from_cells(model, item, np.ones(len(item)), **ids)


@pytest.mark.parametrize("per_item", [5, 50, 500])
def test_little_of_the_blocks_is_empty(per_item):
    rng = np.random.default_rng(0)
    n_models, n_items = 2_000, 4_000
    count = rng.poisson(per_item, n_items)
    item = np.repeat(np.arange(n_items), count)
    data = _responses(item, rng.integers(0, n_models, len(item)), n_models, n_items)
    lanes = fill_lanes(data, np.arange(n_items), n_shards=1, items_per_block=None)
    assert lanes.response.size < (1.7 if per_item == 5 else 1.3) * data.n_responses
    # Nor do item positions run away.
    assert len(lanes.item) * lanes.items_per_block < 2 * n_items


def test_one_item_that_all_answer_among_rare_ones_costs_its_own_cells():
    rng = np.random.default_rng(0)
    n_models, n_items = 20_000, 3_000
    item = np.concatenate([np.zeros(n_models, int), np.repeat(np.arange(1, n_items), 8)])
    model = np.concatenate([np.arange(n_models), rng.integers(0, n_models, 8 * (n_items - 1))])
    data = _responses(item, model, n_models, n_items)
    lanes = fill_lanes(data, np.arange(n_items), n_shards=1, items_per_block=None)
    assert lanes.response.size < 2 * data.n_responses
    # It is one item of one block, whose lanes hold all its cells.
    block, position = divmod(int(lanes.position[0]), lanes.items_per_block)
    mine = (lanes.item[block] == position)[None] & (lanes.response[block] >= 0)
    np.testing.assert_array_equal(np.sort(lanes.model[block][mine]), np.arange(n_models))


def test_case_15_products_of_models_and_items_beyond_int32():
    # 140,533 models x 60,000 items: 8.4e9 cells, of which a few are observed.
    n_models, n_items, n = 140_533, 60_000, 50_000
    rng = np.random.default_rng(0)
    key = np.unique(rng.integers(0, n_models * n_items, n))
    item, model = key // n_models, key % n_models
    data = ResponseMatrix.from_cells(
        model,
        item,
        rng.integers(0, 2, len(key)),
        model_ids=np.arange(n_models),
        item_ids=np.arange(n_items),
    )
    assert data.n_responses == len(key)
    assert 0 < data.density < 1e-4
    blocks, layout = make_blocks(data, sparse_below=0.2)
    positions = layout.to_blocks(np.arange(n_items), -1)
    taken = blocks.response >= 0
    where = np.take_along_axis(positions, blocks.lane_item, axis=1)[:, None]
    found = np.broadcast_to(where, taken.shape)[taken] * n_models + blocks.cell_model[taken]
    np.testing.assert_array_equal(np.sort(found), key)

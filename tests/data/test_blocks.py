"""Blocks of items: every cell in its place, groups in slots, padding that counts for nothing."""

import hypothesis.strategies as st
import jax
import numpy as np
import pytest
from hypothesis import given

from irtjax.data.blocks import make_blocks
from irtjax.data.checks import MISSING
from irtjax.data.responses import ResponseMatrix


@st.composite
def problems(draw):
    """A small matrix, groups, a block size and a number of shards."""
    n_models, n_items = draw(st.integers(1, 4)), draw(st.integers(1, 30))
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    dense = rng.integers(-1, 2, (n_models, n_items))
    n_groups = draw(st.integers(1, min(5, n_items)))
    group = rng.integers(0, n_groups, n_items)
    group[:n_groups] = np.arange(n_groups)  # no group is empty
    rng.shuffle(group)
    weight = rng.uniform(0.5, 2, dense.shape) if draw(st.booleans()) else None
    return dense, group, weight, draw(st.integers(1, 9)), draw(st.integers(1, 3))


@given(problem=problems())
def test_every_cell_is_in_its_place(problem):
    dense, group, weight, size, n_shards = problem
    data = ResponseMatrix.from_dense(dense, weight=weight)
    blocks, layout = make_blocks(data, group, items_per_block=size, n_shards=n_shards)
    assert blocks.n_models == len(dense)
    assert int(blocks.n_items) == dense.shape[1]
    assert blocks.n_groups == group.max() + 1
    assert blocks.items_per_block == size
    assert blocks.n_blocks % n_shards == 0
    assert blocks.response.shape == (blocks.n_blocks, len(dense), size)
    back = layout.from_blocks(np.moveaxis(np.asarray(blocks.response), 1, -1)).T
    np.testing.assert_array_equal(back, dense)
    np.testing.assert_array_equal(layout.from_blocks(blocks.group), group)
    if weight is None or data.cells().weight.size == 0:
        return
    kept = layout.from_blocks(np.moveaxis(np.asarray(blocks.weight), 1, -1)).T
    np.testing.assert_array_equal(kept[dense >= 0], weight.astype(np.float32)[dense >= 0])


@given(problem=problems())
def test_padding_is_missing_and_of_no_slot(problem):
    dense, group, weight, size, n_shards = problem
    data = ResponseMatrix.from_dense(dense, weight=weight)
    blocks, _ = make_blocks(data, group, items_per_block=size, n_shards=n_shards)
    is_item = np.asarray(blocks.is_item)
    assert is_item.sum() == dense.shape[1]
    padding = np.asarray(blocks.response)[np.broadcast_to(~is_item[:, None], blocks.response.shape)]
    assert np.all(padding == MISSING)
    # Padding has a valid group, so that it can be looked up.
    assert np.all((np.asarray(blocks.group) >= 0) & (np.asarray(blocks.group) < blocks.n_groups))


@given(problem=problems())
def test_slots_name_the_groups_of_their_items(problem):
    dense, group, _, size, n_shards = problem
    blocks, _ = make_blocks(
        ResponseMatrix.from_dense(dense), group, items_per_block=size, n_shards=n_shards
    )
    slot, slot_group = np.asarray(blocks.slot), np.asarray(blocks.slot_group)
    named = np.take_along_axis(slot_group, slot, axis=1)
    np.testing.assert_array_equal(named, blocks.group)
    for k in range(blocks.n_blocks):
        used = slot_group[k][slot_group[k] < blocks.n_groups]
        # Items are sorted by group: each group has one slot of a block, and few are met.
        assert len(np.unique(used)) == len(used)
        assert np.all(slot_group[k][len(used) :] == blocks.n_groups)


@given(problem=problems())
def test_layout_there_and_back(problem):
    dense, group, _, size, n_shards = problem
    _, layout = make_blocks(
        ResponseMatrix.from_dense(dense), group, items_per_block=size, n_shards=n_shards
    )
    values = np.random.default_rng(0).normal(size=(dense.shape[1], 2, 3))
    np.testing.assert_array_equal(layout.from_blocks(layout.to_blocks(values)), values)
    filled = layout.to_blocks(values, fill=9.0)
    assert np.sum(filled == 9.0) == (filled.size - values.size)


def test_sparse_and_dense_make_the_same_blocks():
    dense = np.random.default_rng(0).integers(-1, 2, (6, 40))
    weight = np.random.default_rng(1).uniform(1, 2, dense.shape)
    for each in (None, weight):
        data = ResponseMatrix.from_dense(dense, weight=each)
        sparse = data.replace(dense=None, dense_weight=None, sparse=data.cells())
        one, two = (make_blocks(d, items_per_block=16)[0] for d in (data, sparse))
        assert jax.tree.structure(one) == jax.tree.structure(two)
        for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(two), strict=True):
            np.testing.assert_array_equal(a, b)


def test_without_weights_there_are_none_and_without_groups_there_is_one():
    blocks, _ = make_blocks(ResponseMatrix.from_dense(np.ones((3, 5), int)))
    assert blocks.weight is None
    assert blocks.n_groups == 1
    assert blocks.response.dtype == np.int8


@pytest.mark.parametrize(
    "n_models, n_items, most", [(12, 41_871, 4096), (100, 34_000, 512), (5_000, 1_000, 64)]
)
def test_a_block_stays_in_cache(n_models, n_items, most):
    data = ResponseMatrix.from_cells(
        [0],
        [0],
        [1],
        model_ids=list(map(str, range(n_models))),
        item_ids=list(map(str, range(n_items))),
    )
    size = make_blocks(data)[0].items_per_block
    assert size == most
    assert size * n_models <= max(51_200, 64 * n_models)


def test_few_items_share_a_block_shape():
    shapes = set()
    for n_items in (129, 200, 256):
        blocks, _ = make_blocks(ResponseMatrix.from_dense(np.ones((12, n_items), int)))
        structure = jax.tree.structure(blocks)
        shapes.add((structure, tuple(leaf.shape for leaf in jax.tree.leaves(blocks))))
    assert len(shapes) == 1

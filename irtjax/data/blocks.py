"""The response matrix as equally shaped blocks of items, the form the device streams."""

import numpy as np
from jaxtyping import Array, Bool, Float, Int

from irtjax.data.checks import MISSING
from irtjax.data.lanes import fill_lanes
from irtjax.data.responses import ResponseMatrix
from irtjax.model.pytree import pytree_dataclass, static_field

__all__ = ["Blocks", "BlockLayout", "make_blocks"]

# Cells a block: float32 intermediates of this size stay in a core's second-level cache.
_CELLS_PER_BLOCK = 51_200
_ITEMS_PER_BLOCK = (64, 4096)


@pytree_dataclass
class Blocks:
    """All responses, blocked by items; every block has the same shape.

    Items are sorted by group, so that a block meets few groups ("slots"): sums over groups are
    small matrix products within the block. Positions past the last item are padding. The number of
    items is no part of the structure: matrices that fill the same blocks share a compilation.

    Dense blocks have a row a model and a column an item. Sparse ones hold the observed cells only,
    in lanes (see `irtjax.data.lanes`): `cell_model` is the model of each cell, `lane_item` the
    position within the block of each lane's item. Both are None for dense blocks.
    """

    response: Float[Array, "blocks rows columns"] | Int[Array, "blocks rows columns"]
    weight: Float[Array, "blocks rows columns"] | None
    group: Int[Array, "blocks items"]
    slot: Int[Array, "blocks items"]
    slot_group: Int[Array, "blocks slots"]
    is_item: Bool[Array, "blocks items"]
    n_models: int = static_field()
    n_groups: int = static_field()
    cell_model: Int[Array, "blocks width lanes"] | None = None
    lane_item: Int[Array, "blocks lanes"] | None = None

    @property
    def n_blocks(self) -> int:
        """Number of blocks, padding blocks included."""
        return self.response.shape[0]

    @property
    def n_items(self) -> Int[Array, ""]:
        """Number of items, without padding."""
        return self.is_item.sum()

    @property
    def items_per_block(self) -> int:
        """Number of item positions of a block."""
        return self.is_item.shape[1]


class BlockLayout:
    """Where each item of the matrix sits in the blocks: maps host arrays there and back."""

    def __init__(
        self,
        order: np.ndarray,
        n_blocks: int,
        items_per_block: int,
        position: np.ndarray | None = None,
    ) -> None:
        self.order = order
        self.shape = (n_blocks, items_per_block)
        self.position = np.arange(len(order)) if position is None else position

    def to_blocks(self, values: np.ndarray, fill: float = 0) -> np.ndarray:
        """From items-first `(items, ...)` to `(blocks, items, ...)`."""
        padded = np.full((self.shape[0] * self.shape[1], *values.shape[1:]), fill, values.dtype)
        padded[self.position] = values[self.order]
        return padded.reshape(*self.shape, *values.shape[1:])

    def from_blocks(self, blocked: np.ndarray) -> np.ndarray:
        """From `(blocks, items, ...)` back to items-first, in the matrix's order."""
        flat = np.asarray(blocked).reshape(self.shape[0] * self.shape[1], *blocked.shape[2:])
        values = np.empty((len(self.order), *flat.shape[1:]), flat.dtype)
        values[self.order] = flat[self.position]
        return values


def make_blocks(
    data: ResponseMatrix,
    group: np.ndarray | None = None,
    *,
    n_shards: int = 1,
    items_per_block: int | None = None,
    sparse_below: float = 0.0,
) -> tuple[Blocks, BlockLayout]:
    """Cut the matrix into blocks of items for the device.

    Args:
        data: the responses.
        group: group code of each item (0, 1, ...), or None for one group.
        n_shards: the number of blocks is a multiple of this (devices of the items mesh).
        items_per_block: chosen so that a block's cells stay in cache, without.
        sparse_below: blocks hold the observed cells only, in lanes, where fewer than this share of
            all are observed.

    Returns:
        Host arrays as `Blocks`, and the layout that maps items to positions.
    """
    codes = np.zeros(data.n_items, np.int32) if group is None else np.asarray(group, np.int32)
    order = np.argsort(codes, kind="stable")
    lanes = None
    if data.density < sparse_below:
        lanes = fill_lanes(data, order, n_shards=n_shards, items_per_block=items_per_block)
        layout = BlockLayout(order, len(lanes.item), lanes.items_per_block, lanes.position)
        response, weight = lanes.response, lanes.weight
    else:
        size = items_per_block or _items_per_block(data.n_models, data.n_items, n_shards)
        n_blocks = -(-max(data.n_items, 1) // size)
        layout = BlockLayout(order, -(-n_blocks // n_shards) * n_shards, size)
        response, weight = _dense_cells(data, layout)
    n_groups = int(codes.max()) + 1 if data.n_items else 1
    blocked_group = _pad_with_last(layout, codes)
    slot, slot_group = _slots(blocked_group, n_groups)
    is_item = layout.to_blocks(np.ones(data.n_items, bool), False)
    blocks = Blocks(
        response,  # type: ignore[arg-type]
        weight,  # type: ignore[arg-type]
        blocked_group,  # type: ignore[arg-type]
        slot,  # type: ignore[arg-type]
        slot_group,  # type: ignore[arg-type]
        is_item,  # type: ignore[arg-type]
        data.n_models,
        n_groups,
        None if lanes is None else lanes.model,  # type: ignore[arg-type]
        None if lanes is None else lanes.item,  # type: ignore[arg-type]
    )
    return blocks, layout


def _dense_cells(data: ResponseMatrix, layout: BlockLayout) -> tuple[np.ndarray, np.ndarray | None]:
    """Responses and weights as blocks x models x items."""
    order = layout.order
    is_sorted = bool(np.all(order[1:] > order[:-1]))
    response = _block_cells(data.to_dense(), order, is_sorted, layout.shape, MISSING)
    if data.is_weighted:
        weight = _block_cells(_dense_weight(data), order, is_sorted, layout.shape, 0)
        return response, weight
    return response, None


def _items_per_block(n_models: int, n_items: int, n_shards: int) -> int:
    low, high = _ITEMS_PER_BLOCK
    size = 1 << int(np.log2(max(_CELLS_PER_BLOCK / max(n_models, 1), 1)))
    # Few items: one block a shard, rounded up so that nearby sizes share a compilation.
    most = max(8, 1 << int(np.ceil(np.log2(max(n_items / n_shards, 1)))))
    return int(min(np.clip(size, low, high), most))


def _block_cells(
    matrix: np.ndarray, order: np.ndarray, is_sorted: bool, shape: tuple[int, int], fill: float
) -> np.ndarray:
    n_models = matrix.shape[0]
    n_blocks, size = shape
    blocked = np.full((n_blocks, n_models, size), fill, matrix.dtype)
    for k in range(n_blocks):
        start, stop = k * size, min((k + 1) * size, len(order))
        if stop <= start:
            break
        columns = slice(start, stop) if is_sorted else order[start:stop]
        blocked[k, :, : stop - start] = matrix[:, columns]
    return blocked


def _dense_weight(data: ResponseMatrix) -> np.ndarray:
    if data.dense_weight is not None:
        assert data.dense is not None
        return np.where(data.dense >= 0, data.dense_weight, np.float32(0))
    assert data.sparse is not None
    weight = np.zeros((data.n_models, data.n_items), np.float32)
    weight[data.sparse.model_index, data.sparse.item_index] = data.sparse.weight
    return weight


def _pad_with_last(layout: BlockLayout, codes: np.ndarray) -> np.ndarray:
    """Group of each position; padding is of the group of the item before it."""
    blocked = layout.to_blocks(codes)
    # Items are in the order of their groups.
    return np.maximum.accumulate(blocked.ravel()).reshape(blocked.shape)


def _slots(group: np.ndarray, n_groups: int) -> tuple[np.ndarray, np.ndarray]:
    """Number the groups within each block; unused slots point past the last group."""
    starts = np.zeros(group.shape, np.int32)
    starts[:, 1:] = group[:, 1:] != group[:, :-1]
    slot = np.cumsum(starts, axis=1, dtype=np.int32)
    n_slots = int(slot.max()) + 1
    slot_group = np.full((group.shape[0], n_slots), n_groups, np.int32)
    rows = np.repeat(np.arange(group.shape[0]), group.shape[1])
    slot_group[rows, slot.ravel()] = group.ravel()
    return slot, slot_group

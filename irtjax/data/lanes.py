"""Observed cells in equally shaped blocks, without a place for those that are missing.

A block holds the cells of consecutive items in `width` rows and `lanes` columns. An item takes as
many lanes as its cells need, and no lane is shared: sums over the cells of an item are sums down
the lanes, which are vector operations over all lanes of a block, and a few additions of lanes.
A lane is short, so that little of it is empty whether items have 5 responses or 10,000.
"""

import dataclasses
import itertools

import numpy as np

from irtjax.data.cells import Cells, observed_cells
from irtjax.data.checks import MISSING
from irtjax.data.responses import ResponseMatrix

__all__ = ["Lanes", "fill_lanes"]

# Cells a block: intermediates of this size stay in cache, and the sums over the models that every
# block adds to (one number a model and statistic) are small beside them.
_CELLS_PER_BLOCK = 51_200
_CELLS_PER_MODEL = 4
_WIDTHS = (4, 8, 16, 32, 64)
# What a lane costs beside its cells, in cells: gathering its item's numbers, adding its sums.
_LANE_COST = 3
_ROUND_LANES, _ROUND_ITEMS = 64, 16


@dataclasses.dataclass(frozen=True, eq=False)
class Lanes:
    """Blocks of lanes, and the position of each item of the given order in the blocks.

    `response` is -1, `weight` 0 and `model` 0 where a lane is not full; `item` is the position
    within the block of the item that a lane belongs to (0 for lanes without cells).
    """

    response: np.ndarray
    weight: np.ndarray | None
    model: np.ndarray
    item: np.ndarray
    position: np.ndarray
    items_per_block: int


def fill_lanes(
    data: ResponseMatrix, order: np.ndarray, *, n_shards: int, items_per_block: int | None
) -> Lanes:
    """Cut the observed cells into blocks of lanes.

    Args:
        data: the responses, in either layout; of a dense matrix one block of cells is copied.
        order: the items in the order of the blocks.
        n_shards: the number of blocks is a multiple of this.
        items_per_block: most items of a block; chosen without.
    """
    n_items = len(order)
    count = data.totals("items")[0]
    width = _best_width(count)
    n_lanes_of = -(-count[order] // width)
    n_lanes, size = _shape(n_lanes_of, data.n_models, width, n_shards, items_per_block)
    starts = _block_starts(n_lanes_of, n_lanes, size)
    n_blocks = -(-(len(starts) - 1) // n_shards) * n_shards
    shape = (n_blocks, width, n_lanes)
    response = np.full(shape, MISSING, np.int8 if data.is_binary else np.float32)
    model = np.zeros(shape, np.int32)
    weight = np.zeros(shape, np.float32) if data.is_weighted else None
    item = np.zeros((n_blocks, n_lanes), np.int32)
    position = np.empty(n_items, np.int64)
    for k, (start, stop) in enumerate(itertools.pairwise(starts)):
        taken = n_lanes_of[start:stop]
        position[start:stop] = k * size + np.arange(stop - start)
        item[k, : taken.sum()] = np.repeat(np.arange(stop - start, dtype=np.int32), taken)
        cells = _cells_of(data, order[start:stop], count)
        row, lane = _places(count[order[start:stop]], taken, width)
        response[k, row, lane] = cells.response
        model[k, row, lane] = cells.model_index
        if weight is not None:
            weight[k, row, lane] = cells.weight
    return Lanes(response, weight, model, item, position, size)


def _best_width(count: np.ndarray) -> int:
    """The width at which cells, empty places and the lanes' own cost are least."""
    cost = [int(np.sum(-(-count // width))) * (width + _LANE_COST) for width in _WIDTHS]
    return _WIDTHS[int(np.argmin(cost))]


def _shape(
    n_lanes_of: np.ndarray, n_models: int, width: int, n_shards: int, items_per_block: int | None
) -> tuple[int, int]:
    """Lanes and items of a block."""
    total, longest = int(n_lanes_of.sum()), int(n_lanes_of.max(initial=1))
    lanes = max(_CELLS_PER_BLOCK, _CELLS_PER_MODEL * n_models) // width
    lanes = max(min(lanes, -(-total // n_shards)), longest, 1)
    lanes = -(-lanes // _ROUND_LANES) * _ROUND_LANES
    if items_per_block is not None:
        return lanes, items_per_block
    # Half as many items again as fill the lanes on average: blocks of short items close by number.
    size = max(int(1.5 * len(n_lanes_of) * lanes / max(total, 1)), 1)
    size = min(size, -(-max(len(n_lanes_of), 1) // n_shards))
    return lanes, -(-size // _ROUND_ITEMS) * _ROUND_ITEMS


def _block_starts(n_lanes_of: np.ndarray, n_lanes: int, size: int) -> np.ndarray:
    """First item of each block, and the end: a block closes when its lanes or items are full."""
    filled = np.concatenate([[0], np.cumsum(n_lanes_of, dtype=np.int64)])
    starts = [0]
    while starts[-1] < len(n_lanes_of):
        start = starts[-1]
        full = int(np.searchsorted(filled, filled[start] + n_lanes, side="right")) - 1
        starts.append(min(full, start + size, len(n_lanes_of)))
    return np.array(starts if len(starts) > 1 else [0, 0])


def _cells_of(data: ResponseMatrix, items: np.ndarray, count: np.ndarray) -> Cells:
    """The cells of some items, those of each item next to each other; `count` is of all items."""
    if data.sparse is None:
        assert data.dense is not None
        weight = None if data.dense_weight is None else data.dense_weight[:, items]
        return observed_cells(data.dense[:, items], weight)
    first = np.searchsorted(data.sparse.item_index, items)
    return data.sparse.taken(np.repeat(first, count[items]) + _rank(count[items]))


def _places(count: np.ndarray, n_lanes_of: np.ndarray, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and lanes of the cells of a block's items."""
    rank = _rank(count)
    first_lane = np.cumsum(n_lanes_of) - n_lanes_of
    return rank % width, np.repeat(first_lane, count) + rank // width


def _rank(count: np.ndarray) -> np.ndarray:
    """Of each cell within its item."""
    return np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)

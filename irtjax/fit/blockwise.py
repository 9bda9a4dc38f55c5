"""Scan over the blocks of every device, with sums that do not lose digits."""

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from irtjax.data.blocks import Blocks
from irtjax.fit.cell_index import CellIndex
from irtjax.fit.kernel import BlockData
from irtjax.model.pytree import pytree_dataclass
from irtjax.parallel import BLOCKED, REPLICATED, map_over_items, sum_over_items, varying_over_items

__all__ = ["BlockSums", "BlockView", "pooled", "scan_blocks"]

_T = TypeVar("_T")


@pytree_dataclass
class BlockView:
    """One block as a visit sees it: responses, and which group each item is of.

    `in_slot` is 1 where an item (not padding) is of the slot's group; `slot_group` is the group of
    each slot, one past the last for unused slots. `index` says which model and item the cells of a
    sparse block are of; without, `data` has a row a model and a column an item.
    """

    data: BlockData
    in_slot: Float[Array, "slots items"]
    slot_group: Int[Array, " slots"]
    group: Int[Array, " items"]
    is_item: Bool[Array, " items"]
    index: CellIndex | None = None


@pytree_dataclass
class BlockSums:
    """What a visit sums: over all items (`total`) and over items of a group (`by_group`).

    Leaves of `by_group` have slots as the first axis when a visit returns them, groups after.
    """

    total: Any
    by_group: Any


def scan_blocks(
    visit: Callable[[BlockView, Any, Any], tuple[BlockSums, Any]],
    blocks: Blocks,
    per_block: Any,
    context: Any,
    dtype: Any,
) -> tuple[BlockSums, Any]:
    """Run `visit(view, per_block, context) -> (sums, output)` over all blocks of all devices.

    Additions over blocks are compensated: thousands of float32 additions otherwise lose the
    digits that decide convergence, and one device would differ from four.

    Args:
        visit: pure function of one block.
        blocks: the responses, spread over the items mesh of the surrounding `jax.set_mesh`.
        per_block: pytree with blocks as the first axis.
        context: pytree that every block sees.
        dtype: floating type of the computation.

    Returns:
        The sums over all blocks of all devices (groups without padding), and the outputs with
        blocks as the first axis.
    """
    n_groups = blocks.n_groups

    # Traced once, for the shapes of its sums and for the loop.
    @functools.partial(jax.jit, inline=True)
    def visited(cells: Blocks, per_block: Any, context: Any) -> tuple[BlockSums, Any]:
        return visit(_view(cells, dtype), per_block, context)

    def on_device(blocks: Blocks, per_block: Any, context: Any) -> tuple[BlockSums, Any]:
        def body(carry: tuple[BlockSums, BlockSums], block: Any) -> tuple[Any, Any]:
            cells, per_block = block
            sums, output = visited(cells, per_block, context)
            return _add(carry, sums, cells.slot_group), output

        first = jax.tree.map(lambda leaf: leaf[0], (blocks, per_block))
        shapes, _ = jax.eval_shape(visited, *first, context)
        zero = varying_over_items(_zeros(shapes, n_groups + 1))
        if blocks.response.shape[0] == 1:
            # The only block of the device: a loop would take as long again to compile.
            slot_group = first[0].slot_group
            sums, output = visited(*first, context)
            placed = sums.by_group
            if n_groups > 1 or len(slot_group) > 1:
                placed = jax.tree.map(
                    lambda empty, leaf: empty.at[slot_group].set(leaf),
                    zero.by_group,
                    placed,
                )
            found = sum_over_items(BlockSums(sums.total, placed))
            return found, jax.tree.map(lambda leaf: leaf[None], output)
        (sums, rest), output = jax.lax.scan(body, (zero, zero), (blocks, per_block))
        return jax.tree.map(jnp.add, sum_over_items(sums), sum_over_items(rest)), output

    run = map_over_items(on_device, (BLOCKED, BLOCKED, REPLICATED), (REPLICATED, BLOCKED))
    sums, output = run(blocks, per_block, context)
    return BlockSums(sums.total, jax.tree.map(lambda leaf: leaf[:n_groups], sums.by_group)), output


def pooled(sums: _T) -> _T:
    """Sums over all groups, as one group."""
    return jax.tree.map(lambda leaf: jnp.sum(leaf, axis=0, keepdims=True), sums)


def _view(block: Blocks, dtype: Any) -> BlockView:
    observed = block.response >= 0
    response = jnp.where(observed, block.response, jnp.zeros_like(block.response)).astype(dtype)
    weight = observed.astype(dtype)
    if block.weight is not None:
        weight = weight * block.weight.astype(dtype)
    index = None
    if block.cell_model is not None and block.lane_item is not None:
        slot = block.slot[block.lane_item]
        index = CellIndex(
            block.cell_model, block.lane_item, slot, block.n_models, block.is_item.shape[0]
        )
    slots = jnp.arange(block.slot_group.shape[0], dtype=block.slot.dtype)
    in_slot = (block.slot[None] == slots[:, None]) & block.is_item
    return BlockView(
        BlockData(response, weight),
        in_slot.astype(dtype),
        block.slot_group,
        block.group,
        block.is_item,
        index,
    )


def _zeros(shapes: BlockSums, n_groups: int) -> BlockSums:
    return BlockSums(
        jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes.total),
        jax.tree.map(
            lambda leaf: jnp.zeros((n_groups, *leaf.shape[1:]), leaf.dtype), shapes.by_group
        ),
    )


def _add(
    carry: tuple[BlockSums, BlockSums], sums: BlockSums, slot_group: Int[Array, " slots"]
) -> tuple[BlockSums, BlockSums]:
    def here(leaf: Array) -> Array:
        return leaf[slot_group]

    def place(leaf: Array, value: Array) -> Array:
        # Unused slots all point at the padding group, whose value nobody reads.
        return leaf.at[slot_group].set(value)

    total, total_rest = _two_sum(carry[0].total, carry[1].total, sums.total)
    grouped, grouped_rest = _two_sum(
        jax.tree.map(here, carry[0].by_group), jax.tree.map(here, carry[1].by_group), sums.by_group
    )
    return (
        BlockSums(total, jax.tree.map(place, carry[0].by_group, grouped)),
        BlockSums(total_rest, jax.tree.map(place, carry[1].by_group, grouped_rest)),
    )


def _two_sum(total: Any, rest: Any, part: Any) -> tuple[Any, Any]:
    """Add exactly: the rounding error of each addition is kept in `rest` (Knuth's two-sum)."""

    def error(a: Array, b: Array, rounded: Array) -> Array:
        from_b = rounded - a
        return (a - (rounded - from_b)) + (b - from_b)

    rounded = jax.tree.map(jnp.add, total, part)
    errors = jax.tree.map(error, total, part, rounded)
    return rounded, jax.tree.map(jnp.add, rest, errors)

"""Responses as a table of cells on the device: what minibatches are drawn from."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from irtjax.data.blocks import Blocks
from irtjax.data.cells import Cells
from irtjax.model.pytree import pytree_dataclass

__all__ = ["CellTable", "NetBlocks", "cell_table", "minibatches", "split_cells"]


@pytree_dataclass
class CellTable:
    """Observed cells; one more of weight 0 comes last, which fills up minibatches."""

    model: Int[Array, " cells"]
    item: Int[Array, " cells"]
    response: Float[Array, " cells"]
    weight: Float[Array, " cells"]

    def taken(self, index: Int[Array, " batch"]) -> "CellTable":
        """Some of the cells."""
        return jax.tree.map(lambda leaf: leaf[index], self)


@pytree_dataclass
class NetBlocks:
    """Everything networks are trained and judged on.

    `share` of an item is 1 over its training responses (0 without): what of its prior each of them
    carries. `order` is which item each place of the blocks holds.
    """

    train: CellTable
    validation: CellTable
    model_features: Float[Array, "models features"] | None
    item_features: Float[Array, "items features"] | None
    share: Float[Array, " items"]
    blocks: Blocks
    order: Int[Array, "blocks items"]

    @property
    def response(self) -> Array:
        """Responses of the blocks."""
        return self.blocks.response


def split_cells(cells: Cells, share: float, seed: int) -> tuple[Cells, Cells]:
    """Training and validation cells, at random; of few cells at least one on each side."""
    n = len(cells)
    n_validation = min(max(round(share * n), 1), n - 1)
    is_validation = np.zeros(n, bool)
    is_validation[np.random.default_rng(seed).permutation(n)[:n_validation]] = True
    return cells.taken(~is_validation), cells.taken(is_validation)


def cell_table(cells: Cells) -> CellTable:
    """The cells as arrays, with the one that fills up."""
    dtype = jnp.zeros(()).dtype
    return CellTable(
        jnp.asarray(np.append(cells.model_index, 0), jnp.int32),
        jnp.asarray(np.append(cells.item_index, 0), jnp.int32),
        jnp.asarray(np.append(cells.response, 0), dtype),
        jnp.asarray(np.append(cells.weight, 0), dtype),
    )


def minibatches(key: jax.Array, n_cells: int, size: int) -> Int[Array, "steps size"]:
    """Places of all cells in a random order, in batches; filled up with the last place."""
    n_steps = -(-n_cells // size)
    order = jax.random.permutation(key, n_cells)
    filling = jnp.full((n_steps * size - n_cells,), n_cells, order.dtype)
    return jnp.concatenate([order, filling]).reshape(n_steps, size)

"""Responses as a table of cells on the device: what minibatches are drawn from."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from irtjax.data.blocks import Blocks
from irtjax.data.cells import Cells
from irtjax.model.pytree import pytree_dataclass

__all__ = [
    "CellTable",
    "NetBlocks",
    "cell_table",
    "is_training_cell",
    "minibatches",
    "n_validation",
]


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

    `cells` are all responses; `is_training` is 1 of those to train on before a refit. `share` of an
    item is 1 over its responses (0 without), the second over all of them: what of its prior each
    carries. `order` is which item each place of the blocks holds.
    """

    cells: CellTable
    is_training: Float[Array, " cells"]
    model_features: Float[Array, "models features"] | None
    item_features: Float[Array, "items features"] | None
    share: Float[Array, "2 items"]
    blocks: Blocks
    order: Int[Array, "blocks items"]

    @property
    def response(self) -> Array:
        """Responses of the blocks."""
        return self.blocks.response


def n_validation(n_cells: int, share: float) -> int:
    """How many cells validate: at least one, and not all."""
    return min(max(round(share * n_cells), 1), n_cells - 1)


def is_training_cell(n_cells: int, share: float, seed: int) -> np.ndarray:
    """Which cells to train on (booleans); the others validate, at least one on each side."""
    found = np.ones(n_cells, bool)
    found[np.random.default_rng(seed).permutation(n_cells)[: n_validation(n_cells, share)]] = False
    return found


def cell_table(cells: Cells) -> CellTable:
    """The cells as arrays, with the one that fills up."""
    dtype = jnp.zeros(()).dtype
    return CellTable(
        jnp.asarray(np.append(cells.model_index, 0), jnp.int32),
        jnp.asarray(np.append(cells.item_index, 0), jnp.int32),
        jnp.asarray(np.append(cells.response, 0), dtype),
        jnp.asarray(np.append(cells.weight, 0), dtype),
    )


def minibatches(
    key: jax.Array, is_taken: Bool[Array, " cells"], size: int
) -> tuple[Int[Array, "steps size"], Int[Array, ""]]:
    """Places of all cells in batches, those taken first, in a random order.

    Returns:
        The batches, filled up with the last place, and how many of them hold taken cells.
    """
    n_cells = len(is_taken)
    n_steps = -(-n_cells // size)
    order = jnp.argsort(jax.random.uniform(key, (n_cells,)) + jnp.where(is_taken, 0.0, 1.0))
    filling = jnp.full((n_steps * size - n_cells,), n_cells, order.dtype)
    batches = jnp.concatenate([order, filling]).reshape(n_steps, size)
    return batches, -(-jnp.sum(is_taken) // size)

"""How large a network is, refused before anything is allocated."""

import os

from irtjax.errors import InputError
from irtjax.nets.settings import Network
from irtjax.nets.towers import TowerShape

__all__ = ["check_size", "n_parameters"]

# Weights, the best and the first of them, both moments and the gradient; a step makes new ones
# beside the old.
_COPIES = 9
_BYTES = 4
# Indices of rows are 32 bits wide.
_MOST = 2_000_000_000


def n_parameters(shape: TowerShape) -> int:
    """Numbers that a tower and its table of rows hold."""
    rows = shape.n_ids * shape.embedding
    first = (shape.n_features + 1 if shape.n_features else 1) * shape.embedding
    hidden = (shape.embedding + 1) * shape.hidden
    hidden += (shape.layers - 1) * (shape.hidden + 1) * shape.hidden
    return rows + first + hidden + (shape.hidden + 1) * shape.n_out


def check_size(network: Network, model_shape: TowerShape, item_shape: TowerShape) -> None:
    """Refuse what the machine cannot hold.

    Raises:
        InputError: too many parameters, or too large a minibatch.
    """
    count = n_parameters(model_shape) + n_parameters(item_shape)
    width = network.embedding + network.layers * network.hidden
    of_batch = 4 * network.steps[0] * width
    needed = _BYTES * (_COPIES * count + of_batch)
    memory = _memory()
    if count <= _MOST and needed <= memory:
        return
    is_batch = count <= _MOST and of_batch > _COPIES * count
    lower = "batch_size" if is_batch else "embedding, hidden or layers"
    most = f"{_MOST:.0e} is the most, and " if count > _MOST else ""
    has = f", this machine has {memory / 2**30:.3g}" if memory < float("inf") else ""
    raise InputError(
        f"the network has {_short(count)} parameters: {most}its training needs "
        f"{_short(needed / 2**30)} GiB{has}; lower network {lower}"
    )


def _memory() -> float:
    """Bytes of this machine; where it does not say (Windows) nothing is too much."""
    if not hasattr(os, "sysconf"):
        return float("inf")
    return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))


def _short(number: float) -> str:
    return f"{number:,.0f}" if number < 1e9 else f"{number:.2g}"

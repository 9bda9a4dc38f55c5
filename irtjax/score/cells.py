"""Answers of new models in batches of equal shape: one program for any number of models."""

import dataclasses
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Float

from irtjax.data.cells import Cells
from irtjax.model.pytree import pytree_dataclass, static_field
from irtjax.score.bank import ItemBank
from irtjax.score.curves import CurveItems

__all__ = ["Answers", "Batch", "batches", "curve_items"]

# Cells a batch: float32 intermediates of this size stay in the cache.
_CELLS_PER_BATCH = 1 << 16
_LEAST_WIDTH, _MOST_MODELS = 16, 1024
# Fewer models are padded to one of these: few programs are compiled.
_MODELS = (8, 32, 128, 512)
# From this share of observed cells on, all models of a batch meet all items.
_SHARED_FROM = 0.3


@pytree_dataclass
class Answers:
    """Responses of a batch and their weights, both 0 where missing.

    `is_plain` says that all are 0 or 1, which takes half the logarithms.
    """

    response: Float[Array, "models width"]
    weight: Float[Array, "models width"]
    is_plain: bool = static_field(default=False)


@dataclasses.dataclass(frozen=True, eq=False)
class Batch:
    """Some models: their rows of the result (fewer than the batch has where it is padded)."""

    rows: slice
    answers: Answers
    items: CurveItems


def batches(bank: ItemBank, cells: Cells, n_models: int) -> Iterator[Batch]:
    """Cut the answers into batches.

    Args:
        bank: the items.
        cells: observed cells, `item_index` into the bank.
        n_models: rows of the result.
    """
    used = np.flatnonzero(np.bincount(cells.item_index))
    count = np.bincount(cells.model_index, minlength=n_models)
    is_shared = len(cells) >= _SHARED_FROM * max(n_models * len(used), 1)
    width = _width(len(used) if is_shared else int(count.max(initial=0)))
    size = int(np.clip(_CELLS_PER_BATCH // width, 1, _MOST_MODELS))
    size = min(size, next((each for each in _MODELS if each >= n_models), _MOST_MODELS))
    is_plain = cells.is_binary and bool(np.all(cells.weight == 1))
    cut = _on_shared_items if is_shared else _on_own_items
    for start, answers, items in cut(bank, cells, n_models, size, width):
        stop = min(start + size, n_models)
        yield Batch(slice(start, stop), dataclasses.replace(answers, is_plain=is_plain), items)


def _on_shared_items(
    bank: ItemBank, cells: Cells, n_models: int, size: int, width: int
) -> Iterator[tuple[int, Answers, CurveItems]]:
    """Every model a row over all items that were answered: nothing to sort."""
    used = np.flatnonzero(np.bincount(cells.item_index))
    items = curve_items(bank, _padded(used, width)[None])
    column = np.zeros(len(bank.group), np.int64)
    column[used] = np.arange(len(used))
    n_rows = -(-n_models // size) * size
    given: Any = np.zeros((2, n_rows, width), np.asarray(bank.mean).dtype)
    place = cells.model_index, column[cells.item_index]
    given[0][place], given[1][place] = cells.response, cells.weight
    for start in range(0, n_models, size):
        yield start, Answers(*given[:, start : start + size]), items


def _on_own_items(
    bank: ItemBank, cells: Cells, n_models: int, size: int, width: int
) -> Iterator[tuple[int, Answers, CurveItems]]:
    """Every model a row of the items that it answered."""
    cells = cells.taken(np.lexsort((cells.item_index, cells.model_index)))
    first = np.searchsorted(cells.model_index, np.arange(n_models + size))
    for start in range(0, n_models, size):
        part = cells.taken(slice(first[start], first[start + size]))
        place = np.arange(first[start], first[start + size]) - first[part.model_index]
        at = part.model_index - start, place
        given: Any = np.zeros((2, size, width), np.asarray(bank.mean).dtype)
        given[0][at], given[1][at] = part.response, part.weight
        index = np.zeros((size, width), np.int64)
        index[at] = part.item_index
        yield start, Answers(*given), curve_items(bank, index)


def _width(n: int) -> int:
    return max(_LEAST_WIDTH, 1 << max(n - 1, 1).bit_length())


def _padded(index: np.ndarray, width: int) -> np.ndarray:
    return np.pad(index, (0, width - len(index)))


def curve_items(bank: ItemBank, index: np.ndarray) -> CurveItems:
    """The items of a bank by index (rows x width), components first."""

    def components_first(leaf: Any) -> Any:
        return np.ascontiguousarray(np.moveaxis(np.asarray(leaf)[index], 2, 0))

    asymptotes = jax.tree.map(lambda leaf: np.asarray(leaf)[index], bank.asymptotes)
    group: Any = np.asarray(bank.group)[index]
    return CurveItems(
        components_first(bank.mean),
        components_first(bank.covariance),
        components_first(bank.share),
        asymptotes,
        group,
        bool(np.any(np.asarray(bank.covariance))),
    )

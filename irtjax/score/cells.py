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
    used = np.unique(cells.item_index)
    is_shared = len(cells) >= _SHARED_FROM * max(n_models * len(used), 1)
    count = np.bincount(cells.model_index, minlength=n_models)
    width = _width(len(used) if is_shared else int(count.max(initial=0)))
    size = int(np.clip(_CELLS_PER_BATCH // width, 1, _MOST_MODELS))
    size = min(size, next((each for each in _MODELS if each >= n_models), _MOST_MODELS))
    order = np.lexsort((cells.item_index, cells.model_index))
    model, item = cells.model_index[order], cells.item_index[order]
    place = np.searchsorted(used, item)
    if not is_shared:
        place = np.arange(len(model)) - np.concatenate([[0], np.cumsum(count)])[model]
    dtype = np.asarray(bank.mean).dtype
    is_plain = _is_binary(cells.response) and _is_binary(cells.weight)
    shared = curve_items(bank, _padded(used, width)[None]) if is_shared else None
    for start in range(0, n_models, size):
        stop = min(start + size, n_models)
        low, high = np.searchsorted(model, [start, stop])
        at = (model[low:high] - start, place[low:high])
        response, weight = np.zeros((2, size, width), dtype)
        response[at] = cells.response[order[low:high]]
        weight[at] = cells.weight[order[low:high]]
        items = shared
        if items is None:
            index = np.zeros((size, width), np.int64)
            index[at] = item[low:high]
            items = curve_items(bank, index)
        given: Any = (response, weight, is_plain)
        yield Batch(slice(start, stop), Answers(*given), items)


def _is_binary(values: np.ndarray) -> bool:
    return bool(np.all((values == 0) | (values == 1)))


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

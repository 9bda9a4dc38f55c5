"""Equal rows put together: with few items many models answer alike."""

import dataclasses

import numpy as np
from jaxtyping import Int

from irtjax.data.responses import ResponseMatrix

__all__ = ["Patterns", "find_patterns"]

# Searched for only where it can pay: with more items hardly two models answer alike.
_MOST_ITEMS = 32
_FEWEST_MODELS = 64


@dataclasses.dataclass(frozen=True)
class Patterns:
    """Each different pattern of responses once.

    Attributes:
        data: one row a pattern (the models themselves where nothing was put together).
        codes: population of each pattern.
        count: how many models have it.
        index: the pattern of each model.
    """

    data: ResponseMatrix
    codes: Int[np.ndarray, " patterns"] | None
    count: Int[np.ndarray, " patterns"]
    index: Int[np.ndarray, " models"]


def find_patterns(data: ResponseMatrix, codes: np.ndarray | None = None) -> Patterns:
    """Put equal rows of the same population together, in order of first appearance."""
    each = np.arange(data.n_models)
    alone = Patterns(data, codes, np.ones(data.n_models, np.int64), each)
    is_small = data.n_items <= _MOST_ITEMS and data.n_models >= _FEWEST_MODELS
    if not is_small or data.dense_weight is not None:
        return alone
    if data.sparse is not None and not np.all(data.sparse.weight == 1):
        return alone
    rows = data.to_dense()
    if codes is not None:
        rows = np.concatenate([rows, codes[:, None].astype(rows.dtype)], axis=1)
    _, first, inverse, count = np.unique(
        rows, axis=0, return_index=True, return_inverse=True, return_counts=True
    )
    if 2 * len(first) > data.n_models:
        return alone
    order = np.argsort(first)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    kept = first[order]
    patterns = ResponseMatrix.from_dense(
        data.to_dense()[kept], model_ids=data.model_ids[kept].tolist(), item_ids=list(data.item_ids)
    )
    return Patterns(
        patterns,
        None if codes is None else codes[kept],
        count[order].astype(np.int64),
        place[inverse.ravel()],
    )

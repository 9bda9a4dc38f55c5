"""Which cells are held out of the fit to judge it."""

import numpy as np

from irtjax.checks import check_number
from irtjax.data.cells import Cells, cells_at
from irtjax.data.checks import MISSING, check_seed
from irtjax.data.responses import ResponseMatrix, check_matrix
from irtjax.errors import InputError

__all__ = ["holdout"]

_CELLS_PER_BLOCK = 1 << 22  # bounds the copy of a dense matrix while its cells are counted


def holdout(data: ResponseMatrix, share: float, *, seed: int) -> tuple[ResponseMatrix, Cells]:
    """Hold out a random share of the observed cells.

    Every set of `round(share * n_responses)` observed cells is equally likely. The choice depends
    on the seed and on which cells are observed, not on whether they are kept dense or sparse.

    Args:
        data: the responses to divide.
        share: of the observed cells, between 0 and 1, both excluded.
        seed: of NumPy's default generator.

    Returns:
        The training data, with all ids, metadata and weights and the held-out cells missing; and
        the held-out cells, sorted by item and then by model.

    Raises:
        InputError: a share outside (0, 1), or one that leaves either part without a cell.

    >>> data = ResponseMatrix.from_dense([[1, 0, 1, 1], [0, 0, 1, 0]])
    >>> train, test = holdout(data, 0.25, seed=0)
    >>> train.n_responses, len(test)
    (6, 2)
    """
    check_matrix(data, "holdout")
    check_number("the held-out share", share)
    if not 0 < share < 1:
        raise InputError(f"the held-out share must lie between 0 and 1, not {share}")
    n = data.n_responses
    n_held_out = round(share * n)
    if not 0 < n_held_out < n:
        raise InputError(
            f"a held-out share of {share} takes {n_held_out} of {n} responses; "
            "choose one that leaves some on both sides"
        )
    check_seed(seed)
    ranks = _random_subset(np.random.default_rng(seed), n, n_held_out)
    return _without_cells(data, ranks)


def _random_subset(rng: np.random.Generator, n: int, size: int) -> np.ndarray:
    """A uniformly random set of `size` of the numbers below `n`, sorted; one byte a number.

    `Generator.choice` keeps a permutation of all `n` (8 bytes each) and `hypergeometric` ends at
    1e9. Drawing again what was drawn twice treats all numbers alike, so every set is as likely.
    """
    if 2 * size > n:
        return _complement(_random_subset(rng, n, n - size), n)
    is_taken = np.zeros(n, bool)
    n_needed = size
    while n_needed > 0:
        is_taken[rng.integers(0, n, n_needed)] = True
        n_needed = size - int(np.count_nonzero(is_taken))
    return np.flatnonzero(is_taken)


def _complement(taken: np.ndarray, n: int) -> np.ndarray:
    is_left = np.ones(n, bool)
    is_left[taken] = False
    return np.flatnonzero(is_left)


def _without_cells(data: ResponseMatrix, ranks: np.ndarray) -> tuple[ResponseMatrix, Cells]:
    """Split off the observed cells at these ranks of the order of `ResponseMatrix.cells`."""
    if data.sparse is not None:
        is_kept = np.ones(len(data.sparse), bool)
        is_kept[ranks] = False
        return data.replace(sparse=data.sparse.taken(is_kept)), data.sparse.taken(ranks)
    assert data.dense is not None
    model_index, item_index = _dense_positions(data.dense, ranks)
    cells = cells_at(data.dense, data.dense_weight, model_index, item_index)
    train = data.dense.copy()
    train[model_index, item_index] = MISSING
    if train.dtype != np.int8 and np.all((train == MISSING) | (train == 0) | (train == 1)):
        train = train.astype(np.int8)  # every fraction is held out
    return data.replace(dense=train), cells


def _dense_positions(dense: np.ndarray, ranks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    n_models, n_items = dense.shape
    width = max(_CELLS_PER_BLOCK // max(n_models, 1), 1)
    per_item = np.count_nonzero(dense >= 0, axis=0)
    first_rank = np.concatenate(([0], np.cumsum(per_item, dtype=np.int64)))
    models, items = [], []
    for start in range(0, n_items, width):
        stop = min(start + width, n_items)
        low, high = np.searchsorted(ranks, (first_rank[start], first_rank[stop]))
        # Flat indices of a contiguous copy: np.nonzero of the transposed view took 9 times as long.
        observed = np.flatnonzero(np.ascontiguousarray((dense[:, start:stop] >= 0).T))
        item, model = np.divmod(observed[ranks[low:high] - first_rank[start]], n_models)
        models.append(model)
        items.append(item + start)
    return np.concatenate(models), np.concatenate(items)

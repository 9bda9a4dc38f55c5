"""A problem restricted to some of its items: halves, shares, the subsample of a slow sampler."""

import dataclasses

import numpy as np

from benchmarks.problems import Problem
from irtjax.data.cells import Cells
from irtjax.data.responses import ResponseMatrix

__all__ = ["drawn_items", "halves", "restricted"]


def drawn_items(n_items: int, n_drawn: int, seed: int) -> np.ndarray:
    """Some items at random, in their order."""
    return np.sort(np.random.default_rng(seed).permutation(n_items)[:n_drawn])


def halves(n_items: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Two halves of the items at random, each in its order."""
    order = np.random.default_rng(seed).permutation(n_items)
    return np.sort(order[: n_items // 2]), np.sort(order[n_items // 2 :])


def restricted(problem: Problem, items: np.ndarray) -> Problem:
    """The problem on these items only: training responses and held-out cells."""
    train, test = problem.train, problem.test
    place = np.full(train.n_items, -1, np.int32)
    place[items] = np.arange(len(items), dtype=np.int32)
    is_kept = place[test.item_index] >= 0
    kept = test.taken(is_kept)
    return dataclasses.replace(
        problem,
        train=ResponseMatrix.from_dense(
            train.to_dense()[:, items],
            model_ids=train.model_ids.tolist(),
            item_ids=train.item_ids[items].tolist(),
            item_metadata=train.item_metadata.iloc[items].reset_index(drop=True),
        ),
        test=Cells(kept.model_index, place[kept.item_index], kept.response, kept.weight),
        is_copied=None if problem.is_copied is None else problem.is_copied[is_kept],
    )

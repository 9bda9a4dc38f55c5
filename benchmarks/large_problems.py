"""The simulated problems of size: `sparse`, `metabench` and `selection`.

The order of the draws is part of their definition, as with W2 and W3.
"""

import numpy as np
from scipy.special import expit

from benchmarks.problems import Problem
from irtjax.data.cells import Cells
from irtjax.data.checks import MISSING
from irtjax.data.responses import ResponseMatrix

__all__ = ["metabench_problem", "selection_items", "sparse_problem"]

_ITEMS_AT_A_TIME = 500


def sparse_problem(
    n_models: int = 10_000, n_items: int = 100_000, density: float = 0.005, seed: int = 31
) -> Problem:
    """A 2PL of one dim with few cells observed; 5% of those are held out.

    theta N(0, 1), slope lognormal(0, .5), intercept N(0, 1.5); cells drawn with replacement, so
    that slightly fewer than `density` are observed.
    """
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=n_models)
    slope, intercept = rng.lognormal(0, 0.5, n_items), rng.normal(0, 1.5, n_items)
    drawn = rng.integers(0, n_models * n_items, int(n_models * n_items * density))
    item_index, model_index = np.divmod(np.unique(drawn), n_models)
    probability = expit(slope[item_index] * theta[model_index] + intercept[item_index])
    response = (rng.random(len(probability)) < probability).astype(np.float32)
    is_held_out = rng.random(len(probability)) < 0.05
    seen = ~is_held_out
    train = ResponseMatrix.from_cells(
        model_index[seen],
        item_index[seen],
        response[seen],
        model_ids=[f"model-{i}" for i in range(n_models)],
        item_ids=[f"item-{j}" for j in range(n_items)],
    )
    return Problem("sparse", train, _cells(model_index, item_index, response, is_held_out))


def metabench_problem(n_models: int = 5_000, n_items: int = 28_000, seed: int = 41) -> Problem:
    """A dense 2PL of one dim of metabench's size, 140 million cells; 1% are held out.

    Parameters as in `sparse_problem`; responses are drawn 500 items at a time.
    """
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=n_models)
    slope, intercept = rng.lognormal(0, 0.5, n_items), rng.normal(0, 1.5, n_items)
    responses = np.empty((n_models, n_items), np.int8)
    held_out = []
    for start in range(0, n_items, _ITEMS_AT_A_TIME):
        chosen = slice(start, min(start + _ITEMS_AT_A_TIME, n_items))
        probability = expit(theta[:, None] * slope[chosen] + intercept[chosen])
        block = (rng.random(probability.shape, np.float32) < probability).astype(np.int8)
        item_index, model_index = np.nonzero((rng.random(block.shape, np.float32) < 0.01).T)
        answers = block[model_index, item_index].astype(np.float32)
        held_out.append((model_index, item_index + start, answers))
        block[model_index, item_index] = MISSING
        responses[:, chosen] = block
    train = ResponseMatrix.from_dense(responses)
    model_index, item_index, answers = (
        np.concatenate(part) for part in zip(*held_out, strict=True)
    )
    return Problem("metabench", train, _cells(model_index, item_index, answers))


def selection_items(n_items: int = 34_000, seed: int = 51) -> dict[str, np.ndarray]:
    """Parameters of a bank of 4PL items to select from, drawn as W3's."""
    rng = np.random.default_rng(seed)
    return {
        "slope": rng.lognormal(0.2, 0.3, n_items),
        "difficulty": rng.normal(size=n_items),
        "guessing": rng.beta(5, 20, n_items),
        "feasibility": 1 - rng.beta(3, 30, n_items),
    }


def _cells(
    model_index: np.ndarray,
    item_index: np.ndarray,
    response: np.ndarray,
    chosen: np.ndarray | slice = slice(None),
) -> Cells:
    answers = response[chosen].astype(np.float32)
    return Cells(
        model_index[chosen].astype(np.int32),
        item_index[chosen].astype(np.int32),
        answers,
        np.ones(len(answers), np.float32),
    )

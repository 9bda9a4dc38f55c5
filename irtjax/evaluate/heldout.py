"""Held-out metrics of several predictors on the same cells, side by side."""

from collections.abc import Mapping

import numpy as np

from irtjax.data.responses import Cells
from irtjax.errors import InputError
from irtjax.model.metrics import all_metrics

__all__ = ["heldout_table"]


def heldout_table(
    predictions: Mapping[str, np.ndarray], cells: Cells, mask: np.ndarray | None = None
) -> dict[str, dict[str, float | int]]:
    """Score predictions of the same cells.

    Args:
        predictions: for each predictor, the probability of a right answer in each cell.
        cells: the held-out cells, with responses and weights.
        mask: which cells to score (boolean, one a cell); all without.

    Returns:
        For each predictor, in the given order, the metrics of `irtjax.model.metrics.all_metrics`.

    Raises:
        InputError: a number of predictions or a mask that does not match the cells.

    >>> from irtjax.data.responses import ResponseMatrix
    >>> cells = ResponseMatrix.from_dense([[1, 0]]).cells()
    >>> heldout_table({"coin": np.array([0.5, 0.5])}, cells)["coin"]["brier"]
    0.25
    """
    n = len(cells)
    if mask is not None and (np.shape(mask) != (n,) or np.asarray(mask).dtype != bool):
        raise InputError(f"the mask must be {n} booleans, one a held-out cell")
    chosen = slice(None) if mask is None else np.asarray(mask)
    table = {}
    for name, probability in predictions.items():
        if np.shape(probability) != (n,):
            raise InputError(
                f"predictor {name!r} has shape {np.shape(probability)} for {n} held-out cells"
            )
        table[name] = all_metrics(
            np.asarray(probability)[chosen], cells.response[chosen], cells.weight[chosen]
        )
    return table

"""Held-out metrics of a fit beside the baselines, on the same cells."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from irtjax.data.cells import Cells
from irtjax.data.responses import ResponseMatrix
from irtjax.errors import InputError
from irtjax.evaluate.baselines import predict_baselines
from irtjax.fit.result import FitResult
from irtjax.model.metrics import all_metrics

__all__ = ["benchmark_of_items", "evaluate_heldout", "heldout_table", "with_heldout"]

_BENCHMARK = "benchmark"


def with_heldout(
    fit: FitResult, cells: Cells, *, chosen: str, group_column: str | None = None
) -> FitResult:
    """The fit with its held-out cells and their metrics, so that `save` writes both.

    Args, raises: as `evaluate_heldout`.

    Returns:
        A copy with `heldout` and `report["heldout"]`.
    """
    metrics = evaluate_heldout(fit, cells, chosen=chosen, group_column=group_column)
    return dataclasses.replace(fit, heldout=cells, report=fit.report | {"heldout": metrics})


def evaluate_heldout(
    fit: FitResult, cells: Cells, *, chosen: str, group_column: str | None = None
) -> dict[str, Any]:
    """Score the predictions of a fit and of the baselines on cells the fit has not seen.

    Args:
        fit: fitted to the training responses, from which the baselines learn too.
        cells: held-out cells by index into the fit's data: of `irtjax.holdout` or
            `irtjax.evaluate.cells.cells_of_test`.
        chosen: how the cells were chosen, for the record: `holdout 0.1`, or a file.
        group_column: item metadata column of the benchmarks for the baseline model x benchmark
            mean; without, that of the fit's effects, else `benchmark` where each item has one,
            else none: the baseline is then the model mean.

    Returns:
        What `fit.json` has under `heldout`: `cells` (how chosen), `n`, `model` and
        `baselines.{model_mean, model_benchmark_mean, 1pl}`, each with the metrics of
        `irtjax.model.metrics.all_metrics`.

    Raises:
        InputError: cells beyond the data, no such column.

    >>> import irtjax as ij
    >>> data = ij.simulate(ij.ModelSpec(), n_models=30, n_items=200).data
    >>> train, cells = ij.holdout(data, 0.1, seed=0)
    >>> heldout = evaluate_heldout(ij.fit(train), cells, chosen="holdout 0.1")
    >>> heldout["n"], list(heldout["baselines"])
    (600, ['model_mean', 'model_benchmark_mean', '1pl'])
    """
    if not isinstance(fit, FitResult):
        raise InputError(f"evaluate_heldout takes a FitResult, not {type(fit).__name__}")
    if not isinstance(cells, Cells):
        raise InputError(
            f"the cells must be Cells, as holdout gives them, not {type(cells).__name__}; those of "
            "a ResponseMatrix are found by irtjax.evaluate.cells.cells_of_test"
        )
    group = benchmark_of_items(fit.data, group_column or fit.group)
    model = fit.predict_cells(cells.model_index, cells.item_index)
    baselines = predict_baselines(fit.data, cells, group)
    return {
        "cells": chosen,
        "n": len(cells),
        "model": heldout_table({"model": model}, cells)["model"],
        "baselines": heldout_table(baselines, cells),
    }


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


def benchmark_of_items(data: ResponseMatrix, column: str | None) -> np.ndarray | None:
    """Benchmark code of each item by a column, or by `benchmark` where each item has one."""
    if column is not None:
        return data.groups(column)[0]
    if _BENCHMARK not in data.item_metadata or data.item_metadata[_BENCHMARK].isna().any():
        return None
    return data.groups(_BENCHMARK)[0]

"""Truths and responses drawn from a fit: what a parametric bootstrap refits."""

import dataclasses
from typing import Any

import numpy as np
from jaxtyping import Float

from irtjax.data.checks import MISSING
from irtjax.data.responses import ResponseMatrix
from irtjax.data.truth import Truth
from irtjax.fit.packed import unpack_index
from irtjax.fit.result import FitResult, FittedParameters
from irtjax.fit.tables import slope_and_intercept

__all__ = ["drawn_abilities", "drawn_fit", "drawn_items", "drawn_responses"]


def drawn_fit(fit: FitResult, rng: np.random.Generator) -> FitResult:
    """The fit with its integrated side drawn: the truth of a sample."""
    fitted, changed = fit.parameters, dict[str, Any]()
    if fit.integrated == "models":
        changed = {"ability": drawn_abilities(fit, rng)}
    elif fit.integrated == "items":
        items = drawn_items(fitted, rng)
        changed = {"mean": np.broadcast_to(items[:, None], np.shape(fitted.mean))}
    return dataclasses.replace(fit, parameters=dataclasses.replace(fitted, **changed))


def drawn_abilities(fit: FitResult, rng: np.random.Generator) -> Float[np.ndarray, "models dims"]:
    """From the population of each model."""
    column = fit.report.get("model_group")
    codes = np.zeros(fit.data.n_models, np.int32)
    if column is not None:
        codes = fit.data.populations(column)[0]
    mean = np.asarray(fit.parameters.population_mean, np.float64)[codes]
    root = _roots(np.asarray(fit.parameters.population_covariance, np.float64))[codes]
    return mean + np.einsum("ikl,il->ik", root, rng.standard_normal(mean.shape))


def drawn_items(
    fitted: FittedParameters, rng: np.random.Generator
) -> Float[np.ndarray, "items coordinates"]:
    """From the posterior of each item, a mixture of normals."""
    share = np.cumsum(np.asarray(fitted.share, np.float64), axis=1)
    height = rng.random(len(share))[:, None] * share[:, -1:]
    component = np.minimum(np.sum(height > share, axis=1), share.shape[1] - 1)
    row = np.arange(len(share))
    mean = np.asarray(fitted.mean, np.float64)[row, component]
    packed = np.asarray(fitted.covariance, np.float64)[row, component]
    root = _roots(packed[:, unpack_index(mean.shape[1])])
    return mean + np.einsum("jkl,jl->jk", root, rng.standard_normal(mean.shape))


def _roots(covariance: np.ndarray) -> np.ndarray:
    """Matrices R with `R R' = covariance`, also where a coordinate is fixed."""
    values, vectors = np.linalg.eigh(covariance)
    return vectors * np.sqrt(np.maximum(values, 0))[:, None]


def drawn_responses(drawn: FitResult, rng: np.random.Generator) -> ResponseMatrix:
    """Responses in the cells of the data, drawn from what the parameters say."""
    data, cells = drawn.data, drawn.data.cells()
    slope, intercept, _ = slope_and_intercept(drawn)
    fitted, (codes, names) = drawn.parameters, drawn.groups()
    truth = Truth(
        np.asarray(fitted.ability),
        slope,
        intercept,
        np.asarray(fitted.guessing),
        np.asarray(fitted.feasibility),
        None if fitted.effect is None else np.asarray(fitted.effect),
        codes,
        np.array(names),
        data.model_ids,
        data.item_ids,
    )
    n_answers = np.round(cells.weight).astype(np.int64)
    probability = truth.cell_probability(cells).astype(np.float64)
    right = rng.binomial(n_answers, np.clip(probability, 0, 1))
    response = (right / n_answers).astype(np.float32)
    if data.dense is None:
        return data.replace(sparse=dataclasses.replace(cells, response=response))
    dtype = np.int8 if np.all(n_answers == 1) else np.float32
    dense = np.full(data.dense.shape, MISSING, dtype)
    dense[cells.model_index, cells.item_index] = response
    return data.replace(dense=dense)

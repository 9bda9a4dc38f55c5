"""Fits with items that are given, not estimated, so that an oracle knows them exactly."""

import dataclasses
import functools

import numpy as np

from irtjax.data.responses import ResponseMatrix
from irtjax.fit.result import FitResult, FittedParameters
from irtjax.model.spec import ModelSpec
from tests.score.oracle import GridOracle

N_ITEMS = 12


@dataclasses.dataclass(frozen=True, eq=False)
class Given:
    """A fit and the oracle of the same items."""

    fit: FitResult
    oracle: GridOracle


@functools.cache
def given(dims=1, family="2pl", sd=0.0, seed=0):
    """Items with positive slopes, each slope and intercept with a posterior sd."""
    rng = np.random.default_rng(seed)
    mean = np.concatenate(
        [rng.lognormal(0, 0.4, (N_ITEMS, dims)), rng.normal(0, 1, (N_ITEMS, 1))], axis=1
    )
    covariance = np.broadcast_to(sd**2 * np.eye(dims + 1), (N_ITEMS, dims + 1, dims + 1))
    guessing = rng.uniform(0.1, 0.3, N_ITEMS) if family in ("3pl", "4pl") else np.zeros(N_ITEMS)
    feasibility = rng.uniform(0.9, 0.98, N_ITEMS) if family == "4pl" else np.ones(N_ITEMS)
    # What the fit holds is what the oracle knows, also in float32.
    dtype = np.asarray(_default_zero()).dtype
    mean, guessing, feasibility = (
        part.astype(dtype).astype(np.float64) for part in (mean, guessing, feasibility)
    )
    fit = fit_of(mean, covariance, guessing, feasibility, ModelSpec(family, dims), dtype)
    return Given(fit, GridOracle(mean, covariance, guessing, feasibility))


def fit_of(mean, covariance, guessing, feasibility, spec, dtype, effect=None):
    """A `FitResult` with these items, of two models with made-up abilities."""
    n_items, dims = len(mean), spec.dims
    rows, columns = np.tril_indices(dims + 1)
    models = np.zeros((2, dims), dtype)
    zero = np.zeros(n_items, dtype)
    parameters = FittedParameters(
        models,
        np.broadcast_to(np.eye(dims, dtype=dtype), (2, dims, dims)),
        models,
        models,
        effect,
        None if effect is None else np.asarray(np.mean(effect**2), dtype),
        np.zeros(2, dtype),
        mean.astype(dtype)[:, None],
        covariance[:, rows, columns].astype(dtype)[:, None],
        np.ones((n_items, 1), dtype),
        None,
        None,
        None,
        guessing.astype(dtype),
        feasibility.astype(dtype),
        zero,
        zero,
        np.zeros((1, dims), dtype),
        np.eye(dims, dtype=dtype)[None],
    )
    names = ["fitted-0", "fitted-1"]
    data = ResponseMatrix.from_dense(np.tile([[1], [0]], (1, n_items)), model_ids=names)
    return FitResult(data, spec, parameters)


def answers(patterns):
    """Response matrix of rows with 0, 1 and NaN."""
    patterns = np.asarray(patterns, float)
    return new_models(patterns, [f"item-{j}" for j in range(patterns.shape[1])])


def new_models(matrix, item_ids):
    """Response matrix of models that no fit has seen."""
    ids = [f"new-{k}" for k in range(len(matrix))]
    return ResponseMatrix.from_dense(matrix, model_ids=ids, item_ids=item_ids)


def _default_zero():
    import jax.numpy as jnp

    return jnp.zeros(())

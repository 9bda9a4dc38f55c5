"""How good a fit is: held-out cells predicted, or generating item parameters recovered."""

import numpy as np

from benchmarks.problems import Problem
from irtjax.data.truth import Truth
from irtjax.model.metrics import all_metrics
from irtjax.model.quadrature import gauss_hermite

__all__ = ["heldout_quality", "inside", "recovery"]

_N_NODES = 61
_ABSENT = {"guessing": 0.0, "feasibility": 1.0}


def heldout_quality(problem: Problem, probability: np.ndarray) -> dict[str, float]:
    """`log_loss`, `accuracy`, `auc` on the problem's held-out cells."""
    moved = inside(probability)
    if not np.isfinite(moved).all():
        return {}
    metrics = all_metrics(moved, problem.test.response)
    return {name: float(metrics[name]) for name in ("log_loss", "accuracy", "auc")}


def inside(probability: np.ndarray) -> np.ndarray:
    """Probabilities (float64), those of 0 or 1 moved to the nearest float32 inside.

    Some peers' sigmoids round to 1, and one such cell would make the log-loss infinite.
    """
    tiny = float(np.finfo(np.float32).eps)
    return np.clip(np.asarray(probability, np.float64), tiny, 1 - tiny)


def recovery(truth: Truth, parameters: dict[str, np.ndarray]) -> dict[str, float]:
    """Root mean squared errors against the generating parameters of a problem of one dim.

    Args:
        truth: with one dim.
        parameters: `slope`, `difficulty`, and `guessing`, `feasibility` where estimated; all on
            the scale of abilities N(0, 1).

    Returns:
        `slope_rmse`, `difficulty_rmse`, those of the asymptotes that the truth has, and
        `icc_rmse`: of the response curves, weighted by N(0, 1).
    """
    filled = {
        name: np.broadcast_to(np.asarray(parameters.get(name, fallback), np.float64), truth.n_items)
        for name, fallback in {"slope": np.nan, "difficulty": np.nan, **_ABSENT}.items()
    }
    true = {
        "slope": truth.slope[:, 0],
        "difficulty": -truth.intercept / truth.slope[:, 0],
        "guessing": truth.guessing,
        "feasibility": truth.feasibility,
    }
    errors = {
        f"{name}_rmse": float(np.sqrt(np.mean((filled[name] - value) ** 2)))
        for name, value in true.items()
        if name not in _ABSENT or np.any(value != _ABSENT[name])
    }
    nodes, weights = gauss_hermite(_N_NODES)
    gaps = (_curves(filled, nodes) - _curves(true, nodes)) ** 2
    errors["icc_rmse"] = float(np.sqrt(np.mean(gaps @ weights)))
    return errors


def _curves(items: dict[str, np.ndarray], nodes: np.ndarray) -> np.ndarray:
    logit = items["slope"][:, None] * (nodes - items["difficulty"][:, None])
    low, high = items["guessing"][:, None], items["feasibility"][:, None]
    return low + (high - low) * 0.5 * (1 + np.tanh(0.5 * logit))

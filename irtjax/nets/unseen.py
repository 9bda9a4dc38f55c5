"""Parameters of items and abilities of models that were not in a fit, from their features.

A tower without its row: what it puts out for an id that was never trained. What `FittedParameters`
keeps of it is one vector: the weights, and the linear map from what it puts out to the published
frame.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Float

from irtjax.errors import InputError
from irtjax.fit.features import Side
from irtjax.fit.result import FitResult
from irtjax.fit.tower_frame import split_tower
from irtjax.nets.settings import Network
from irtjax.nets.towers import TowerShape, item_parameters, item_width, run_tower, tower

__all__ = ["feature_names", "packed_tower", "unseen_abilities", "unseen_items"]


def packed_tower(
    weights: Any, raw: Float[np.ndarray, "rows coordinates"], published: np.ndarray
) -> np.ndarray:
    """Weights of a tower and the map into the published frame, as one vector.

    Args:
        weights: of the tower.
        raw: what it puts out for the fit's own models (and a 1) or items (slopes, intercept).
        published: their abilities (slopes, intercept), a linear function of it.
    """
    frame = np.linalg.lstsq(np.asarray(raw, np.float64), np.asarray(published, np.float64))[0]
    return np.concatenate([np.asarray(ravel_pytree(weights)[0]), frame.ravel()]).astype(raw.dtype)


def feature_names(fit: FitResult, side: Side) -> list[str]:
    """Features of a side that the fit has learnt from.

    Raises:
        InputError: none.
    """
    features = (fit.report.get("features") or {}).get(side)
    if not features:
        raise InputError(
            f"the fit has learnt from no {side} features, so it cannot say anything of {side}s "
            f"that it has not seen; fit with estimator psn and {side} features"
        )
    return list(features["names"])


# Numbers too large for the network come out not finite; the caller says so, NumPy need not.
_quiet = np.errstate(over="ignore", invalid="ignore")


@_quiet
def unseen_items(
    fit: FitResult, features: Float[np.ndarray, "items features"]
) -> dict[str, np.ndarray]:
    """`slope` (items x dims), `intercept`, `guessing`, `feasibility` (float64) from raw features.

    Raises:
        InputError: the fit has learnt from no item features.
    """
    out, frame, start = _put_out(fit, "item", features, item_width(fit.spec))
    items = item_parameters(fit.spec, jnp.asarray(out), start)
    raw = np.concatenate([np.asarray(items.slope), np.asarray(items.intercept)[:, None]], axis=1)
    moved = raw.astype(np.float64) @ frame
    guessing, feasibility = np.zeros(len(out)), np.ones(len(out))
    if items.asymptotes is not None:
        guessing = np.asarray(items.asymptotes.guessing, np.float64)
        feasibility = np.asarray(items.asymptotes.feasibility, np.float64)
    return {
        "slope": moved[:, :-1],
        "intercept": moved[:, -1],
        "guessing": guessing,
        "feasibility": feasibility,
    }


@_quiet
def unseen_abilities(
    fit: FitResult, features: Float[np.ndarray, "models features"]
) -> Float[np.ndarray, "models dims"]:
    """Abilities (float64) from raw features.

    Raises:
        InputError: the fit has learnt from no model features.
    """
    out, frame, _ = _put_out(fit, "model", features, fit.spec.dims)
    raw = np.concatenate([out, np.ones((len(out), 1))], axis=1)
    return raw @ frame


def _put_out(
    fit: FitResult, side: Side, features: np.ndarray, width: int
) -> tuple[np.ndarray, np.ndarray, Any]:
    """What the tower of a side puts out for features, its map into the frame, and its start."""
    names = feature_names(fit, side)
    told = fit.report["features"][side]
    values = (np.asarray(features, np.float64) - told["mean"]) * np.asarray(told["scale"])
    network = Network(**fit.report["network"])
    sizes = (network.embedding, network.hidden, network.layers)
    shape = TowerShape(0, len(names), width, *sizes)
    vector = np.asarray(getattr(fit.parameters, f"{side}_tower"))
    flat, frame = split_tower(vector, fit.spec.dims, side)
    weights = _unpacked(shape, flat)
    row = jnp.zeros((len(values), network.embedding), vector.dtype)
    out = run_tower(shape, weights, row, jnp.asarray(values, vector.dtype))
    return np.asarray(out, np.float64), frame, network.start


def _unpacked(shape: TowerShape, flat: np.ndarray) -> Any:
    """The weights of a tower from one vector."""
    empty = jax.eval_shape(lambda: tower(shape, jax.random.key(0), 1.0)[0])
    zeros: Any = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, flat.dtype), empty)
    return ravel_pytree(zeros)[1](jnp.asarray(flat))

"""How precisely the first 1, 2, 3, ... items of a selection measure."""

import numpy as np
import pandas as pd

from irtjax.checks import check_number
from irtjax.select.bank import Bank, told_at
from irtjax.select.target import Target, padded_target

__all__ = ["precision_curve", "size_for"]


def precision_curve(
    bank: Bank, target: Target, order: np.ndarray, direction: np.ndarray | None = None
) -> pd.DataFrame:
    """Expected standard errors and reliabilities after each item of a selection.

    With V the posterior covariance after n items (the prior's precision and the items'
    information, benchmark effects unknown where the fit has them), `dim1_se` is the root of the
    target's mean of its first variance (latent standard deviations), `dim1_reliability` that mean
    as a share of the prior's variance, from 1. Items tell what their mean curves tell.

    Args:
        bank: the items.
        target: whom they measure.
        order: positions in the bank.
        direction: `direction_se` and `direction_reliability` along it, in place of each dim's.

    Returns:
        One row an item, float64.
    """
    told = np.asarray(told_at(bank, padded_target(target).ability), np.float64)
    told = told[: len(target.weight), order]
    loading = np.asarray(bank.curves.slope, np.float64)[order]
    dims = loading.shape[1]
    if bank.group is not None:
        loading = np.concatenate([loading, np.eye(bank.n_groups)[bank.group[order]]], axis=1)
    prior = bank.prior_covariance()
    frame = np.eye(dims) if direction is None else np.asarray(direction, np.float64)[None]
    measured = np.pad(frame, ((0, 0), (0, bank.n_groups)))
    variance = _variances(prior, loading, told, target.weight, measured)
    before = np.einsum("mk,kl,ml->m", measured, prior, measured)
    names = ["direction"] if direction is not None else [f"dim{k + 1}" for k in range(dims)]
    columns = {f"{name}_se": np.sqrt(variance[:, k]) for k, name in enumerate(names)}
    columns |= {
        f"{name}_reliability": 1 - variance[:, k] / before[k] for k, name in enumerate(names)
    }
    return pd.DataFrame(columns)


def size_for(curve: pd.DataFrame, reliability: float) -> int | None:
    """The smallest number of items whose every reliability is as high; None where none is.

    Raises:
        InputError: no number from 0 to 1.
    """
    reliability = check_number("the reliability", reliability, 0, 1)
    names = [name for name in curve if str(name).endswith("_reliability")]
    reached = np.flatnonzero((curve[names] >= reliability).all(axis=1))
    return int(reached[0]) + 1 if len(reached) else None


def _variances(
    prior: np.ndarray,
    loading: np.ndarray,
    told: np.ndarray,
    weight: np.ndarray,
    measured: np.ndarray,
) -> np.ndarray:
    """Mean over the target of the measured variances after each item: items x measured."""
    covariance = np.broadcast_to(prior, (len(weight), *prior.shape)).copy()
    found = np.empty((len(loading), len(measured)))
    for k, each in enumerate(loading):
        reach = covariance @ each
        scale = told[:, k] / (1 + told[:, k] * (reach @ each))
        covariance -= scale[:, None, None] * reach[:, :, None] * reach[:, None]
        found[k] = np.einsum("t,mk,tkl,ml->m", weight, measured, covariance, measured)
    return found

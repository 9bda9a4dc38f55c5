"""How well predicted probabilities agree with responses: six held-out metrics.

Every metric takes a probability and a response a cell, and optionally a weight. A fractional
response `y` counts as `y` right answers and `1 - y` wrong ones, in every metric, so that a cell
with `y = 0.25` and weight 4 equals one right and three wrong cells. Sums are float64. A metric
that is undefined (no cells, the AUC of one class) is NaN.
"""

import numpy as np
import numpy.typing as npt
from scipy.special import xlog1py, xlogy

from irtjax.errors import InputError

__all__ = [
    "METRICS",
    "accuracy",
    "all_metrics",
    "auc",
    "brier",
    "calibration_error",
    "f1",
    "log_loss",
]

_CALIBRATION_BINS = 15  # the number of Guo et al. (2017), which later papers kept


def accuracy(
    probability: npt.ArrayLike, response: npt.ArrayLike, weight: npt.ArrayLike | None = None
) -> float:
    """Share of responses on the predicted side: right is predicted where `probability >= 0.5`.

    Args:
        probability: predicted probability of a right answer, one a cell.
        response: observed response in [0, 1], one a cell.
        weight: how many answers a cell stands for, not negative; 1 without.

    Returns:
        The share, in [0, 1]; NaN without cells.

    Raises:
        InputError: a value outside [0, 1] or not a number, a negative weight, unequal lengths.

    >>> accuracy([0.9, 0.5, 0.2, 0.6], [1, 1, 1, 0])
    0.5
    """
    return _accuracy(*_checked(probability, response, weight))


def f1(
    probability: npt.ArrayLike, response: npt.ArrayLike, weight: npt.ArrayLike | None = None
) -> float:
    """F1 of the class "right": `2 TP / (2 TP + FP + FN)`, right predicted where `p >= 0.5`.

    Args and raises as `accuracy`.

    Returns:
        The score, in [0, 1]; NaN where nothing is right and nothing is predicted right.

    >>> f1([0.9, 0.5, 0.2, 0.6], [1, 1, 1, 0])
    0.6666666666666666
    """
    return _f1(*_checked(probability, response, weight))


def auc(
    probability: npt.ArrayLike, response: npt.ArrayLike, weight: npt.ArrayLike | None = None
) -> float:
    """Area under the ROC curve: chance that a right cell has the higher probability; ties are half.

    The Mann-Whitney statistic from one sort of the cells, in O(n log n) (Hanley & McNeil, 1982).
    Args and raises as `accuracy`.

    Returns:
        The area, in [0, 1]; NaN when all responses are right or all are wrong.

    >>> auc([0.9, 0.5, 0.2, 0.5], [1, 1, 0, 0])
    0.875
    """
    return _auc(*_checked(probability, response, weight))


def log_loss(
    probability: npt.ArrayLike, response: npt.ArrayLike, weight: npt.ArrayLike | None = None
) -> float:
    """Mean of `-[y log p + (1 - y) log(1 - p)]`, natural logarithm.

    Probabilities are never clipped: a certain prediction (0 or 1) that is wrong costs infinity,
    and one that is right costs 0. Args and raises as `accuracy`.

    Returns:
        The mean in nats, 0 at best, maybe infinite; NaN without cells.

    >>> round(log_loss([0.9, 0.5], [1, 0]), 6)
    0.399254
    """
    return _log_loss(*_checked(probability, response, weight))


def brier(
    probability: npt.ArrayLike, response: npt.ArrayLike, weight: npt.ArrayLike | None = None
) -> float:
    """Mean of `y (1 - p)^2 + (1 - y) p^2`, the squared error of a right or wrong answer.

    For responses 0 and 1 this is Brier's (1950) score `(y - p)^2`; a fractional one adds the
    variance `y (1 - y)` of its answers. Args and raises as `accuracy`.

    Returns:
        The mean, in [0, 1]; NaN without cells.

    >>> round(brier([0.9, 0.5], [1, 0]), 3)
    0.13
    """
    return _brier(*_checked(probability, response, weight))


def calibration_error(
    probability: npt.ArrayLike, response: npt.ArrayLike, weight: npt.ArrayLike | None = None
) -> float:
    """Expected calibration error over 15 bins of equal width.

    `sum_b (n_b / n) |mean response_b - mean probability_b|` with the bins `((b-1)/15, b/15]`, 0 in
    the first (Guo, Pleiss, Sun & Weinberger, 2017, eq. 3). Args and raises as `accuracy`.

    Returns:
        The error, in [0, 1]; NaN without cells.

    >>> round(calibration_error([0.9, 0.9, 0.1, 0.1], [1, 1, 0, 1]), 3)
    0.25
    """
    return _calibration_error(*_checked(probability, response, weight))


METRICS = ("accuracy", "f1", "auc", "log_loss", "brier", "calibration_error")


def all_metrics(
    probability: npt.ArrayLike, response: npt.ArrayLike, weight: npt.ArrayLike | None = None
) -> dict[str, float | int]:
    """All six metrics of the same cells, and their number.

    Args and raises as `accuracy`.

    Returns:
        `accuracy, f1, auc, log_loss, brier, calibration_error` and `n`, the number of cells
        (an integer, whatever their weights).

    >>> all_metrics([0.9, 0.2], [1, 0])["n"]
    2
    """
    p, y, w = _checked(probability, response, weight)
    return {
        "accuracy": _accuracy(p, y, w),
        "f1": _f1(p, y, w),
        "auc": _auc(p, y, w),
        "log_loss": _log_loss(p, y, w),
        "brier": _brier(p, y, w),
        "calibration_error": _calibration_error(p, y, w),
        "n": len(p),
    }


def _accuracy(p: np.ndarray, y: np.ndarray, w: np.ndarray) -> float:
    return _mean(np.where(p >= 0.5, y, 1 - y), w)


def _f1(p: np.ndarray, y: np.ndarray, w: np.ndarray) -> float:
    predicted_right = p >= 0.5
    true_positive = float(np.dot(w[predicted_right], y[predicted_right]))
    total = float(w[predicted_right].sum() + np.dot(w, y))  # 2 TP + FP + FN
    return 2 * true_positive / total if total > 0 else float("nan")


def _auc(p: np.ndarray, y: np.ndarray, w: np.ndarray) -> float:
    if len(p) == 0:
        return float("nan")
    order = np.argsort(p, kind="stable")
    p = p[order]
    starts = np.flatnonzero(np.concatenate(([True], p[1:] != p[:-1])))
    right = np.add.reduceat((w * y)[order], starts)
    wrong = np.add.reduceat((w * (1 - y))[order], starts)
    pairs = float(right.sum() * wrong.sum())
    if not pairs > 0:
        return float("nan")
    wrong_below = np.cumsum(wrong) - wrong
    return float(np.dot(right, wrong_below + 0.5 * wrong)) / pairs


def _log_loss(p: np.ndarray, y: np.ndarray, w: np.ndarray) -> float:
    # xlogy is 0 where the response is 0, whatever the logarithm: no 0 * inf.
    return _mean(-(xlogy(y, p) + xlog1py(1 - y, -p)), w)


def _brier(p: np.ndarray, y: np.ndarray, w: np.ndarray) -> float:
    return _mean(y * (1 - p) ** 2 + (1 - y) * p**2, w)


def _calibration_error(p: np.ndarray, y: np.ndarray, w: np.ndarray) -> float:
    total = float(w.sum())
    if not total > 0:
        return float("nan")
    bins = np.maximum(np.ceil(p * _CALIBRATION_BINS).astype(np.int64) - 1, 0)
    gap = np.bincount(bins, w * (y - p), minlength=_CALIBRATION_BINS)
    return float(np.abs(gap).sum()) / total


def _mean(value: np.ndarray, w: np.ndarray) -> float:
    # A cell of weight 0 contributes nothing, even where its loss is infinite.
    taken = w > 0
    total = float(w.sum())
    return float(np.dot(value[taken], w[taken])) / total if total > 0 else float("nan")


def _checked(
    probability: npt.ArrayLike, response: npt.ArrayLike, weight: npt.ArrayLike | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    p = np.asarray(probability, np.float64)
    y = np.asarray(response, np.float64)
    w = np.ones_like(p) if weight is None else np.asarray(weight, np.float64)
    if not p.shape == y.shape == w.shape:
        raise InputError(
            f"metrics need one response and one weight a probability, not shapes {p.shape}, "
            f"{y.shape} and {w.shape}"
        )
    p, y, w = p.ravel(), y.ravel(), w.ravel()
    for name, value in (("probability", p), ("response", y)):
        bad = ~((value >= 0) & (value <= 1))
        if bad.any():
            k = int(np.flatnonzero(bad)[0])
            raise InputError(
                f"{name} {value[k]} of cell {k} is not in [0, 1]; leave missing cells out"
            )
    bad = ~(np.isfinite(w) & (w >= 0))
    if bad.any():
        k = int(np.flatnonzero(bad)[0])
        raise InputError(f"weight {w[k]} of cell {k} is negative or not finite")
    return p, y, w

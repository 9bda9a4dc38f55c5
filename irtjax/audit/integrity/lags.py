"""Rows whose cells stand some columns from where they belong."""

import dataclasses

import numpy as np
from jaxtyping import Bool, Float
from scipy import fft
from scipy.stats import norm

__all__ = ["Lag", "Shift", "best_lag", "lag_agreement", "shift_of"]

_FEWEST_OVERLAPPING = 20
_NEIGHBOURS = 20
_TAIL = 1e-3
_FEWEST_IN_TAIL = 20


@dataclasses.dataclass(frozen=True)
class Lag:
    """Where a block fits best among all columns.

    Attributes:
        lag: columns to the right at which its items are found; negative to the left.
        z: agreement there in standard errors, these taken from all other lags.
        p: of such a z at any of the lags.
        agreement: correlation with the others' mean at that lag.
    """

    lag: int
    z: float
    p: float
    agreement: float


@dataclasses.dataclass(frozen=True)
class Shift:
    """A stretch of a row that stands in the wrong columns.

    Attributes:
        lag: columns to the right where the cells belong.
        start: first column of the stretch.
        stop: the column after its last.
        gain: sum over its cells of the product with the others' mean at the lag minus that in
            place, over its standard error.
    """

    lag: int
    start: int
    stop: int
    gain: float


def best_lag(
    row: Float[np.ndarray, " items"],
    reference: Float[np.ndarray, " items"],
    block: slice,
    n_tests: int,
) -> Lag:
    """The lag at which a block of a row agrees best with the other models, over all columns.

    Args:
        row: standardised responses without trend, 0 where missing.
        reference: the others' weighted mean, alike.
        block: columns of the block.
        n_tests: how many blocks are searched.
    """
    n_items = len(row)
    part = np.zeros(n_items)
    part[block] = row[block]
    lags = np.arange(-(n_items - 1), n_items)
    product = _correlate(part, reference)
    power = _correlate((part != 0).astype(float), reference**2)
    overlap = _correlate((part != 0).astype(float), (reference != 0).astype(float))
    # A lag needs half of the block: a few cells at the edge fit somewhere by chance.
    n_cells = np.count_nonzero(part)
    enough = overlap >= max(_FEWEST_OVERLAPPING, n_cells / 2)
    scale = np.sqrt(np.maximum(power, 1e-9) * np.sum(part**2) / max(n_cells, 1))
    z = np.where(enough, product / scale, 0)
    if not np.any(enough & (z != 0)):
        return Lag(0, 0.0, 1.0, float("nan"))
    spread = max(1.0, float(np.median(np.abs(z[enough]))) / norm.ppf(0.75))
    at = int(np.argmax(z))
    p = float(norm.sf(z[at] / spread)) * int(enough.sum())
    p = min(1.0, max(p, _tail_p(z, enough, at)) * max(n_tests, 1))
    agreement = z[at] / np.sqrt(max(overlap[at], 1.0))
    return Lag(int(lags[at]), float(z[at] / spread), p, float(agreement))


def _tail_p(z: Float[np.ndarray, " lags"], enough: Bool[np.ndarray, " lags"], at: int) -> float:
    """Expected number of lags as high as the best, from an exponential tail of all others.

    Where right answers are rare, sums of products have heavier tails than a normal.
    """
    far = enough & (np.abs(np.arange(len(z)) - at) > _NEIGHBOURS)
    others = z[far]
    n_top = max(_FEWEST_IN_TAIL, int(_TAIL * len(others)))
    if len(others) < 2 * n_top:
        return 1.0
    top = np.partition(others, len(others) - n_top)[-n_top:]
    excess = max(float(np.mean(top - top.min())), 1e-9)
    return float(n_top * np.exp(-(z[at] - top.min()) / excess))


def shift_of(
    row: Float[np.ndarray, " items"],
    reference: Float[np.ndarray, " items"],
    lag: int,
) -> Shift:
    """The stretch of a row for which a lag explains most: the largest sum of consecutive gains."""
    moved = np.zeros_like(reference)
    if lag > 0:
        moved[:-lag] = reference[lag:]
    else:
        moved[-lag:] = reference[:lag]
    gain = row * (moved - reference)
    before = np.concatenate([[0.0], np.cumsum(gain)])
    lowest = np.minimum.accumulate(before)
    stop = int(np.argmax(before - lowest))
    start = int(np.argmin(before[: stop + 1]))
    error = float(np.sqrt(np.sum(gain[start:stop] ** 2)))
    return Shift(lag, start, stop, float(before[stop] - before[start]) / max(error, 1e-9))


def lag_agreement(
    row: Float[np.ndarray, " items"],
    reference: Float[np.ndarray, " items"],
    part: slice,
    lag: int,
) -> tuple[float, float]:
    """Correlation of some of a row's cells with the reference at one lag, and its z by chance."""
    place = np.arange(part.start, part.stop)
    target = place + lag
    inside = (target >= 0) & (target < len(row))
    x, u = row[place[inside]], reference[target[inside]]
    both = (x != 0) & (u != 0)
    if not both.any():
        return 0.0, 0.0
    x, u = x[both], u[both]
    correlation = float(np.sum(x * u) / np.sqrt(np.sum(x * x) * np.sum(u * u)))
    return correlation, correlation * float(np.sqrt(len(x)))


def _correlate(
    part: Float[np.ndarray, " items"], reference: Float[np.ndarray, " items"]
) -> Float[np.ndarray, " lags"]:
    """`sum_j part[j] reference[j + lag]` for all lags, by FFT."""
    n_items = len(part)
    size = fft.next_fast_len(2 * n_items - 1, real=True)
    spectrum = np.conj(fft.rfft(part, size)) * fft.rfft(reference, size)
    circular = fft.irfft(spectrum, size)
    return np.concatenate([circular[size - n_items + 1 :], circular[:n_items]])

"""Whether predicted probabilities come true: the calibration plot."""

import numpy as np
import pandas as pd
from jaxtyping import Float
from matplotlib.figure import Figure

from irtjax.data.cells import Cells
from irtjax.fit.result import FitResult
from irtjax.report.style import COLOURS, new_figure, styled, titled

__all__ = ["calibration_bins", "calibration_summary", "draw_calibration"]

_N_BINS = 15  # those of the calibration error
# Fitted responses are a sample; held-out ones are all there, as in `fit.json`.
_MOST_CELLS, _MOST_HELD_OUT = 200_000, 2_000_000
_Z = 1.96
_DRAWS, _MOST_BY_CHANCE = 4000, 0.95


def calibration_bins(fit: FitResult, *, seed: int = 0) -> pd.DataFrame:
    """Predicted probabilities and shares of right answers in 15 bins of equal width.

    Of the held-out responses where the fit has some (a random 2,000,000 of them where they are
    more), else of those it was fitted to (200,000), which flatter it.

    Returns:
        `source` (`held-out` or `fitted`), `bin_low`, `bin_high`, `n`, `predicted`, `observed`,
        `low`, `high` (Wilson's 95% interval of the observed share), `chance_sd` (standard deviation
        that it would have by chance, did predictions come true), for each bin with responses.
    """
    cells = fit.data.cells() if fit.heldout is None else fit.heldout
    most = _MOST_CELLS if fit.heldout is None else _MOST_HELD_OUT
    if len(cells) > most:
        chosen = np.random.default_rng(seed).choice(len(cells), most, replace=False)
        cells = cells.taken(np.sort(chosen))
    p = fit.predict_cells(cells.model_index, cells.item_index)
    table = _binned(p, cells)
    table.insert(0, "source", "fitted" if fit.heldout is None else "held-out")
    return table


def _binned(p: np.ndarray, cells: Cells) -> pd.DataFrame:
    bins = np.maximum(np.ceil(p * _N_BINS).astype(np.int64) - 1, 0)
    weight = cells.weight.astype(np.float64)
    n, total = np.bincount(bins, minlength=_N_BINS), np.bincount(bins, weight, _N_BINS)
    taken = n > 0
    predicted = np.bincount(bins, weight * p, _N_BINS)[taken] / total[taken]
    observed = np.bincount(bins, weight * cells.response, _N_BINS)[taken] / total[taken]
    low, high = _wilson(observed, total[taken])
    variance = weight * p * (1 - p)
    # Scores between 0 and 1 scatter less about their mean than right and wrong answers.
    scatter = min(float(np.sum(weight * (cells.response - p) ** 2) / np.sum(variance)), 1.0)
    chance = scatter * np.bincount(bins, variance, _N_BINS)[taken] / total[taken] ** 2
    edge = np.flatnonzero(taken)
    return pd.DataFrame(
        {
            "bin_low": edge / _N_BINS,
            "bin_high": (edge + 1) / _N_BINS,
            "n": n[taken],
            "predicted": predicted,
            "observed": observed,
            "low": low,
            "high": high,
            "chance_sd": np.sqrt(chance),
        }
    )


def _wilson(share: np.ndarray, n: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Wilson (1927): 95% interval of a share of n answers."""
    middle = (share + _Z**2 / (2 * n)) / (1 + _Z**2 / n)
    half = _Z / (1 + _Z**2 / n) * np.sqrt(share * (1 - share) / n + (_Z / (2 * n)) ** 2)
    return middle - half, middle + half


def calibration_summary(bins: pd.DataFrame) -> pd.DataFrame:
    """Of all bins of `calibration_bins`: how far predictions are off, and how far by chance alone.

    Returns:
        One row: `source`, `n`, `mean_gap` (the calibration error), `chance_gap` (its mean, did
        predictions come true: few responses in a bin have a share of their own), `chance_gap_high`
        (what it then exceeds one time in twenty).
    """
    n = int(bins["n"].sum())
    is_heldout = bool((bins["source"] == "held-out").all())
    by_chance = _gaps_by_chance(bins)
    row = {
        "source": "held-out" if is_heldout else "fitted",
        "n": n,
        "mean_gap": _mean_gap(bins, bins["observed"].to_numpy()[None])[0],
        "chance_gap": np.mean(by_chance),
        "chance_gap_high": np.quantile(by_chance, _MOST_BY_CHANCE),
    }
    return pd.DataFrame({name: [value] for name, value in row.items()})


def _mean_gap(
    bins: pd.DataFrame, observed: Float[np.ndarray, "draws bins"]
) -> Float[np.ndarray, " draws"]:
    n = bins["n"].to_numpy(float)
    gap = np.abs(observed - bins["predicted"].to_numpy())
    return np.asarray(gap @ n / max(n.sum(), 1))


def _gaps_by_chance(bins: pd.DataFrame) -> Float[np.ndarray, " draws"]:
    """Mean gaps of responses drawn from the predictions: binomial shares in each bin."""
    share = bins["predicted"].to_numpy().clip(0, 1)
    deviation = np.maximum(bins["chance_sd"].to_numpy(), np.finfo(np.float32).tiny)
    # The number of answers whose share scatters so: that of the bin, where all have weight 1.
    n = np.maximum(np.round(share * (1 - share) / deviation**2), 1).astype(np.int64)
    drawn = np.random.default_rng(0).binomial(n, share, (_DRAWS, len(bins))) / n
    return _mean_gap(bins, drawn)


@styled()
def draw_calibration(bins: pd.DataFrame) -> Figure:
    """The bins of `calibration_bins` about the diagonal, and how many responses each has."""
    figure = new_figure(4.6)
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=[3.2, 1])
    upper.plot([0, 1], [0, 1], color="#999999", lw=1, ls="--")
    below, above = bins["observed"] - bins["low"], bins["high"] - bins["observed"]
    upper.errorbar(
        bins["predicted"],
        bins["observed"],
        np.maximum([below, above], 0),
        fmt="o",
        ms=4,
        lw=1.2,
        color=COLOURS[0],
    )
    upper.set_xlim(-0.02, 1.02)
    upper.set_ylim(-0.02, 1.02)
    upper.set_ylabel("share of right answers")
    upper.grid()
    width = bins["bin_high"] - bins["bin_low"]
    lower.bar(bins["bin_low"], bins["n"], width, align="edge", color=COLOURS[5], ec="white", lw=0.5)
    lower.set_ylabel("responses")
    lower.set_xlabel("predicted probability of a right answer")
    lower.yaxis.set_major_formatter("{x:,.0f}")
    told = calibration_summary(bins).iloc[0]
    is_heldout = told["source"] == "held-out"
    of = "held-out responses" if is_heldout else "responses that were fitted"
    note = f"{told['n']:,} {of}, 95% intervals. On the dashed line predictions come true."
    off = f"Predictions off by {told['mean_gap']:.3f}, by chance {told['chance_gap']:.3f}"
    titled(figure, off, note)
    return figure

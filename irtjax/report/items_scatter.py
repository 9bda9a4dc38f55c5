"""Difficulty against discrimination of all items: points, or a density where they are many."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from irtjax.report.style import COLOURS, SEQUENTIAL, new_figure, plain_log_ticks, styled, titled

__all__ = ["draw_items", "items_summary"]

_MOST_POINTS = 1500  # an SVG has 100 bytes a point
_FEW_POINTS = 200
_GRID = 34
_TAIL = 1.0  # percent of the items that each side of the axes may leave out
_SLACK = 0.06
_COUNTS = ("items", "falling", "not_drawn")


def items_summary(items: pd.DataFrame) -> pd.DataFrame:
    """What the picture says in words, in one row.

    Args:
        items: `difficulty` and `discrimination`, as `FitResult.item_parameters` has them.

    Returns:
        `n_items`, `n_falling` (with ability), `median_discrimination` (logits a standard
        deviation), `n_not_drawn` (outside of the axes, or without a difficulty).
    """
    _, y, is_inside = _inside(items)
    middle = float(np.median(y)) if len(y) else float("nan")
    row = {
        "n_items": len(items),
        "n_falling": int(np.count_nonzero(y < 0)),
        "median_discrimination": middle,
        "n_not_drawn": len(items) - int(np.count_nonzero(is_inside)),
    }
    return pd.DataFrame([row])


@styled()
def draw_items(items: pd.DataFrame) -> Figure:
    """Difficulty and discrimination of items; beyond 1,500 the number in each hexagon.

    Args:
        items: `difficulty` and `discrimination`, as `FitResult.item_parameters` has them.
    """
    x, y, is_inside = _inside(items)
    told = items_summary(items).iloc[0]
    figure = new_figure(3.9)
    axes = figure.subplots()
    if len(x) > _MOST_POINTS:
        _density(figure, axes, x[is_inside], y[is_inside])
    else:
        size = 5 if len(x) <= _FEW_POINTS else 3
        axes.plot(x[is_inside], y[is_inside], "o", ms=size, mew=0, alpha=0.6, color=COLOURS[0])
    axes.set_xlim(*_limits(x))
    axes.set_ylim(*_limits(y))
    if told["n_falling"]:
        axes.axhline(0, color=COLOURS[1], lw=1)
    axes.set_xlabel("difficulty (standard deviations of ability)")
    axes.set_ylabel("discrimination\n(logits a standard deviation)")
    n_items, n_falling, n_out = (int(told[f"n_{name}"]) for name in _COUNTS)
    note = "Right is harder, up tells models apart better."
    if n_out:
        note += f" {n_out:,} items lie outside or have no difficulty."
    what = f"{n_items:,} items; median discrimination {told['median_discrimination']:.2f}"
    if n_falling:
        what = f"{n_falling:,} of {n_items:,} items fall with ability"
    titled(figure, what, note)
    return figure


def _inside(items: pd.DataFrame) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Difficulty and discrimination of the items that have both, and which the axes hold."""
    both = items[["difficulty", "discrimination"]].to_numpy(float)
    x, y = both[np.all(np.isfinite(both), axis=1)].T
    is_inside = np.ones(len(x), bool)
    for values in (x, y):
        low, high = _limits(values)
        is_inside &= (values >= low) & (values <= high)
    return x, y, is_inside


def _limits(values: np.ndarray) -> tuple[float, float]:
    if len(values) == 0:
        return -1.0, 1.0
    low, high = np.percentile(values, [_TAIL, 100 - _TAIL])
    if len(values) <= 1 / (_TAIL / 100):  # too few to leave one out
        low, high = values.min(), values.max()
    slack = _SLACK * max(high - low, 0.1)
    return float(low - slack), float(high + slack)


def _density(figure: Figure, axes: Axes, x: np.ndarray, y: np.ndarray) -> None:
    cells = axes.hexbin(
        x, y, gridsize=_GRID, mincnt=1, cmap=SEQUENTIAL, norm=LogNorm(), linewidths=0
    )
    bar = figure.colorbar(cells, ax=axes, location="bottom", shrink=0.7, aspect=30, pad=0.02)
    bar.set_label("items in a hexagon")
    plain_log_ticks(bar.ax.xaxis)
    bar.outline.set_visible(False)

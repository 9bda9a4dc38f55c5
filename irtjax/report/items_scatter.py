"""Difficulty against discrimination of all items: points, or a density where they are many."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from irtjax.report.style import COLOURS, SEQUENTIAL, new_figure, plain_log_ticks, styled, titled

__all__ = ["draw_items"]

_MOST_POINTS = 1500  # an SVG has 100 bytes a point
_FEW_POINTS = 200
_GRID = 34
_TAIL = 1.0  # percent of the items that each side of the axes may leave out
_SLACK = 0.06


@styled()
def draw_items(items: pd.DataFrame) -> Figure:
    """Difficulty and discrimination of items; beyond 1,500 the number in each hexagon.

    Args:
        items: `difficulty` and `discrimination`, as `FitResult.item_parameters` has them.
    """
    both = items[["difficulty", "discrimination"]].to_numpy(float)
    x, y = both[np.all(np.isfinite(both), axis=1)].T
    figure = new_figure(3.9)
    axes = figure.subplots()
    limits = [_limits(values) for values in (x, y)]
    is_inside = np.ones(len(x), bool)
    for values, (low, high) in zip((x, y), limits, strict=True):
        is_inside &= (values >= low) & (values <= high)
    n_negative = int(np.count_nonzero(y < 0))
    if len(x) > _MOST_POINTS:
        _density(figure, axes, x[is_inside], y[is_inside])
    else:
        size = 5 if len(x) <= _FEW_POINTS else 3
        axes.plot(x[is_inside], y[is_inside], "o", ms=size, mew=0, alpha=0.6, color=COLOURS[0])
    axes.set_xlim(*limits[0])
    axes.set_ylim(*limits[1])
    if n_negative:
        axes.axhline(0, color=COLOURS[1], lw=1)
    axes.set_xlabel("difficulty (standard deviations of ability)")
    axes.set_ylabel("discrimination\n(logits a standard deviation)")
    n_out = len(items) - int(np.count_nonzero(is_inside))
    note = "Right is harder, up tells models apart better."
    if n_out:
        note += f" {n_out:,} items lie outside or have no difficulty."
    titled(figure, _finding(items, y, n_negative), note)
    return figure


def _finding(items: pd.DataFrame, discrimination: np.ndarray, n_negative: int) -> str:
    if n_negative:
        return f"{n_negative:,} of {len(items):,} items fall with ability"
    middle = float(np.median(discrimination)) if len(discrimination) else float("nan")
    return f"{len(items):,} items; median discrimination {middle:.2f}"


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

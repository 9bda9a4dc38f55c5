"""How a fit proceeded: its objective and the largest move of an ability, by step."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from irtjax.errors import InputError
from irtjax.fit.result import FitResult
from irtjax.report.style import COLOURS, new_figure, plain_log_ticks, styled, titled

__all__ = ["draw_trace", "trace_table"]

_MOST_ROWS = 5000


def trace_table(fit: FitResult) -> pd.DataFrame:
    """`step`, `objective` (see `fit.json`), `largest_move` (standard deviations of ability).

    Raises:
        InputError: the fit's report has no trace.
    """
    trace: dict[str, Any] = fit.report.get("trace") or {}
    objective = np.asarray(trace.get("objective") or [], np.float64)
    if len(objective) == 0:
        raise InputError("the fit's report has no trace to draw")
    change = np.full(len(objective), np.nan)
    given = np.asarray(trace.get("change") or [], np.float64)[: len(objective)]
    change[: len(given)] = given
    step = np.arange(1, len(objective) + 1)
    return pd.DataFrame({"step": step, "objective": objective, "largest_move": change})


@styled()
def draw_trace(table: pd.DataFrame, status: str = "") -> Figure:
    """Objective and moves of `trace_table`.

    Args:
        table: one row a step.
        status: how it ended, as `FitResult.status`.
    """
    shown = table.iloc[:: max(1, len(table) // _MOST_ROWS)]
    figure = new_figure(3.8)
    upper, lower = figure.subplots(2, 1, sharex=True)
    marker = "o" if len(shown) <= 40 else ""
    upper.plot(shown["step"], shown["objective"], marker=marker, ms=3, color=COLOURS[0])
    upper.set_ylabel("objective (nats)")
    upper.ticklabel_format(axis="y", useOffset=False, style="plain")
    upper.yaxis.set_major_formatter("{x:,.0f}")
    move = shown["largest_move"].where(shown["largest_move"] > 0)
    lower.plot(shown["step"], move, marker=marker, ms=3, color=COLOURS[1])
    lower.set_ylabel("largest move (sd)")
    if move.notna().any():
        lower.set_yscale("log")
        plain_log_ticks(lower.yaxis)
    lower.set_xlabel("step")
    lower.xaxis.set_major_locator(MaxNLocator(integer=True))
    for axes in (upper, lower):
        axes.grid()
        axes.set_axisbelow(True)
    ending = {"converged": "converged"}.get(status, f"ended: {status}" if status else "ended")
    titled(
        figure,
        f"The fit {ending} after {len(table):,} step{'s' if len(table) != 1 else ''}",
        "Above: what is maximised. Below: how far the abilities still moved.",
    )
    return figure

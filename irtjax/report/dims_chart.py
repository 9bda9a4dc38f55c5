"""How well fits with other numbers of dims predict: held-out log-loss by dims."""

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from irtjax.report.style import COLOURS, new_figure, styled, titled

__all__ = ["draw_dims"]


@styled()
def draw_dims(table: pd.DataFrame) -> Figure:
    """Held-out log-loss of fits by their number of dims, with standard errors over the folds.

    Args:
        table: `dims`, `log_loss`, `log_loss_se`, `is_chosen` (of one row).
    """
    figure = new_figure(3.0)
    axes = figure.subplots()
    axes.errorbar(
        table["dims"], table["log_loss"], table["log_loss_se"], marker="o", color=COLOURS[0]
    )
    chosen = table[table["is_chosen"]]
    axes.plot(chosen["dims"], chosen["log_loss"], "o", ms=11, mfc="none", mew=2, color=COLOURS[1])
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("dims")
    axes.set_ylabel("held-out log-loss (nats)")
    axes.grid()
    axes.set_axisbelow(True)
    dims = int(chosen["dims"].iloc[0])
    what = f"{dims} dim{'s' if dims != 1 else ''} predict{'s' if dims == 1 else ''} well enough"
    titled(figure, what, "The fewest within one standard error of the lowest (ringed).")
    return figure

"""Fits with other numbers of dims: how well they predict, and how their dims go together."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from irtjax.report.heatmap import draw_heatmap
from irtjax.report.style import COLOURS, new_figure, styled, titled

__all__ = ["draw_dim_correlations", "draw_dims"]


@styled()
def draw_dims(table: pd.DataFrame) -> Figure:
    """Held-out log-loss of fits by their number of dims, with standard errors over the folds.

    Args:
        table: `dims`, `log_loss`, `log_loss_se`, `is_chosen` (of one row).
    """
    figure = new_figure(3.4)
    axes = figure.subplots()
    axes.errorbar(
        table["dims"], table["log_loss"], table["log_loss_se"], marker="o", color=COLOURS[0]
    )
    chosen = table[table["is_chosen"]]
    axes.plot(chosen["dims"], chosen["log_loss"], "o", ms=11, mfc="none", mew=2, color=COLOURS[1])
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("dims of the fit")
    axes.set_ylabel("held-out log-loss (nats)")
    axes.grid()
    axes.set_axisbelow(True)
    dims = int(chosen["dims"].iloc[0])
    what = f"{dims} dim{'s' if dims != 1 else ''} predict{'s' if dims == 1 else ''} well enough"
    note = "Lower is better. Ringed: the fewest within one standard error of the lowest."
    titled(figure, what, note)
    return figure


@styled()
def draw_dim_correlations(table: pd.DataFrame, dims: int) -> Figure:
    """How the abilities of fits of other numbers of dims correlate with those of one fit.

    Args:
        table: of `irtjax.audit.dimensions.dim_correlations`.
        dims: of the one fit.
    """
    mirrored = table.rename(
        columns={"dims": "other_dims", "dim": "other_dim", "other_dims": "dims", "other_dim": "dim"}
    )
    both = pd.concat([table, mirrored], ignore_index=True)
    mine = both[both["dims"] == dims].pivot_table(
        index=["other_dims", "other_dim"], columns="dim", values="correlation", dropna=False
    )
    mine = mine.loc[[each for each in mine.index if each[1] <= each[0] != dims]]
    rows = [f"dim {dim} of {of}" if of > 1 else "the one dim" for of, dim in mine.index]
    return draw_heatmap(
        mine.to_numpy(np.float64),
        rows,
        [f"dim {k}" for k in mine.columns],
        label=f"correlation of abilities with the fit of {dims} dim{'s' if dims > 1 else ''}",
        title="Which dims stay when there are more",
        note="A dim that is real has a row of every larger fit to itself.",
    )

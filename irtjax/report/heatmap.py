"""Heatmaps of correlations, all on one scale; above all what benchmarks measure, by dim."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from irtjax.errors import InputError
from irtjax.fit.result import FitResult
from irtjax.report.style import DIVERGING, MINUS, new_figure, shortened_together, styled, titled

__all__ = ["draw_heatmap", "draw_loadings", "mean_loadings"]

_MOST_ROWS = 40
_DARK = 0.7  # from here on numbers are white
_MOST_NUMBERS = 8  # columns; in more, numbers do not fit


def mean_loadings(fit: FitResult, by: str = "benchmark") -> pd.DataFrame:
    """Mean loading of the items on each dim, one row a value of an item column.

    Returns:
        `column` (its name), `value`, `n_items`, `dim1_loading`, `dim2_loading`, ...; in the order
        of the items.

    Raises:
        InputError: items have no such column, or one has no value.
    """
    codes, names = fit.data.groups(by)
    items = fit.item_parameters()
    columns = [f"dim{k + 1}_loading" for k in range(fit.spec.dims)]
    means = items[columns].groupby(codes).mean()
    found = {"column": by, "value": names, "n_items": np.bincount(codes, minlength=len(names))}
    return pd.DataFrame(found | {name: means[name].to_numpy() for name in columns})


@styled()
def draw_loadings(table: pd.DataFrame) -> Figure:
    """Heatmap of `mean_loadings` of one column; of more than 40 rows those with the most items.

    Raises:
        InputError: a table without rows.
    """
    if table.empty:
        raise InputError("there is no benchmark to draw")
    by = str(table["column"].iloc[0])
    shown = table.nlargest(_MOST_ROWS, "n_items").sort_index()
    columns = [name for name in table.columns if str(name).endswith("_loading")]
    dims = "the dim" if len(columns) == 1 else f"the {len(columns)} dims"
    is_cut = len(shown) < len(table)
    which = f"the {len(shown)} largest of {len(table):,}" if is_cut else f"each {by}"
    return draw_heatmap(
        shown[columns].to_numpy(float),
        shortened_together(shown["value"]),
        [f"dim {k + 1}" for k in range(len(columns))],
        label="mean loading of the items",
        title=f"How {which} loads on {dims}",
        note="Blue rises with the ability; red, hatched, falls with it; near 0 by chance, perhaps.",
    )


def draw_heatmap(
    value: Float[np.ndarray, "rows columns"],
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    label: str,
    title: str,
    note: str,
) -> Figure:
    """Numbers from -1 to 1 as colours of one symmetric scale, the same in all figures.

    Args:
        value: the numbers; NaN cells stay grey.
        rows: names, from the top.
        columns: names, from the left.
        label: of the colours.
        title: of the figure.
        note: below it.
    """
    figure = new_figure(1.6 + 0.24 * len(rows))
    axes = figure.subplots()
    axes.set_facecolor("#eeeeee")
    image = axes.imshow(value, cmap=DIVERGING, vmin=-1, vmax=1, aspect="auto")
    for (row, column), each in np.ndenumerate(value):
        if np.isfinite(each):
            _cell(axes, row, column, float(each), is_numbered=len(columns) <= _MOST_NUMBERS)
    axes.set_xticks(range(len(columns)), columns)
    axes.set_yticks(range(len(rows)), rows)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    bar = figure.colorbar(image, ax=axes, location="bottom", shrink=0.7, aspect=30, pad=0.02)
    bar.set_ticks([-1, -0.5, 0, 0.5, 1])
    bar.set_label(label)
    bar.outline.set_visible(False)
    titled(figure, title, note)
    return figure


def _cell(axes: Axes, row: int, column: int, value: float, *, is_numbered: bool) -> None:
    colour = "white" if abs(value) > _DARK else "#222222"
    value = round(value, 2)
    # Both ends of a diverging scale are as dark in grey: what is printed with a minus is hatched.
    if value < 0:
        place = (column - 0.5, row - 0.5)
        hatch = Rectangle(place, 1, 1, fill=False, hatch="////", lw=0, ec=colour, alpha=0.3)
        axes.add_patch(hatch)
    if is_numbered:
        text = f"{value + 0.0:.2f}".replace("-", MINUS)  # without a minus before 0
        axes.text(column, row, text, ha="center", va="center", size=8.5, color=colour)

"""What benchmarks measure: mean loadings of their items on each dim, as a heatmap."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from irtjax.errors import InputError
from irtjax.fit.result import FitResult
from irtjax.report.style import DIVERGING, MINUS, new_figure, shortened, styled, titled

__all__ = ["draw_loadings", "mean_loadings"]

_MOST_ROWS = 40
_DARK = 0.55  # of the scale: from here on numbers are white


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
    value = shown[columns].to_numpy(float)
    largest = max(float(np.nanmax(np.abs(value), initial=0)), 0.1)
    figure = new_figure(1.6 + 0.24 * len(shown))
    axes = figure.subplots()
    image = axes.imshow(value, cmap=DIVERGING, vmin=-largest, vmax=largest, aspect="auto")
    for (row, column), each in np.ndenumerate(value):
        colour = "white" if abs(each) > _DARK * largest else "#222222"
        text = f"{each:.2f}".replace("-", MINUS)
        axes.text(column, row, text, ha="center", va="center", size=8.5, color=colour)
    axes.set_xticks(range(len(columns)), [f"dim {k + 1}" for k in range(len(columns))])
    axes.set_yticks(range(len(shown)), [shortened(name) for name in shown["value"]])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    bar = figure.colorbar(image, ax=axes, location="bottom", shrink=0.7, aspect=30, pad=0.02)
    bar.set_label(f"mean loading of the items ({MINUS}1 to 1)")
    bar.outline.set_visible(False)
    n_left_out = len(table) - len(shown)
    which = f"the {len(shown)} largest of {len(table):,}" if n_left_out else f"each {by}"
    dims = "the dim" if len(columns) == 1 else f"the {len(columns)} dims"
    titled(
        figure, f"How {which} loads on {dims}", "Blue rises with the ability, red falls with it."
    )
    return figure

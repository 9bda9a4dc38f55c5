"""Abilities of models with their intervals: the forest plot."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy import stats

from irtjax.fit.result import FitResult
from irtjax.report.style import COLOURS, new_figure, shortened_together, styled, titled

__all__ = ["LEVEL", "ability_intervals", "draw_abilities"]

LEVEL = 0.95
_MOST_ROWS = 40


def ability_intervals(fit: FitResult) -> pd.DataFrame:
    """Abilities with 95% intervals, one row a model and dim.

    Returns:
        `model_id`, `dim` (1, 2, ...), `rank` (1 is the highest ability), `ability`, `low`, `high`
        (normal interval of the standard error), `low_clustered`, `high_clustered` (t interval of
        the error clustered by benchmark; NaN where the fit has none); latent standard deviations.
    """
    fitted, table = fit.parameters, fit.abilities()
    freedom = np.asarray(fitted.clustered_degrees_of_freedom, np.float64)
    parts = []
    for k in range(fit.spec.dims):
        ability = table[f"dim{k + 1}_ability"]
        error = stats.norm.ppf((1 + LEVEL) / 2) * table[f"dim{k + 1}_ability_se"]
        wide = table[f"dim{k + 1}_ability_se_clustered"] * _t_quantile(freedom[:, k])
        columns = {
            "model_id": table["model_id"],
            "dim": k + 1,
            "rank": ability.rank(ascending=False, method="first").astype(int),
            "ability": ability,
            "low": ability - error,
            "high": ability + error,
            "low_clustered": ability - wide,
            "high_clustered": ability + wide,
        }
        parts.append(pd.DataFrame(columns))
    return pd.concat(parts, ignore_index=True)


def _t_quantile(freedom: np.ndarray) -> np.ndarray:
    is_known = np.isfinite(freedom) & (freedom > 0)
    return np.where(is_known, stats.t.ppf((1 + LEVEL) / 2, np.where(is_known, freedom, 1)), np.nan)


@styled()
def draw_abilities(table: pd.DataFrame, dim: int = 1) -> Figure:
    """Forest plot of one dim, the highest ability on top.

    Args:
        table: of `ability_intervals`.
        dim: which, from 1 on. Of more than 40 models the 20 highest and the 20 lowest are drawn.
    """
    mine = table[table["dim"] == dim].sort_values("rank")
    n_models, n_dims = len(mine), int(table["dim"].max())
    shown = _both_ends(mine)
    place = np.arange(len(shown), dtype=float)
    n_left_out = n_models - len(shown)
    half = _MOST_ROWS // 2
    if n_left_out:
        place[half:] += 1
    figure = new_figure(1.2 + 0.19 * (len(shown) + bool(n_left_out)))
    axes = figure.subplots()
    is_clustered = shown["low_clustered"].notna().any()
    if is_clustered:
        axes.hlines(
            place, shown["low_clustered"], shown["high_clustered"], color=COLOURS[0], lw=0.8
        )
    axes.hlines(place, shown["low"], shown["high"], color=COLOURS[0], lw=2.6, alpha=0.55)
    axes.plot(shown["ability"], place, "o", color=COLOURS[0], ms=3.4)
    axes.set_yticks(place, shortened_together(shown["model_id"]))
    axes.set_ylim(place[-1] + 0.7, -0.7)
    if n_left_out:
        first, last = int(shown["rank"].iloc[half - 1]) + 1, int(shown["rank"].iloc[half]) - 1
        gap = f"… ranks {first:,} to {last:,} …"
        middle = float(axes.get_xlim()[0] + axes.get_xlim()[1]) / 2
        axes.text(middle, half, gap, ha="center", va="center", color="#555555", size=9)
    axes.grid(axis="x")
    axes.tick_params(axis="y", length=0)
    axes.set_axisbelow(True)
    axes.set_xlabel("ability (sd of the models)")
    name = "Ability" if n_dims == 1 else f"Ability in dim {dim}"
    what = f"{name} of {n_models:,} models"
    if n_left_out:
        what = f"{name}: the ends of {n_models:,} models"
    note = "95% intervals"
    if is_clustered:
        note = "Thick: 95% intervals. Thin: the same, clustered by benchmark."
    titled(figure, what, note)
    return figure


def _both_ends(table: pd.DataFrame) -> pd.DataFrame:
    if len(table) <= _MOST_ROWS:
        return table
    half = _MOST_ROWS // 2
    return pd.concat([table.head(half), table.tail(half)])

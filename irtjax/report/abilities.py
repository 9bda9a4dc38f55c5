"""Abilities of models with their intervals: the forest plot."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy import stats

from irtjax.fit.result import FitResult
from irtjax.fit.uncertainty import FEWEST_EFFECTIVE_CLUSTERS
from irtjax.report.style import COLOURS, new_figure, shortened_together, styled, titled

__all__ = ["LEVEL", "ability_intervals", "draw_abilities", "is_carried_by_few"]

LEVEL = 0.95
_MOST_ROWS = 40


def ability_intervals(fit: FitResult) -> pd.DataFrame:
    """Abilities with 95% intervals, one row a model and dim.

    Returns:
        `model_id`, `dim` (1, 2, ...), `rank` (1 is the highest ability), `ability`, `low`, `high`
        (normal interval of the standard error), `low_clustered`, `high_clustered`: `ability -+
        multiplier` times the error clustered by benchmark; latent standard deviations.
        `effective_benchmarks` is how many equal benchmarks carry the ability, `multiplier` the t
        quantile at one degree of freedom less. Where fewer than `FEWEST_EFFECTIVE_CLUSTERS` do,
        there is no clustered interval (NaN); without clustered errors all four are NaN.
    """
    fitted, table = fit.parameters, fit.abilities()
    effective = np.asarray(fitted.clustered_degrees_of_freedom, np.float64) + 1
    parts = []
    for k in range(fit.spec.dims):
        ability = table[f"dim{k + 1}_ability"]
        error = stats.norm.ppf((1 + LEVEL) / 2) * table[f"dim{k + 1}_ability_se"]
        multiplier = _multiplier(effective[:, k])
        wide = table[f"dim{k + 1}_ability_se_clustered"] * multiplier
        columns = {
            "model_id": table["model_id"],
            "dim": k + 1,
            "rank": ability.rank(ascending=False, method="first").astype(int),
            "ability": ability,
            "low": ability - error,
            "high": ability + error,
            "low_clustered": ability - wide,
            "high_clustered": ability + wide,
            "effective_benchmarks": effective[:, k],
            "multiplier": multiplier,
        }
        parts.append(pd.DataFrame(columns))
    return pd.concat(parts, ignore_index=True)


def _multiplier(effective: np.ndarray) -> np.ndarray:
    # Fits saved before clustered errors were left out for this have them still.
    is_known = effective >= FEWEST_EFFECTIVE_CLUSTERS
    freedom = np.where(is_known, effective - 1, 1)
    return np.where(is_known, stats.t.ppf((1 + LEVEL) / 2, freedom), np.nan)


def is_carried_by_few(table: pd.DataFrame) -> pd.Series:
    """Rows of `ability_intervals` without a clustered interval because too few benchmarks count."""
    return table["low_clustered"].isna() & table["effective_benchmarks"].notna()


@styled()
def draw_abilities(table: pd.DataFrame, dim: int = 1) -> Figure:
    """Forest plot of one dim, the highest ability on top.

    Args:
        table: of `ability_intervals`. Models with a plain interval only, too few benchmarks
            carrying the ability, have hollow points.
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
    is_clustered = bool(shown["low_clustered"].notna().any())
    if is_clustered:
        axes.hlines(
            place, shown["low_clustered"], shown["high_clustered"], color=COLOURS[0], lw=0.8
        )
    axes.hlines(place, shown["low"], shown["high"], color=COLOURS[0], lw=2.6, alpha=0.55)
    is_hollow = is_carried_by_few(shown).to_numpy()
    for chosen, face in ((~is_hollow, COLOURS[0]), (is_hollow, "white")):
        axes.plot(shown["ability"][chosen], place[chosen], "o", color=COLOURS[0], mfc=face, ms=3.8)
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
    titled(figure, what, _note(is_clustered, is_hollow))
    return figure


def _note(is_clustered: bool, is_hollow: np.ndarray) -> str:
    said = "95% intervals"
    if is_clustered:
        said = "Thick: 95% intervals. Thin: the same, clustered by benchmark."
    if is_hollow.any():
        said += "" if said.endswith(".") else "."
        said += (
            " Hollow: too few independent benchmarks to tell how much benchmarks disagree; the "
            "interval may be too narrow."
        )
    return said


def _both_ends(table: pd.DataFrame) -> pd.DataFrame:
    if len(table) <= _MOST_ROWS:
        return table
    half = _MOST_ROWS // 2
    return pd.concat([table.head(half), table.tail(half)])

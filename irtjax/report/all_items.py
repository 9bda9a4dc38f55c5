"""How precisely all items together measure, and where the models are."""

import jax.numpy as jnp
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from irtjax.fit.result import FitResult
from irtjax.fit.tables import slope_and_intercept
from irtjax.model.curves import item_curves
from irtjax.model.information import total_information
from irtjax.report.style import COLOURS, MINUS, new_figure, styled, titled

__all__ = [
    "ability_counts",
    "draw_test_information",
    "information_of_all_items",
    "precision_summary",
]

_N_POINTS = 81
_END = 3.0
_N_BINS = 24


def information_of_all_items(fit: FitResult) -> pd.DataFrame:
    """Fisher information of all items about each dim, the other abilities being 0.

    Returns:
        `dim`, `ability`, `information` (per squared standard deviation; that of the items' point
        estimates), `standard_error` (of an ability measured by all of them, were these, the other
        abilities and the benchmark effects known); 81 rows a dim.
    """
    slope, intercept, _ = slope_and_intercept(fit)
    asymptotes = fit.parameters.guessing, fit.parameters.feasibility
    curves = item_curves(jnp.asarray(slope), jnp.asarray(intercept), *asymptotes)
    end = max(_END, float(np.max(np.abs(np.asarray(fit.parameters.ability)), initial=0)))
    at = np.linspace(-end, end, _N_POINTS)
    parts = []
    for k in range(fit.spec.dims):
        ability = np.zeros((_N_POINTS, fit.spec.dims))
        ability[:, k] = at
        matrices = total_information(curves, jnp.asarray(ability, float))
        total = np.asarray(matrices, np.float64)[:, k, k]
        with np.errstate(divide="ignore"):
            error = 1 / np.sqrt(total)
        columns = {"dim": k + 1, "ability": at, "information": total, "standard_error": error}
        parts.append(pd.DataFrame(columns))
    return pd.concat(parts, ignore_index=True)


def ability_counts(fit: FitResult) -> pd.DataFrame:
    """How many models have abilities in each of 24 bins: `dim`, `low`, `high`, `n_models`."""
    ability = np.asarray(fit.parameters.ability, np.float64)
    end = max(_END, float(np.max(np.abs(ability), initial=0)))
    edges = np.linspace(-end, end, _N_BINS + 1)
    parts = []
    for k in range(fit.spec.dims):
        counts = np.histogram(ability[:, k], edges)[0]
        columns = {"dim": k + 1, "low": edges[:-1], "high": edges[1:], "n_models": counts}
        parts.append(pd.DataFrame(columns))
    return pd.concat(parts, ignore_index=True)


def precision_summary(fit: FitResult, information: pd.DataFrame) -> pd.DataFrame:
    """Where the items measure best beside what the models' abilities are known to.

    Args:
        fit: the fit.
        information: of `information_of_all_items`.

    Returns:
        One row a dim: `dim`, `best_ability` (of most information), `best_standard_error` (there, of
        the items alone), `median_model_se` (of the models' own standard errors, which hold the
        items' uncertainty, unanswered items, benchmark effects and the other dims).
    """
    best = information.loc[information.groupby("dim")["information"].idxmax()]
    own = [f"dim{k}_ability_se" for k in best["dim"]]
    return pd.DataFrame(
        {
            "dim": best["dim"].to_numpy(),
            "best_ability": best["ability"].to_numpy(),
            "best_standard_error": best["standard_error"].to_numpy(),
            "median_model_se": fit.abilities()[own].median().to_numpy(),
        }
    )


@styled()
def draw_test_information(
    information: pd.DataFrame, counts: pd.DataFrame, summary: pd.DataFrame, dim: int = 1
) -> Figure:
    """Test information above the distribution of abilities, of one dim.

    Args:
        information: of `information_of_all_items`.
        counts: of `ability_counts`.
        summary: of `precision_summary`.
        dim: which, from 1 on.
    """
    tells = information[information["dim"] == dim]
    bins = counts[counts["dim"] == dim]
    figure = new_figure(4.0)
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=[2.2, 1])
    upper.plot(tells["ability"], tells["information"], color=COLOURS[0])
    upper.fill_between(tells["ability"], tells["information"], color=COLOURS[0], alpha=0.15, lw=0)
    upper.set_ylim(bottom=0)
    upper.yaxis.set_major_formatter("{x:,.10g}")
    upper.set_ylabel("test information\n(per squared sd)")
    upper.grid()
    lower.bar(
        bins["low"], bins["n_models"], bins["high"] - bins["low"], align="edge", color=COLOURS[1]
    )
    lower.set_ylabel("models")
    several = int(information["dim"].max()) > 1
    where = f"ability in dim {dim}" if several else "ability"
    lower.set_xlabel(f"{where} (standard deviations of the models)")
    lower.set_xlim(tells["ability"].min(), tells["ability"].max())
    for axes in (upper, lower):
        axes.set_axisbelow(True)
    told = summary[summary["dim"] == dim].iloc[0]
    what = f"The items measure{f' dim {dim}' if several else ''} best at {told['best_ability']:.1f}"
    note = f"Standard error {told['best_standard_error']:.2g} there, of the items alone"
    note += ", the other abilities 0" if several else ""
    note += f"; the models' own have the median {told['median_model_se']:.2g}."
    titled(figure, what.replace("-", MINUS), note)
    return figure

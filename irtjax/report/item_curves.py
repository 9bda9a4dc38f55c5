"""Characteristic and information curves of chosen items, beside what the models answered."""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from irtjax.checks import shown
from irtjax.errors import InputError
from irtjax.fit.result import FitResult
from irtjax.fit.tables import slope_and_intercept
from irtjax.model.information import logit_information
from irtjax.model.response import Asymptotes, response_probability
from irtjax.report.style import (
    COLOURS,
    DASHES,
    MARKERS,
    new_figure,
    shortened_together,
    styled,
    titled,
)

__all__ = [
    "chosen_items",
    "draw_characteristic_curves",
    "draw_information_curves",
    "item_curves",
    "observed_shares",
]

_N_POINTS = 81
_FARTHEST = 3.0  # an item whose difficulty lies further out shows no curve on the axes
_MOST_ITEMS = len(COLOURS)
_MOST_GROUPS = 8
_MODELS_A_GROUP = 4
_NO_SLOPE = 1e-4


def chosen_items(fit: FitResult) -> list[str]:
    """Ids of up to five items that show what there is.

    The most discriminating of the easy, middle and hard thirds, the flattest, and with one dim
    the one that falls most; only items with a difficulty within 3 standard deviations.
    """
    items = fit.item_parameters()
    is_seen = (items["difficulty"].abs() <= _FARTHEST).to_numpy()
    is_seen = is_seen | (not is_seen.any())
    items = items[is_seen]
    # Items without a slope have no difficulty: they rank last, and are still drawn.
    rank = items["difficulty"].rank(method="first", na_option="bottom")
    third = pd.qcut(rank, min(3, len(items)), labels=False)
    places, steepness = np.flatnonzero(is_seen), items["discrimination"].to_numpy(np.float64)
    found = list(items.groupby(third)["discrimination"].idxmax())
    found.append(places[np.argmin(np.abs(steepness))])
    if steepness.min() < 0:
        found.append(places[np.argmin(steepness)])
    return [str(fit.data.item_ids[k]) for k in dict.fromkeys(found)]


def item_curves(fit: FitResult, items: Sequence[str] | None = None) -> pd.DataFrame:
    """Probability and Fisher information along each item's own direction.

    At one dim that is ability; at more, the abilities projected on the item's slopes, in latent
    standard deviations, so that the curve has slope `discrimination` at `difficulty`.

    Args:
        fit: the fit; the curves are those of its point estimates.
        items: ids, at most six; a choice of `chosen_items` without.

    Returns:
        `item_id`, `ability`, `probability`, `information` (per squared standard deviation), 81
        rows an item.

    Raises:
        InputError: an id that was not in the fit, or too many.
    """
    ids, index = _checked(fit, items)
    table = fit.item_parameters().iloc[index]
    ability = np.asarray(fit.parameters.ability, np.float64)
    end = max(3.0, float(np.max(np.abs(ability), initial=0)) if fit.spec.dims == 1 else 3.0)
    at = np.linspace(-end, end, _N_POINTS)
    steepness = table["discrimination"].to_numpy(np.float64)
    intercept = table["intercept"].to_numpy(np.float64)
    asymptotes = [jnp.asarray(table[name], float) for name in ("guessing", "feasibility")]
    logit = jnp.asarray(steepness * at[:, None] + intercept, float)
    p = response_probability(logit, Asymptotes.from_natural(*asymptotes))
    tells = logit_information(logit, *asymptotes)
    information = np.asarray(tells, np.float64) * steepness**2
    return pd.DataFrame(
        {
            "item_id": np.repeat(ids, _N_POINTS),
            "ability": np.tile(at, len(ids)),
            "probability": np.asarray(p, np.float64).T.ravel(),
            "information": information.T.ravel(),
        }
    )


def observed_shares(fit: FitResult, items: Sequence[str] | None = None) -> pd.DataFrame:
    """Share of right answers among models of like ability, for the same items.

    Models are grouped by their ability along the item's direction, up to eight groups of at least
    four.

    Returns:
        `item_id`, `ability` (mean of the group), `n_models`, `share_right`.

    Raises:
        InputError: as `item_curves`.
    """
    ids, index = _checked(fit, items)
    cells = fit.data.cells()
    ability = np.asarray(fit.parameters.ability, np.float64)
    slope, _, _ = slope_and_intercept(fit)
    steepness = fit.item_parameters()["discrimination"].to_numpy(np.float64)
    parts = []
    for item_id, j in zip(ids, index, strict=True):
        mine = slice(*np.searchsorted(cells.item_index, [j, j + 1]))
        scale = steepness[j] if abs(steepness[j]) > _NO_SLOPE else 1.0
        place = ability[cells.model_index[mine]] @ (slope[j] / scale)
        groups = _grouped(place, cells.response[mine].astype(np.float64))
        parts.append(groups.assign(item_id=item_id))
    return pd.concat(parts, ignore_index=True)[["item_id", "ability", "n_models", "share_right"]]


def _grouped(place: np.ndarray, response: np.ndarray) -> pd.DataFrame:
    n_groups = int(np.clip(len(place) // _MODELS_A_GROUP, 1, _MOST_GROUPS))
    groups = np.array_split(np.argsort(place, kind="stable"), n_groups) if len(place) else []
    return pd.DataFrame(
        {
            "ability": [place[group].mean() for group in groups],
            "n_models": [len(group) for group in groups],
            "share_right": [response[group].mean() for group in groups],
        }
    )


@styled()
def draw_characteristic_curves(
    curves: pd.DataFrame, observed: pd.DataFrame | None = None
) -> Figure:
    """Characteristic curves, with dots for the shares that were observed.

    Args:
        curves: of `item_curves`.
        observed: of `observed_shares`; no dots without.
    """
    figure = _drawn(curves, "probability", has_marks=observed is not None)
    axes = figure.axes[0]
    if observed is not None:
        for k, item_id in enumerate(pd.unique(curves["item_id"])):
            dots = observed[observed["item_id"] == item_id]
            axes.plot(
                dots["ability"], dots["share_right"], MARKERS[k], color=COLOURS[k], ms=4, alpha=0.7
            )
    axes.set_ylim(-0.03, 1.03)
    axes.set_ylabel("probability of a right answer")
    note = "Marks: share right among models of like ability." if observed is not None else ""
    titled(figure, "Characteristic curves of chosen items", note)
    return figure


@styled()
def draw_information_curves(curves: pd.DataFrame) -> Figure:
    """What each item of `item_curves` tells about ability, and where."""
    figure = _drawn(curves, "information", has_marks=False)
    axes = figure.axes[0]
    axes.set_ylim(bottom=0)
    axes.set_ylabel("information (per squared sd)")
    titled(figure, "Where these items tell models apart", "Fisher information of one answer.")
    return figure


def _drawn(curves: pd.DataFrame, column: str, *, has_marks: bool) -> Figure:
    ids = list(pd.unique(curves["item_id"]))
    figure = new_figure(3.5 + 0.2 * len(ids))
    axes: Axes = figure.subplots()
    for k, item_id in enumerate(ids):
        mine = curves[curves["item_id"] == item_id]
        axes.plot(mine["ability"], mine[column], color=COLOURS[k], ls=DASHES[k])
    axes.set_xlim(curves["ability"].min(), curves["ability"].max())
    axes.set_xlabel("ability along the item's direction (standard deviations)")
    axes.grid()
    axes.set_axisbelow(True)
    marks = MARKERS if has_marks else [""] * len(MARKERS)
    shown = [
        Line2D([], [], color=COLOURS[k], ls=DASHES[k], marker=marks[k], ms=4)
        for k in range(len(ids))
    ]
    labels = shortened_together(ids, 44)
    figure.legend(shown, labels, loc="outside lower left", ncols=1, handlelength=3.4)
    return figure


def _checked(fit: FitResult, items: Sequence[str] | None) -> tuple[list[str], np.ndarray]:
    """Ids and places of the items."""
    ids = chosen_items(fit) if items is None else list(dict.fromkeys(map(str, items)))
    if not 1 <= len(ids) <= _MOST_ITEMS:
        raise InputError(f"curves are drawn of 1 to {_MOST_ITEMS} items, not of {len(ids):,}")
    index = pd.Index(fit.data.item_ids).get_indexer(pd.Index(ids))
    if (index < 0).any():
        missing = ids[int(np.flatnonzero(index < 0)[0])]
        raise InputError(f"item {shown(missing)} was not in the fit")
    return ids, index

"""`plot`: one picture of a fit, written as PNG or SVG."""

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path

from matplotlib.figure import Figure

from irtjax.checks import check_path, check_whole, shown
from irtjax.errors import InputError
from irtjax.fit.result import FitResult
from irtjax.io.write import atomic_path
from irtjax.report.abilities import ability_intervals, draw_abilities
from irtjax.report.all_items import (
    ability_counts,
    draw_test_information,
    information_of_all_items,
    precision_summary,
)
from irtjax.report.calibration import calibration_bins, draw_calibration
from irtjax.report.heatmap import draw_loadings, mean_loadings
from irtjax.report.item_curves import (
    draw_characteristic_curves,
    draw_information_curves,
    item_curves,
    observed_shares,
)
from irtjax.report.items_scatter import draw_items
from irtjax.report.style import FIGURE_SUFFIXES, write_figure
from irtjax.report.trace import draw_trace, trace_table

__all__ = ["KINDS", "Asked", "check_kind", "figure_of", "plot"]


@dataclasses.dataclass(frozen=True)
class Asked:
    """What a picture is asked to show: which dim, which items, by which item column."""

    dim: int = 1
    items: Sequence[str] | None = None
    by: str = "benchmark"


def _abilities(fit: FitResult, asked: Asked) -> Figure:
    return draw_abilities(ability_intervals(fit), asked.dim)


def _heatmap(fit: FitResult, asked: Asked) -> Figure:
    return draw_loadings(mean_loadings(fit, asked.by))


def _items(fit: FitResult, asked: Asked) -> Figure:
    return draw_items(fit.item_parameters())


def _curves(fit: FitResult, asked: Asked) -> Figure:
    curves = item_curves(fit, asked.items)
    return draw_characteristic_curves(curves, observed_shares(fit, asked.items))


def _information(fit: FitResult, asked: Asked) -> Figure:
    return draw_information_curves(item_curves(fit, asked.items))


def _test_information(fit: FitResult, asked: Asked) -> Figure:
    information = information_of_all_items(fit)
    summary = precision_summary(fit, information)
    return draw_test_information(information, ability_counts(fit), summary, asked.dim)


def _calibration(fit: FitResult, asked: Asked) -> Figure:
    return draw_calibration(calibration_bins(fit))


def _trace(fit: FitResult, asked: Asked) -> Figure:
    return draw_trace(trace_table(fit), fit.status)


KINDS: dict[str, Callable[[FitResult, Asked], Figure]] = {
    "abilities": _abilities,
    "heatmap": _heatmap,
    "items": _items,
    "curves": _curves,
    "information": _information,
    "test-information": _test_information,
    "calibration": _calibration,
    "trace": _trace,
}


def check_kind(kind: str) -> None:
    """Refuse a picture that there is not.

    Raises:
        InputError: one line says which there are.
    """
    if kind not in KINDS:
        raise InputError(f"there is no picture {shown(kind)}; choose one of {', '.join(KINDS)}")


def figure_of(
    fit: FitResult,
    kind: str,
    *,
    dim: int = 1,
    items: Sequence[str] | None = None,
    by: str = "benchmark",
) -> Figure:
    """A picture as a matplotlib figure; arguments as of `plot`.

    Raises:
        InputError: as `plot`.
    """
    check_kind(kind)
    remedy = f"the fit has {fit.spec.dims}"
    check_whole("dim", dim, 1, fit.spec.dims, remedy)
    return KINDS[kind](fit, Asked(dim, items, by))


def plot(
    fit: FitResult,
    kind: str,
    path: str | Path,
    *,
    dim: int = 1,
    items: Sequence[str] | None = None,
    by: str = "benchmark",
) -> None:
    """Draw one picture of a fit.

    Args:
        fit: the fit.
        kind: `abilities` (with intervals), `heatmap` (mean loadings of benchmarks), `items`
            (difficulty and discrimination), `curves` and `information` (of chosen items),
            `test-information`, `calibration` or `trace`.
        path: file to write, PNG or SVG by its suffix.
        dim: which ability, of `abilities` and `test-information`.
        items: ids of `curves` and `information`, at most six; a choice without.
        by: item column of `heatmap`.

    Raises:
        InputError: another kind or suffix, an id or a column that the fit does not have, a file
            that cannot be written.

    >>> import irtjax as ij, tempfile
    >>> fit = ij.fit(ij.simulate(ij.ModelSpec(), n_models=20, n_items=50).data)
    >>> ij.plot(fit, "abilities", f"{tempfile.mkdtemp()}/abilities.png")
    """
    target = check_path("the file to draw to", path)
    if target.suffix.lower() not in FIGURE_SUFFIXES:
        raise InputError(f"{target} must end with {' or '.join(FIGURE_SUFFIXES)}")
    figure = figure_of(fit, kind, dim=dim, items=items, by=by)
    with atomic_path(target) as temporary:
        write_figure(figure, temporary, target.suffix)

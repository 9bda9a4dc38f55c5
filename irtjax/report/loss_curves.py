"""The picture of a network's training: log-losses by epoch, and the score it is stopped by."""

import math
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

__all__ = ["write_loss_curves"]

_COLOURS = {"training": "#0072b2", "validation": "#d55e00", "refit": "#009e73"}
_LABELS = {
    "training": "training responses, while learning",
    "validation": "validation responses",
    "refit": "all responses, while learning again (refit)",
}
_SCORES = {"f1": "F1", "auc": "AUC"}

# Losses that differ more than so many times are drawn on a log axis: those of a training that was
# thrown about would press all others into one line.
_WIDE = 10


def write_loss_curves(
    curves: Mapping[str, Sequence[float]],
    path: Path,
    *,
    stopping: Mapping[str, Any] | None = None,
    note: str | None = None,
) -> None:
    """Draw the log-losses by epoch; the epoch whose towers were best is marked.

    Args:
        curves: `training`, `validation` and `refit`, a value an epoch; nats a response.
        path: file to write, PNG or SVG by its suffix.
        stopping: `by` (`log_loss`, `f1` or `auc`), the `scores` of the validation responses by
            epoch, which are drawn below where they are no log-losses, and the best `epoch` (0:
            none). Without, the epoch with the lowest log-loss is marked.
        note: a sentence to put above, of what happened.
    """
    figure = Figure(figsize=(6, 5.4 if _has_scores(stopping) else 3.8), layout="constrained")
    _draw(figure, curves, stopping, note)
    figure.savefig(path, dpi=150)


def _has_scores(stopping: Mapping[str, Any] | None) -> bool:
    """Whether there are scores that are no log-losses."""
    return stopping is not None and stopping["by"] in _SCORES and bool(stopping["scores"])


def _best_epoch(curves: Mapping[str, Sequence[float]], stopping: Mapping[str, Any] | None) -> int:
    """Number of the epoch that was best; 0 for none."""
    if stopping is not None:
        return int(stopping["epoch"])
    validation = curves.get("validation") or []
    return 1 + int(min(range(len(validation)), key=lambda k: validation[k])) if validation else 0


def _draw(
    figure: Figure,
    curves: Mapping[str, Sequence[float]],
    stopping: Mapping[str, Any] | None,
    note: str | None,
) -> None:
    """Log-losses above, and below the score of `stopping`, where it is another."""
    best = _best_epoch(curves, stopping)
    stopping = stopping if _has_scores(stopping) else None
    panels = figure.subplots(1 if stopping is None else 2, 1, sharex=True, squeeze=False)[
        :, 0
    ].tolist()
    if note is not None:
        panels[0].set_title(textwrap.fill(note, 90), fontsize=7, loc="left")
    if not any(math.isfinite(each) for values in curves.values() for each in values):
        text = "no epoch was finished: there is nothing to draw"
        panels[0].text(0.5, 0.5, text, ha="center", va="center", transform=panels[0].transAxes)
        panels[0].set_axis_off()
        return
    _draw_losses(panels[0], curves)
    validation = curves.get("validation") or []
    if stopping is None:
        _mark(panels[0], best, validation)
    else:
        _mark(panels[0], best, [])
        _draw_scores(panels[1], stopping)
        _mark(panels[1], best, stopping["scores"])
    for axes in panels:
        axes.spines[["top", "right"]].set_visible(False)
    n_epochs = max(len(values) for values in curves.values())
    panels[-1].xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    # Half an epoch beside: one epoch alone would have ticks at fractions only.
    panels[-1].set_xlim(0.5, n_epochs + 0.5)
    panels[-1].set_xlabel("epoch")
    # Outside, where no curve crosses it.
    figure.legend(*_named(panels), loc="outside lower center", frameon=False, fontsize=8, ncols=2)


def _named(panels: Sequence[Axes]) -> tuple[list[Any], list[str]]:
    """What has a name in any of the panels."""
    found = [
        each for axes in panels for each in zip(*axes.get_legend_handles_labels(), strict=True)
    ]
    return [line for line, _ in found], [name for _, name in found]


def _draw_losses(axes: Axes, curves: Mapping[str, Sequence[float]]) -> None:
    drawn = [each for values in curves.values() for each in values if math.isfinite(each)]
    if min(drawn) > 0 and max(drawn) > _WIDE * min(drawn):
        axes.set_yscale("log")
    for name, values in curves.items():
        if values:
            epochs = range(1, len(values) + 1)
            axes.plot(epochs, values, marker="o", ms=3, color=_COLOURS[name], label=_LABELS[name])
    axes.set_ylabel("log-loss a response (nats)")


def _draw_scores(axes: Axes, stopping: Mapping[str, Any]) -> None:
    scores = stopping["scores"]
    axes.plot(range(1, len(scores) + 1), scores, marker="o", ms=3, color=_COLOURS["validation"])
    axes.set_ylabel(f"{_SCORES[stopping['by']]} of the validation responses")


def _mark(axes: Axes, best: int, values: Sequence[float]) -> None:
    """A line at the best epoch, named with its value where there are values."""
    if best == 0:
        return
    label = f"best: epoch {best}, {values[best - 1]:.4g}" if values else None
    axes.axvline(best, color="0.7", lw=1, zorder=0, label=label)

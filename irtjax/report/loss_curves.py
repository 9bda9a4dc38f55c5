"""The picture of a network's training: log-losses by epoch."""

import math
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

__all__ = ["write_loss_curves"]

_COLOURS = {"training": "#0072b2", "validation": "#d55e00", "refit": "#009e73"}
_LABELS = {
    "training": "training responses, on the way",
    "validation": "validation responses",
    "refit": "all responses, refit",
}


# Losses that differ more than so many times are drawn on a log axis: those of a training that was
# thrown about would press all others into one line.
_WIDE = 10


def write_loss_curves(
    curves: Mapping[str, Sequence[float]], path: Path, *, note: str | None = None
) -> None:
    """Draw the log-losses by epoch; the epoch that validates best is marked.

    Args:
        curves: `training`, `validation` and `refit`, a value an epoch; nats a response.
        path: file to write, PNG or SVG by its suffix.
        note: a sentence to put above, of what happened.
    """
    figure = Figure(figsize=(6, 3.8), layout="constrained")
    _draw(figure.subplots(), curves, note)
    figure.savefig(path, dpi=150)


def _draw(axes: Axes, curves: Mapping[str, Sequence[float]], note: str | None) -> None:
    if note is not None:
        axes.set_title(textwrap.fill(note, 90), fontsize=7, loc="left")
    drawn = [each for values in curves.values() for each in values if math.isfinite(each)]
    if not drawn:
        text = "no epoch was finished: there is nothing to draw"
        axes.text(0.5, 0.5, text, ha="center", va="center", transform=axes.transAxes)
        axes.set_axis_off()
        return
    if min(drawn) > 0 and max(drawn) > _WIDE * min(drawn):
        axes.set_yscale("log")
    for name, values in curves.items():
        if values:
            epochs = range(1, len(values) + 1)
            axes.plot(epochs, values, marker="o", ms=3, color=_COLOURS[name], label=_LABELS[name])
    validation = curves.get("validation") or []
    if validation:
        best = min(range(len(validation)), key=lambda k: validation[k])
        axes.axvline(best + 1, color="0.7", lw=1, zorder=0)
        axes.annotate(
            f"best: epoch {best + 1}, {validation[best]:.4g}",
            (best + 1, validation[best]),
            xytext=(4, 12),
            textcoords="offset points",
            fontsize=8,
        )
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("epoch")
    axes.set_ylabel("log-loss a response (nats)")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8)

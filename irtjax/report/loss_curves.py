"""The picture of a network's training: log-losses by epoch."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

__all__ = ["write_loss_curves"]

_COLOURS = {"training": "#0072b2", "validation": "#d55e00", "refit": "#009e73"}
_LABELS = {
    "training": "training responses, on the way",
    "validation": "validation responses",
    "refit": "all responses, refit",
}


def write_loss_curves(curves: Mapping[str, Sequence[float]], path: Path) -> None:
    """Draw the log-losses by epoch; the epoch that validates best is marked.

    Args:
        curves: `training`, `validation` and `refit`, a value an epoch; nats a response.
        path: file to write, PNG or SVG by its suffix.
    """
    figure = Figure(figsize=(6, 3.8), layout="constrained")
    axes = figure.subplots()
    for name, values in curves.items():
        if values:
            epochs = range(1, len(values) + 1)
            axes.plot(epochs, values, marker="o", ms=3, color=_COLOURS[name], label=_LABELS[name])
    validation = curves.get("validation") or []
    if validation:
        best = min(range(len(validation)), key=lambda k: validation[k])
        axes.axvline(best + 1, color="0.7", lw=1, zorder=0)
        axes.annotate(
            f"best: epoch {best + 1}, {validation[best]:.4f}",
            (best + 1, validation[best]),
            xytext=(4, 12),
            textcoords="offset points",
            fontsize=8,
        )
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("epoch")
    axes.set_ylabel("log-loss a response (nats)")
    axes.spines[["top", "right"]].set_visible(False)
    if axes.lines:
        axes.legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=150)

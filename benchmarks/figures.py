"""Figures of the results; matplotlib (`irtjax[bench]`) is imported when one is drawn."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["fitted_slope", "pyplot", "quality_figure", "save_figure", "scaling_figure"]

_MERITS = {
    "log_loss": "log-loss on held-out cells (nats), lower is better",
    "icc_rmse": "RMSE of response curves, lower is better",
}
_OWN = "tab:blue"


def fitted_slope(x: Sequence[float], y: Sequence[float]) -> tuple[float, float]:
    """Slope and intercept of the least-squares line of log y on log x (natural logarithms)."""
    slope, intercept = np.polyfit(np.log(x), np.log(y), 1)
    return float(slope), float(intercept)


def quality_figure(result: dict[str, Any], path: Path) -> bool:
    """Quality against CPU seconds, a point a run.

    Runs whose seconds are extrapolated are left out: their quality is not of these seconds.

    Returns:
        Whether there was anything to draw.
    """
    merit = result["figure_of_merit"]
    rows = [row for row in result["rows"] if merit in row and "extrapolated_cpu_seconds" not in row]
    if not rows:
        return False
    plt = pyplot()
    figure, axes = plt.subplots(figsize=(9, 4.5), layout="constrained")
    others = iter(plt.colormaps["tab10"].colors[1:])
    for row in rows:
        is_own = row["who"] == "irtjax"
        style = {"marker": "o", "color": _OWN} if is_own else {"marker": "s", "color": next(others)}
        filled = "full" if not is_own or row is rows[0] else "none"
        name = f"{row['who']}, {row['label']}"
        axes.plot(
            row["cpu_seconds"], row[merit], ls="", ms=8, fillstyle=filled, label=name, **style
        )
    axes.set_xscale("log")
    axes.margins(x=0.1, y=0.1)
    axes.set_xlabel("CPU seconds of a warm fit, compiling apart (log scale)")
    axes.set_ylabel(_MERITS[merit])
    axes.set_title(f"{result['problem']}: quality against time, {result['date']}")
    axes.grid(alpha=0.3)
    figure.legend(loc="outside right center", fontsize=9)
    save_figure(figure, path)
    return True


def scaling_figure(sweep: dict[str, Any], path: Path) -> None:
    """CPU seconds of a fit against one size, both logarithmic, with the fitted slope.

    Args:
        sweep: as `benchmarks.scaling` makes it: `axis`, `unit`, `held`, `what`, `points`.
        path: PNG to write.
    """
    plt = pyplot()
    x = [point["size"] for point in sweep["points"]]
    y = [point["cpu_seconds"] for point in sweep["points"]]
    slope, intercept = fitted_slope(x, y)
    figure, axes = plt.subplots(figsize=(7, 5), layout="constrained")
    axes.plot(x, y, "o", color=_OWN, label="measured, median of the warm fits")
    line = np.exp(intercept) * np.asarray(x, float) ** slope
    axes.plot(x, line, "-", color=_OWN, alpha=0.6, label=f"slope {slope:.2f}")
    linear = [y[0] * value / x[0] for value in x]
    axes.plot(x, linear, ":", color="gray", label="slope 1, from the first point")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(x, [f"{value:g}" if value < 1 else f"{value:,.0f}" for value in x])
    axes.minorticks_off()
    ticks = _ticks([*y, *linear])
    axes.set_yticks(ticks, [f"{value:g}" for value in ticks])
    axes.set_xlabel(f"{sweep['axis']} ({sweep['unit']}, log scale)")
    axes.set_ylabel("CPU seconds (log scale)")
    axes.set_title(f"Time against {sweep['axis']}: {sweep['held']}\n{sweep['what']}", fontsize=10)
    axes.grid(alpha=0.3)
    axes.legend()
    save_figure(figure, path)


def _ticks(values: Sequence[float]) -> list[float]:
    """1, 2, 5 times powers of ten around the values."""
    decades = range(int(np.floor(np.log10(min(values)))), int(np.ceil(np.log10(max(values)))) + 1)
    ticks = [round(step * 10.0**k, 10) for k in decades for step in (1, 2, 5)]
    return [tick for tick in ticks if min(values) / 2 <= tick <= 2 * max(values)]


def pyplot() -> Any:
    """matplotlib.pyplot that draws into files."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt


def save_figure(figure: Any, path: Path) -> None:
    """Write a figure and free it."""
    figure.savefig(path, dpi=120)
    pyplot().close(figure)

"""The progress bar of a fit and of cross-validation."""

import contextlib
import itertools
import math
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from irtjax.fit.driver import Progress

__all__ = ["shown_folds", "shown_parts", "shown_progress"]

# Shows what is going on, the share of the way, and a detail.
_Show = Callable[[str, float, str], None]


@contextlib.contextmanager
def shown_progress(*, quiet: bool) -> "Iterator[Callable[[Progress], None] | None]":
    """Show how a fit proceeds, on stderr where that is a terminal; it vanishes at the end.

    Yields:
        What `irtjax.fit` takes as `on_look`; None where nothing is shown.
    """
    with _bar("compiling", quiet=quiet) as show:
        if show is None:
            yield None
            return
        from irtjax.fit.driver import Look

        def on_look(progress: "Progress") -> None:
            objective, change = progress.trace.objective, progress.trace.change
            show(
                f"step {progress.n_steps}",
                _share_of_way(change, Look().tolerance),
                f"objective {objective[-1]:,.1f}, largest move {change[-1]:.2g}",
            )

        yield on_look


@contextlib.contextmanager
def shown_folds(
    n_fits: int, n_folds: int, *, quiet: bool
) -> Iterator[Callable[[str, int | None, int], None] | None]:
    """Show how cross-validation proceeds, likewise.

    Args:
        n_fits: numbers of dims to compare; the 2PL may come on top.
        n_folds: folds of each.
        quiet: show nothing.

    Yields:
        What `irtjax.cross_validate` takes as `on_fold`; None where nothing is shown.
    """
    with _bar("all responses", quiet=quiet) as show:
        if show is None:
            yield None
            return
        total, n_done = (n_fits + 1) * n_folds, itertools.count(1)

        def on_fold(predictor: str, dims: int | None, fold: int) -> None:
            show(f"{predictor}, dims {dims}: fold {fold + 1}", next(n_done) / total, "")

        yield on_fold


@contextlib.contextmanager
def shown_parts(*, quiet: bool) -> Iterator[Callable[[str, int, int], None] | None]:
    """Show which part of an audit is under way, likewise.

    Yields:
        What `irtjax.audit` takes as `on_part`; None where nothing is shown.
    """
    with _bar("audit", quiet=quiet) as show:
        if show is None:
            yield None
            return

        def on_part(title: str, n_done: int, n_parts: int) -> None:
            show(title, n_done / n_parts, f"part {n_done + 1} of {n_parts}")

        yield on_part


@contextlib.contextmanager
def _bar(description: str, *, quiet: bool) -> Iterator[_Show | None]:
    """The bar, with a description to start with; None where nothing is shown."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich import progress as bar
    from rich.console import Console

    columns = (
        bar.SpinnerColumn(),
        bar.TextColumn("{task.description}"),
        bar.BarColumn(),
        bar.TextColumn("{task.fields[detail]}"),
        bar.TimeElapsedColumn(),
    )
    with bar.Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(description, total=1.0, detail="")

        def show(description: str, share: float, detail: str) -> None:
            shown.update(task, description=description, completed=share, detail=detail)

        yield show


def _share_of_way(change: tuple[float, ...], tolerance: float) -> float:
    """How far the largest move of a step has come down to the tolerance, on a logarithmic scale."""
    first, least = max(change, default=0.0), min(change, default=0.0)
    if not first > tolerance:
        return 1.0
    return min(math.log(first / max(least, tolerance)) / math.log(first / tolerance), 1.0)

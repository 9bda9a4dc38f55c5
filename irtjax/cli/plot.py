"""`irtjax plot`: one picture of a run."""

from pathlib import Path
from typing import Annotated

import typer

from irtjax.cli import options
from irtjax.cli.console import console, lines
from irtjax.cli.output_file import check_output_file
from irtjax.cli.report_extra import require_report_extra
from irtjax.cli.run_folder import files_of_run

__all__ = ["plot"]


def plot(
    run: options.Run,
    kind: Annotated[
        str,
        typer.Argument(
            metavar="KIND",
            show_default=False,
            help="abilities (with intervals), heatmap (benchmarks x dims), items (difficulty and "
            "discrimination), curves, information (of chosen items), test-information, "
            "calibration or trace.",
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(metavar="FILE", show_default=False, help="File to write, .png or .svg."),
    ],
    dim: Annotated[
        int, typer.Option(metavar="N", help="Which ability, of abilities and test-information.")
    ] = 1,
    item: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ID",
            show_default=False,
            help="Item of curves and information, up to six; a choice without. Repeatable.",
        ),
    ] = None,
    by: Annotated[
        str, typer.Option(metavar="COLUMN", help="Item column of the heatmap.")
    ] = "benchmark",
    force: options.Force = False,
    quiet: options.Quiet = False,
) -> None:
    """Draw one picture of a run.

    Example: irtjax plot run abilities --out abilities.svg
    """
    check_output_file(out, [".png", ".svg"], force=force, inputs=files_of_run(run))
    require_report_extra()
    from irtjax.fit.result import FitResult
    from irtjax.report.plot import check_kind
    from irtjax.report.plot import plot as draw

    check_kind(kind)
    draw(FitResult.load(run), kind, out, dim=dim, items=item or None, by=by)
    lines(console(quiet=quiet), "Files", f"{out}: {kind}")

"""`irtjax filter`: the items that discriminate most, of every difficulty."""

from pathlib import Path
from typing import Annotated

import typer

from irtjax.checks import counted
from irtjax.cli import options
from irtjax.cli.console import console, lines
from irtjax.cli.output_file import check_output_file
from irtjax.cli.run_folder import files_of_run

__all__ = ["filter_command"]


def filter_command(
    run: options.Run,
    removed: Annotated[
        float,
        typer.Option(
            metavar="SHARE",
            show_default=False,
            help="Share of the items to remove, from 0 to below 1.",
        ),
    ],
    out: Annotated[
        Path, typer.Option(metavar="FILE", show_default=False, help="CSV file to write.")
    ],
    dim: Annotated[int, typer.Option(metavar="K", help="Ability to keep measuring.")] = 1,
    by: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            show_default=False,
            help="Item column; the filter works within each of its values.",
        ),
    ] = None,
    bins: Annotated[int, typer.Option(metavar="N", help="Quantile bins of difficulty.")] = 10,
    force: options.Force = False,
    quiet: options.Quiet = False,
) -> None:
    """Filter items as BenchMIRT does: in every bin of difficulty, keep the most discriminating.

    Example: irtjax filter run --removed 0.9 --by benchmark --out filtered.csv

    Writes a row an item: its difficulty along the ability, its slope, its bin, and is_kept. Values
    of COLUMN and bins lose the same share, to a whole item.
    irtjax audit says how well such short versions rank models they were not chosen by.
    """
    check_output_file(out, [".csv"], force=force, inputs=files_of_run(run))
    from irtjax.audit.filtering import filter_items
    from irtjax.fit.result import FitResult
    from irtjax.io import write_table

    found = filter_items(FitResult.load(run), removed, dim=dim, by=by, n_bins=bins)
    write_table(found, out)
    kept = int(found["is_kept"].sum())
    output = console(quiet=quiet)
    lines(output, "Files", f"{out}: {kept:,} of {counted(len(found), 'item')} kept")
    if by is not None:
        left = found.groupby(by, sort=False)["is_kept"].any()
        if not left.all():
            gone = counted(int((~left).sum()), "value")
            lines(output, "Gone", f"{gone} of {len(left):,} in {by!r} keep no item")

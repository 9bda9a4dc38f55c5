"""`irtjax quality`: six indicators of every item, and the ranks of benchmarks by them."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from irtjax.checks import counted
from irtjax.cli import options
from irtjax.cli.console import console, lines, show_table
from irtjax.cli.output_file import beside, check_output_file
from irtjax.cli.run_folder import files_of_run
from irtjax.cli.tables import plain_table
from irtjax.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["quality"]


def quality(
    run: options.Run,
    out: Annotated[
        Path, typer.Option(metavar="FILE", show_default=False, help="CSV file to write.")
    ],
    by: Annotated[
        str,
        typer.Option(metavar="COLUMN", help="Item column whose values are compared."),
    ] = "benchmark",
    force: options.Force = False,
    quiet: options.Quiet = False,
) -> None:
    """Judge items and benchmarks as PSN-IRT does: difficulty, discrimination, asymptotes, headroom.

    Example: irtjax quality run --out quality.csv

    Writes a row an item, with its ranks among all. Where items have COLUMN, a second file beside
    FILE, with COLUMN at the end of its name, has means and ranks by its values, the best first.
    """
    check_output_file(out, [".csv"], force=force, inputs=files_of_run(run))
    ranked_path = beside(out, by)
    check_output_file(ranked_path, [".csv"], force=force, inputs=files_of_run(run))
    from irtjax.audit.quality import item_quality, ranked_means, with_ranks
    from irtjax.fit.result import FitResult
    from irtjax.io import all_or_none, write_table

    fit = FitResult.load(run)
    metadata = fit.data.item_metadata
    if by not in metadata and by != "benchmark":
        known = ", ".join(metadata.columns) or "none"
        raise InputError(f"items have no column {by!r}; their columns: {known}")
    items, output = item_quality(fit), console(quiet=quiet)
    ranked = ranked_means(items, metadata[by]) if by in metadata else None
    with all_or_none():
        write_table(with_ranks(items), out)
        if ranked is not None:
            write_table(ranked, ranked_path)
    written = [f"{out}: {counted(len(items), 'item')}"]
    if ranked is not None:
        written.append(f"{ranked_path}: {counted(len(ranked), 'value')} of {by}")
        _show(ranked.to_dict("records"), by, output)
    lines(output, "Files", *written)


def _show(ranked: list[dict[Any, Any]], by: str, output: "Console") -> None:
    """Means by value with each rank beside it, the best total first."""
    from irtjax.audit.quality import INDICATORS

    names = [indicator.name for indicator in INDICATORS]
    table = plain_table([by], ["items", *names, "total rank"])
    for row in ranked:
        cells = [f"{_short(row[name])} ({row[f'{name}_rank']})" for name in names]
        table.add_row(str(row[by]), f"{row['n_items']:,}", *cells, str(row["total_rank"]))
    show_table(output, f"Means by {by} (rank); the total leaves difficulty out", table)


def _short(value: float) -> str:
    return f"{value:.2f}" if abs(value) >= 0.1 else f"{value:.2g}"

"""`irtjax flags`: items worth a look, with a number, a threshold and a reason each."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from irtjax.cli import options
from irtjax.cli.compilation_cache import use_compilation_cache
from irtjax.cli.console import console, lines, show_table
from irtjax.cli.output_file import check_output_file
from irtjax.cli.run_folder import files_of_run
from irtjax.cli.tables import plain_table

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["flags"]


def flags(
    run: options.Run,
    out: Annotated[
        Path, typer.Option(metavar="FILE", show_default=False, help="CSV file to write.")
    ],
    answers: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            show_default=False,
            help="CSV, Parquet or JSON Lines with model_id, item_id, answer, key: which option "
            "each model gave, for likely wrong keys.",
        ),
    ] = None,
    bootstrap: Annotated[
        int, typer.Option(min=0, help="Samples for the false discovery rate of wrong keys.")
    ] = 2,
    seed: options.Seed = 0,
    model_column: options.ModelColumn = None,
    item_column: options.ItemColumn = None,
    force: options.Force = False,
    quiet: options.Quiet = False,
    no_cache: options.NoCache = False,
) -> None:
    """List items worth a look: likely wrong keys, copies, falling, ambiguous or saturated items.

    Example: irtjax flags run --answers answers.csv --out flags.csv

    Writes a row an item and flag, the most pressing first.
    """
    check_output_file(out, [".csv"], force=force, inputs=files_of_run(run))
    from irtjax.audit.flags import flag_items
    from irtjax.fit.result import FitResult
    from irtjax.io import read_answers, write_table

    if not no_cache:
        use_compilation_cache()
    fit = FitResult.load(run)
    table = None
    if answers is not None:
        table = read_answers(answers, model_column=model_column, item_column=item_column)
    found = flag_items(fit, table, bootstrap=bootstrap, seed=seed)
    write_table(found, out)
    output = console(quiet=quiet)
    _show(found.groupby("flag", sort=False), output)
    lines(output, "Files", f"{out}: {len(found):,} flags of {found['item_id'].nunique():,} items")


def _show(groups: Any, output: "Console") -> None:
    """How many items have which flag, and how many of them falsely."""
    from irtjax.audit.flag_names import FLAGS

    table = plain_table(["flag"], ["items", "of them false"])
    table.add_column("what it says")
    for flag, group in groups:
        rate = group["false_discovery_rate"].iloc[-1]
        table.add_row(flag, f"{len(group):,}", "" if rate != rate else f"{rate:.0%}", FLAGS[flag])
    show_table(output, "Flags", table)

"""`irtjax check`: blocks of responses that cannot be what they say they are."""

import math
from collections.abc import Hashable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from irtjax.checks import counted
from irtjax.cli import options
from irtjax.cli.console import console, lines, show_table
from irtjax.cli.output_folder import OutputFolder
from irtjax.cli.reader_options import AS_FOUND, ReaderOptions, with_reader_options
from irtjax.cli.responses import read_parts
from irtjax.cli.tables import plain_table

if TYPE_CHECKING:
    from rich.console import Console

    from irtjax.audit.integrity.check import DataAudit

__all__ = ["check"]

_MOST_SHOWN = 30


@with_reader_options
def check(
    responses: options.Responses,
    out: options.OutFolder,
    group: options.BenchmarkColumn = None,
    published: options.Published = None,
    tolerance: Annotated[
        float,
        typer.Option(
            metavar="SHARE",
            help="How far a published score may be off without being accused, beyond its "
            "rounding and, where a model answered only some of the items, their sampling error.",
        ),
    ] = 0.03,
    reader: ReaderOptions = AS_FOUND,
    force: Annotated[
        bool, typer.Option("--force", help="Replace an earlier check in DIR.")
    ] = False,
    quiet: options.Quiet = False,
) -> None:
    """Find shifted, misordered, copied and filled blocks of responses, and models given twice.

    Example: irtjax check responses.csv --group benchmark --out check

    Writes DIR/accusations.csv with the evidence of each, DIR/blocks.csv with the numbers of every
    model and benchmark, DIR/models.csv and, with --published, DIR/published.csv. Nothing is fitted:
    run it before anything else.
    """
    folder = OutputFolder(out, "check.json", force=force)
    output = console(quiet=quiet)
    from irtjax.audit.integrity.check import audit_data
    from irtjax.io.scores import read_scores

    declared = None if published is None else read_scores(published)
    parts = read_parts(responses, reader, holdout=None, test=None, seed=0, output=output)
    found = audit_data(parts.train, group=group or None, published=declared, tolerance=tolerance)
    folder.write(found.save)
    _show(found, folder.path, output)


def _show(found: "DataAudit", path: Path, output: "Console") -> None:
    table = plain_table(["accused of", "model", "benchmark", "with", "what"], ["lag", "p"])
    shown = found.accusations.head(_MOST_SHOWN)
    shown = shown.assign(has_lag=shown["lag"].notna())
    for row in shown.to_dict("records"):
        lag = f"{row['lag']:+,}" if row["has_lag"] else ""
        names = [str(row[name]) for name in ("kind", "model_id", "benchmark", "partner_id")]
        table.add_row(*names, _what(row), lag, _p_text(row["p_adjusted"]))
    n_accused = len(found.accusations)
    n_blocks = len(found.blocks)
    if n_accused:
        title = f"{counted(n_accused, 'accusation')} in {counted(n_blocks, 'block')}"
        show_table(output, title, table)
        if n_accused > len(shown):
            output.print(f"... {n_accused - len(shown):,} more in accusations.csv")
        output.print()
    else:
        lines(output, "Accused", f"none of {counted(n_blocks, 'block')}")
    n_silent = len(found.models) - found.n_answering
    of_what = counted(found.n_answering, "model") + (" with responses" if n_silent else "")
    said = (
        f"{found.effective_models:,.1f} of {of_what} count, if copies of whole models count as one"
    )
    silent = f"; {n_silent:,} more without" if n_silent else ""
    lines(output, "Models", said + silent)
    lines(output, "Files", f"{path}/accusations.csv, blocks.csv, models.csv")


def _what(row: dict[Hashable, Any]) -> str:
    """The cells of an accusation, or the two scores that contradict each other."""
    if row["kind"] == "contradicts_published":
        return f"{row['seen']:.1%} seen, {row['expected']:.1%} published"
    if row["first_item"]:
        return f"{row['first_item']} to {row['last_item']}"
    return counted(int(row["n_responses"]), "response")


def _p_text(p: float) -> str:
    """Empty where there is none; a probability too small for a float is not 0."""
    if math.isnan(p):
        return ""
    return f"{p:.1e}" if p > 0 else "<1e-300"

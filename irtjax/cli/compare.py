"""`irtjax compare`: two models of a run, by ability, by kind of item, and item by item."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from irtjax.checks import counted
from irtjax.cli import options
from irtjax.cli.console import console, lines, show_table
from irtjax.cli.output_folder import OutputFolder
from irtjax.cli.tables import plain_table
from irtjax.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from irtjax.audit.compare import Comparison

__all__ = ["compare"]

_MOST_SHOWN = 20


def compare(
    run: options.Run,
    model_a: Annotated[
        str, typer.Argument(metavar="MODEL_A", show_default=False, help="Id of the old model.")
    ],
    model_b: Annotated[
        str, typer.Argument(metavar="MODEL_B", show_default=False, help="Id of the new model.")
    ],
    out: options.OutFolder,
    by: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            show_default=False,
            help="Item column whose values are compared; the run's --group, or benchmark, without. "
            "Repeatable.",
        ),
    ] = None,
    top: Annotated[
        float,
        typer.Option(
            metavar="SHARE",
            help="Share of the items, by loading, that stand for a dim; five at least.",
        ),
    ] = 0.1,
    force: Annotated[
        bool, typer.Option("--force", help="Replace an earlier comparison in DIR.")
    ] = False,
    quiet: options.Quiet = False,
) -> None:
    """Compare two models: where MODEL_B is better or worse than MODEL_A, and on which items.

    Example: irtjax compare run llama-3 llama-3.1 --out compared

    Writes DIR/dims.csv, values.csv, gained.csv and lost.csv. Differences are MODEL_B minus MODEL_A.
    """
    folder = OutputFolder(out, "compare.json", force=force)
    from irtjax.audit.compare import compare_models
    from irtjax.fit.result import FitResult

    if not 0 < top <= 1:
        raise InputError(f"--top is a share above 0, up to 1, not {top:g}")
    fit = FitResult.load(run)
    found = compare_models(fit, model_a, model_b, by=by, top_share=top)
    folder.write(found.save)
    _show(found, folder.path, console(quiet=quiet))


def _show(found: "Comparison", path: Path, output: "Console") -> None:
    abilities = plain_table(["ability"], ["A", "B", "B - A", "95% interval"])
    for row in found.dims.to_dict("records"):
        interval = f"{row['difference_low']:+.2f} to {row['difference_high']:+.2f}"
        numbers = (
            f"{row['ability_a']:.2f}",
            f"{row['ability_b']:.2f}",
            f"{row['difference']:+.2f}",
        )
        abilities.add_row(row["dim"], *numbers, interval)
    show_table(output, "Abilities", abilities)
    shares = plain_table(["items", "of"], ["n", "A right", "B right", "B - A", "p (Holm)"])
    for row in found.values.head(_MOST_SHOWN).to_dict("records"):
        numbers = (f"{row['n_items']:,}", f"{row['mean_a']:.3f}", f"{row['mean_b']:.3f}")
        p = "" if row["p_adjusted"] != row["p_adjusted"] else f"{row['p_adjusted']:.1e}"
        label = (row["value"] or row["column"], row["column"] if row["value"] else "")
        shares.add_row(*map(str, label), *numbers, f"{row['mean_difference']:+.3f}", p)
    show_table(output, "Share right", shares)
    more = len(found.values) - _MOST_SHOWN
    if more > 0:
        output.print(f"... {more:,} more in values.csv")
    gained, lost = (counted(len(table), "item") for table in (found.gained, found.lost))
    lines(output, "Files", f"{path}/dims.csv, values.csv, gained.csv ({gained}), lost.csv ({lost})")

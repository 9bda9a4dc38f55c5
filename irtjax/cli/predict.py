"""`irtjax predict`: probabilities of model-item pairs, by their ids and in their order."""

from pathlib import Path
from typing import Annotated

import typer

from irtjax.cli import options
from irtjax.cli.compilation_cache import use_compilation_cache
from irtjax.cli.console import console, lines
from irtjax.cli.output_file import check_output_file

__all__ = ["predict"]


def predict(
    run: Annotated[
        Path,
        typer.Argument(metavar="RUN", show_default=False, help="Folder that irtjax fit wrote."),
    ],
    pairs: Annotated[
        str,
        typer.Argument(
            metavar="PAIRS",
            show_default=False,
            help="CSV, Parquet or JSON Lines with the columns model_id and item_id.",
        ),
    ],
    out: Annotated[
        Path, typer.Option(metavar="FILE", show_default=False, help="CSV file to write.")
    ],
    model_column: options.ModelColumn = None,
    item_column: options.ItemColumn = None,
    force: options.Force = False,
    quiet: options.Quiet = False,
    no_cache: options.NoCache = False,
) -> None:
    """Predict the probability of a right response for pairs of a model and an item.

    Example: irtjax predict run pairs.csv --out probabilities.csv

    Writes model_id, item_id, probability, a row for each pair in the order of PAIRS.
    """
    check_output_file(out, [".csv"], force=force)
    from irtjax.fit.result import FitResult
    from irtjax.io import read_pairs, write_table

    if not no_cache:
        use_compilation_cache()
    fit = FitResult.load(run)
    table = read_pairs(pairs, model_column=model_column, item_column=item_column)
    predicted = fit.predict(table)
    write_table(predicted, out)
    lines(console(quiet=quiet), "Files", f"{out}: {len(predicted):,} probabilities")

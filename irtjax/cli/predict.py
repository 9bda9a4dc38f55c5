"""`irtjax predict`: probabilities of model-item pairs, by their ids and in their order."""

from pathlib import Path
from typing import Annotated

import typer

from irtjax.checks import counted
from irtjax.cli import options
from irtjax.cli.compilation_cache import use_compilation_cache
from irtjax.cli.console import console, lines
from irtjax.cli.output_file import check_output_file
from irtjax.cli.run_folder import files_of_run
from irtjax.errors import InputError

__all__ = ["predict"]


def predict(
    run: options.Run,
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
    item_features: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            show_default=False,
            help="Items of PAIRS that were not in the fit: item_id and the columns that the fit "
            "had as --item-features.",
        ),
    ] = None,
    model_features: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            show_default=False,
            help="The same for models, with model_id.",
        ),
    ] = None,
    items_out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            show_default=False,
            help="CSV file for the parameters of the items of --item-features that were not in the "
            "fit (those that were are in RUN/items.csv).",
        ),
    ] = None,
    model_column: options.ModelColumn = None,
    item_column: options.ItemColumn = None,
    force: options.Force = False,
    quiet: options.Quiet = False,
    no_cache: options.NoCache = False,
) -> None:
    """Predict the probability of a right response for pairs of a model and an item.

    Example: irtjax predict run pairs.csv --out probabilities.csv

    Writes model_id, item_id, probability, a row for each pair in the order of PAIRS. Where a
    network was fitted with features, items and models may be new: give their features.
    """
    read: list[str | Path] = [*files_of_run(run), pairs]
    read += [each for each in (item_features, model_features) if each is not None]
    check_output_file(out, [".csv"], force=force, inputs=read)
    if items_out is not None:
        if item_features is None:
            raise InputError("--items-out writes the items of --item-features; add that")
        check_output_file(items_out, [".csv"], force=force, inputs=read, others=[out])
    from irtjax.fit.result import FitResult
    from irtjax.io import all_or_none, read_pairs, write_table
    from irtjax.score.unseen import items_from_features, models_from_features, predict_unseen

    if not no_cache:
        use_compilation_cache()
    fit = FitResult.load(run)
    table = read_pairs(pairs, model_column=model_column, item_column=item_column)
    items = None if item_features is None else items_from_features(fit, item_features)
    models = None if model_features is None else models_from_features(fit, model_features)
    if items is None and models is None:
        predicted = fit.predict(table)
    else:
        predicted = predict_unseen(fit, table, items=items, models=models)
    written = [f"{out}: {counted(len(predicted), 'probability', 'probabilities')}"]
    with all_or_none():
        write_table(predicted, out)
        if items is not None and items_out is not None:
            new = items[~items["item_id"].isin(set(fit.data.item_ids))]
            write_table(new, items_out)
            written.append(f"{items_out}: {counted(len(new), 'new item')}")
    lines(console(quiet=quiet), "Files", *written)

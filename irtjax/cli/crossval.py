"""`irtjax crossval`: how many dims the responses support, by predicting what was left out."""

import math
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.text import Text
from typer.core import TyperCommand

from irtjax.cli import options
from irtjax.cli.compilation_cache import use_compilation_cache
from irtjax.cli.console import console, lines, show_table
from irtjax.cli.output_file import check_output_file
from irtjax.cli.progress import shown_folds
from irtjax.cli.reader_options import AS_FOUND, ReaderOptions, with_reader_options
from irtjax.cli.responses import Parts, read_parts
from irtjax.cli.tables import plain_table

if TYPE_CHECKING:
    from irtjax.evaluate.crossval import CrossValidation

__all__ = ["CrossvalCommand", "crossval"]

_DIMS = "--dims"
_SUFFIXES = (".json", ".csv")
_NAMES = {
    "model_mean": "model mean",
    "model_benchmark_mean": "model x benchmark mean",
    "1pl": "1PL",
    "2pl": "2PL",
}
# Metric to its heading.
_METRICS = {
    "accuracy": "accuracy",
    "mae": "MAE",
    "log_loss": "log-loss",
    "spearman": "Spearman",
    "kendall": "Kendall",
}


class CrossvalCommand(TyperCommand):
    """Lets `--dims` take several numbers: `--dims 1 2 3` is `--dims 1 --dims 2 --dims 3`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Expand `--dims`, then parse as usual."""
        return super().parse_args(ctx, list(_expanded(args)))


@with_reader_options
def crossval(
    responses: options.Responses,
    out: Annotated[
        Path,
        typer.Option(
            metavar="FILE", show_default=False, help="File to write: .json (all), .csv (the table)."
        ),
    ],
    dims: Annotated[
        list[int] | None,
        typer.Option(
            _DIMS, metavar="N...", help="Numbers of dims to compare; 1 2 3 without.", min=1
        ),
    ] = None,
    folds: Annotated[int, typer.Option(metavar="N", help="Number of folds.")] = 10,
    over: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="What the folds leave out: cells, items or models. Half of the cells of an item "
            "(model) left out place it, the rest is scored.",
        ),
    ] = "cells",
    family: options.AskedFamily = None,
    group: options.Group = None,
    estimator: options.Estimator = "auto",
    item_distribution: options.ItemDistribution = "normal",
    components: options.Components = None,
    max_steps: options.MaxSteps = 1000,
    seed: options.Seed = 0,
    reader: ReaderOptions = AS_FOUND,
    force: options.Force = False,
    quiet: options.Quiet = False,
    no_cache: options.NoCache = False,
) -> None:
    """Compare numbers of dims by predictions of responses that the fits have not seen.

    Example: irtjax crossval responses.csv --dims 1 2 3 --folds 10 --over cells --out dims.json

    Baselines are predicted on the same folds. Of the numbers of dims the smallest is chosen whose
    log-loss is within one standard error of the lowest.
    """
    check_output_file(out, _SUFFIXES, force=force)
    output = console(quiet=quiet)
    chosen = dims or [1, 2, 3]
    settings: dict[str, Any] = {
        "group": group,
        "estimator": estimator,
        "item_distribution": item_distribution,
        "components": options.chosen_components(components, item_distribution),
        "seed": seed,
        "max_steps": max_steps,
    }
    asked = {"folds": folds, "over": over, "family": _family(family, estimator)}
    _check_settings(chosen, asked, settings)
    parts = read_parts(responses, reader, holdout=None, test=None, seed=seed, output=output)
    if not no_cache:
        use_compilation_cache()
    found = _validated(parts, chosen, asked | settings, quiet=quiet)
    _write(found, out)  # before anything is shown: `| head` must not cost the results
    _show(found, output)
    lines(output, "Files", f"{out}")


def _family(family: str | None, estimator: str) -> str:
    from irtjax.fit.settings import default_family

    return default_family(estimator) if family is None else family


def _check_settings(dims: list[int], asked: dict[str, Any], settings: dict[str, Any]) -> None:
    """Refuse what is not possible before the responses are read."""
    from irtjax.evaluate.crossval import check_crossval
    from irtjax.fit.settings import FitSettings

    check_crossval(dims, **asked)
    FitSettings(**settings)


def _validated(
    parts: Parts, dims: list[int], arguments: dict[str, Any], *, quiet: bool
) -> "CrossValidation":
    from irtjax.evaluate.crossval import cross_validate

    with shown_folds(len(dims), arguments["folds"], quiet=quiet) as on_fold:
        return cross_validate(parts.train, dims, **arguments, on_fold=on_fold)


def _write(found: "CrossValidation", out: Path) -> None:
    from irtjax.io import write_json, write_table

    if out.suffix == ".json":
        write_json(found.to_dict(), out)
    else:
        write_table(found.table, out)


def _expanded(args: Iterable[str]) -> Iterable[str]:
    """Repeat `--dims` before each number that follows the first one."""
    is_after_dims = is_first = False
    for each in args:
        is_number = each.lstrip("+-").isdecimal()
        if is_after_dims and is_number and not is_first:
            yield _DIMS
        yield each
        is_first = each == _DIMS
        is_after_dims = is_first or (is_after_dims and is_number)


def _show(found: "CrossValidation", output: Console) -> None:
    """The table with the chosen dims marked, and the rule."""
    from irtjax.evaluate.crossval import FIT, RULE

    asked = found.settings
    table = plain_table(["predictor"], [*_METRICS.values(), "n"])
    for row in found.table.to_dict(orient="records"):
        is_fit = row["predictor"] == FIT
        is_chosen = is_fit and row["dims"] == found.chosen_dims
        name = _NAMES.get(row["predictor"], "")
        if is_fit:
            name = f"{asked['family'].upper()}, {_dims(row['dims'])}{' <' if is_chosen else ''}"
        style = "bold" if is_chosen else ""
        cells = [_mean_and_error(row, metric) for metric in _METRICS]
        table.add_row(Text(name, style=style), *cells, f"{row['n']:,}", style=style)
    effects = "" if asked["group"] is None else f" with {asked['group']} effects"
    title = (
        f"{asked['folds']} folds over {asked['over']}{effects}: means +- standard errors over the "
        "folds"
    )
    show_table(output, title, table)
    output.print()
    lines(output, "Chosen", f"{_dims(found.chosen_dims)} (<): {RULE}")


def _dims(dims: int) -> str:
    return "1 dim" if dims == 1 else f"{dims} dims"


def _mean_and_error(row: dict[Any, Any], metric: str) -> str:
    mean, error = row[metric], row[f"{metric}_se"]
    if math.isnan(mean):
        return "-"
    return f"{mean:.4f}" if math.isnan(error) else f"{mean:.4f} +- {error:.4f}"

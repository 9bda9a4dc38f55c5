"""`irtjax score`: abilities of new models by a run's items, and what they would score on all."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from irtjax.checks import counted
from irtjax.cli import options
from irtjax.cli.compilation_cache import use_compilation_cache
from irtjax.cli.console import console, lines, show_table
from irtjax.cli.output_file import beside, check_output_file
from irtjax.cli.reader_options import ReaderOptions, with_reader_options
from irtjax.cli.run_folder import files_of_run
from irtjax.cli.summary import show_next
from irtjax.cli.tables import flag_counts, plain_table
from irtjax.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["score"]

_SHOWN_MODELS = 12


@with_reader_options
def score(
    run: options.Run,
    responses: Annotated[
        list[str],
        typer.Argument(
            metavar="RESPONSES",
            show_default=False,
            help="Answers of the new models to any of the run's items: files, globs or folders.",
        ),
    ],
    out: Annotated[
        Path, typer.Option(metavar="FILE", show_default=False, help="CSV file to write.")
    ],
    reader: ReaderOptions,
    method: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="eap (mean of the posterior), map (its mode) or wle (Warm's weighted likelihood: "
            "no prior of abilities).",
        ),
    ] = "eap",
    uncertainty: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="items: what the run does not know of the items widens the errors; none: it is "
            "taken for the truth.",
        ),
    ] = "items",
    predict_score: Annotated[
        bool,
        typer.Option(
            "--predict-score",
            help="Also predict the share right on all items of the run, with a 95% interval.",
        ),
    ] = False,
    by: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Also by the values of an item column (say, benchmark), into a second file.",
        ),
    ] = None,
    force: options.Force = False,
    quiet: options.Quiet = False,
    no_cache: options.NoCache = False,
) -> None:
    """Place new models on a run's scale from few answers, without fitting again.

    Example: irtjax score run new.csv --predict-score --out scores.csv

    Writes a row a model: dim1_ability with its standard error, and with --predict-score the score
    on all items, its error and 95% interval. With --by COLUMN the predictions by value go to FILE's
    name with the column's at the end. Items that the run does not know are left out and named.
    """
    check_output_file(out, [".csv"], force=force, inputs=[*files_of_run(run), *responses])
    by_path = beside(out, by or "")
    if by is not None:
        if not predict_score:
            raise InputError("--by divides the predicted score; add --predict-score or drop it")
        check_output_file(by_path, [".csv"], force=force, inputs=[*files_of_run(run), *responses])
    from irtjax.fit.result import FitResult
    from irtjax.io import all_or_none, read_responses, write_table
    from irtjax.score.full_score import predict_score as predicted_score
    from irtjax.score.models import checked_method, checked_uncertainty, score_models

    method, uncertainty = checked_method(method), checked_uncertainty(uncertainty)
    if not no_cache:
        use_compilation_cache()
    fit, output = FitResult.load(run), console(quiet=quiet)
    data = read_responses(responses, **reader.arguments())
    scores = score_models(fit, data, method=method, uncertainty=uncertainty)
    by_value = None
    if predict_score:
        predicted = predicted_score(fit, data, uncertainty=uncertainty)
        scores = _joined(scores, predicted)
        if by is not None:
            by_value = predicted_score(fit, data, by=by, uncertainty=uncertainty)
    written = [f"{out}: {counted(len(scores), 'model')}; flags: {flag_counts(scores['flags'])}"]
    with all_or_none():
        write_table(scores, out)
        if by_value is not None:
            write_table(by_value, by_path)
    if by_value is not None:
        written.append(f"{by_path}: {counted(len(by_value), 'score')} by {by}")
    _show(scores, output)
    lines(output, "Files", *written)
    show_next(output, "update", run, *responses, "--out", "RUN2")


def _joined(scores: Any, predicted: Any) -> Any:
    """The predictions after the abilities; rows are the same models in the same order."""
    names = [name for name in predicted if name not in ("model_id", "n_responses", "observed")]
    place = list(scores.columns).index("n_responses")
    joined = scores.copy()
    for offset, name in enumerate(names):
        joined.insert(place + offset, name, predicted[name].to_numpy())
    return joined


def _show(scores: Any, output: "Console") -> None:
    """The first models, with what was asked for."""
    dims = [name for name in scores if str(name).endswith("_ability")]
    has_score = "score" in scores
    headings = [str(name).replace("_ability", "").replace("dim", "dim ") for name in dims]
    table = plain_table(
        ["model"], [*headings, *(["score", "95% interval"] if has_score else []), "answers"]
    )
    for row in scores.head(_SHOWN_MODELS).to_dict("records"):
        cells = [f"{row[name]:.2f} +- {row[f'{name}_se']:.2f}" for name in dims]
        if has_score:
            interval = f"{row['score_lower']:.3f} to {row['score_upper']:.3f}"
            cells += [f"{row['score']:.3f}", interval]
        table.add_row(Text(str(row["model_id"])), *cells, f"{row['n_responses']:,}")
    if len(scores) > _SHOWN_MODELS:
        table.add_row(f"... {len(scores) - _SHOWN_MODELS:,} more", *[""] * (len(table.columns) - 1))
    show_table(output, "Models placed on the run's scale", table)

"""`irtjax adapt`: what adaptive tests would have asked and found."""

from pathlib import Path
from typing import Annotated

import typer

from irtjax.checks import counted
from irtjax.cli import options
from irtjax.cli.compilation_cache import use_compilation_cache
from irtjax.cli.console import console, lines
from irtjax.cli.output_file import beside, check_output_file
from irtjax.cli.reader_options import AS_FOUND, ReaderOptions, with_reader_options
from irtjax.cli.run_folder import files_of_run
from irtjax.cli.summary import show_next
from irtjax.cli.tables import flag_counts
from irtjax.errors import InputError

__all__ = ["adapt"]


@with_reader_options
def adapt(
    run: options.Run,
    responses: options.Responses,
    out: Annotated[
        Path,
        typer.Option(metavar="FILE", show_default=False, help="CSV file to write: a row a model."),
    ],
    max_items: Annotated[
        int, typer.Option(metavar="N", help="Most items that a model is asked.")
    ] = 50,
    se: Annotated[
        float | None,
        typer.Option(
            metavar="S", help="Stop once the standard error of every ability is at most this."
        ),
    ] = None,
    criterion: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="What the next item is best by: posterior (information where the ability may be), "
            "information (at its mean) or kl; with more dims posterior and information are "
            "D-optimality.",
        ),
    ] = "posterior",
    first: Annotated[
        int, typer.Option(metavar="N", help="Number of first items chosen by kl.")
    ] = 5,
    least_gain: Annotated[
        float,
        typer.Option(
            metavar="SHARE",
            help="Stop when no item left is expected to lower the variance by this share.",
        ),
    ] = 0.0,
    randomesque: Annotated[
        int,
        typer.Option(metavar="K", help="Draw from the K best items, so that none is overused."),
    ] = 1,
    quota: Annotated[
        list[str] | None,
        typer.Option(
            metavar="VALUE=N",
            show_default=False,
            help="Most items of one value of --quota-by; may be given several times.",
        ),
    ] = None,
    quota_by: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            show_default=False,
            help="Item column of the quotas; the run's --group, or benchmark, without.",
        ),
    ] = None,
    items: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            show_default=False,
            help="Items that may be asked: a file of irtjax select (.csv, .json, .txt), or ids, "
            "one a line.",
        ),
    ] = None,
    seed: options.Seed = 0,
    reader: ReaderOptions = AS_FOUND,
    force: options.Force = False,
    quiet: options.Quiet = False,
    no_cache: options.NoCache = False,
) -> None:
    """Simulate adaptive tests: each model is asked the item that says most about it, and so on.

    Example: irtjax adapt run new.csv --max-items 50 --se 0.2 --out adapted.csv

    RESPONSES has the answers, of models that need not be in RUN; only items that a model answered
    are asked. Writes abilities, errors, numbers of items and why each test ended, and beside FILE,
    with -steps in its name, every item asked and the ability after it.
    """
    steps_path = beside(out, "steps")
    read: list[str | Path] = [*files_of_run(run), *responses]
    read += [] if items is None else [items]
    for path in (out, steps_path):
        check_output_file(path, [".csv"], force=force, inputs=read)
    quotas = _quotas(quota or [])
    if quota_by is not None and not quotas:
        raise InputError("--quota-by names the column of quotas; add --quota VALUE=N or drop it")
    from irtjax.fit.result import FitResult
    from irtjax.io import all_or_none, read_item_ids, read_responses, write_table
    from irtjax.select.adaptive_runs import adapt as adapt_models

    if not no_cache:
        use_compilation_cache()
    fit = FitResult.load(run)
    runs = adapt_models(
        fit,
        read_responses(responses, **reader.arguments()),
        max_items=max_items,
        se=se,
        criterion=criterion,
        n_first=first,
        least_gain=least_gain,
        randomesque=randomesque,
        quotas=quotas,
        quota_by=quota_by,
        items=None if items is None else read_item_ids(items),
        seed=seed,
    )
    with all_or_none():
        write_table(runs.models, out)
        write_table(runs.steps, steps_path)
    output = console(quiet=quiet)
    endings = runs.models["reason"].value_counts()
    lines(output, "Ended", *(f"{reason}: {counted(n, 'model')}" for reason, n in endings.items()))
    lines(
        output,
        "Files",
        f"{out}: {counted(len(runs.models), 'model')}; flags: {flag_counts(runs.models['flags'])}",
        f"{steps_path}: {counted(len(runs.steps), 'answer')}",
    )
    show_next(output, "score", run, *responses, "--predict-score", "--out", "scores.csv")


def _quotas(given: list[str]) -> dict[str, int]:
    quotas: dict[str, int] = {}
    for each in given:
        name, _, number = each.rpartition("=")
        if not name or not number.isdecimal():
            raise InputError(f"--quota is VALUE=N, say gsm8k=10, not {each!r}")
        if name in quotas:
            raise InputError(f"--quota names {name!r} twice")
        quotas[name] = int(number)
    return quotas

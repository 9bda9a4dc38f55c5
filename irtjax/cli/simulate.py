"""`irtjax simulate`: responses drawn from known parameters."""

from pathlib import Path
from typing import Annotated

import typer

from irtjax.checks import counted
from irtjax.cli import options
from irtjax.cli.console import console, lines
from irtjax.cli.output_file import check_output_file

__all__ = ["simulate"]


def simulate(
    out: Annotated[
        Path,
        typer.Option(
            metavar="FILE", show_default=False, help="File to write: .csv, .csv.gz, .parquet, .npz."
        ),
    ],
    models: Annotated[int, typer.Option(metavar="N", help="Number of models.")] = 100,
    items: Annotated[int, typer.Option(metavar="N", help="Number of items.")] = 1000,
    family: options.Family = "2pl",
    dims: options.Dims = 1,
    benchmarks: Annotated[int, typer.Option(metavar="N", help="Number of benchmarks.")] = 1,
    missing: Annotated[
        float, typer.Option(metavar="SHARE", help="Share of the responses that is missing.")
    ] = 0.0,
    missing_pattern: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="cells (each on its own) or blocks (model x benchmark).",
        ),
    ] = "cells",
    truth: Annotated[
        Path | None,
        typer.Option(metavar="FILE.npz", help="Write the true parameters to this file too."),
    ] = None,
    seed: options.Seed = 0,
    force: options.Force = False,
    quiet: options.Quiet = False,
) -> None:
    """Draw responses from known parameters, to try things on.

    Example: irtjax simulate --models 50 --items 2000 --dims 2 --benchmarks 4 --out responses.csv
    """
    check_output_file(out, [".csv", ".csv.gz", ".parquet", ".npz"], force=force)
    if truth is not None:
        check_output_file(truth, [".npz"], force=force, others=[out])
    from irtjax.data.simulate import simulate as draw
    from irtjax.io import all_or_none, write_responses
    from irtjax.io.write import atomic_path
    from irtjax.model.spec import ModelSpec

    made = draw(
        ModelSpec(family, dims),
        n_models=models,
        n_items=items,
        n_benchmarks=benchmarks,
        missing=missing,
        missing_pattern=missing_pattern,
        seed=seed,
    )
    with all_or_none():
        write_responses(made.data, out)
        if truth is not None:
            with atomic_path(truth) as temporary:
                made.truth.save(temporary)
    output = console(quiet=quiet)
    lines(
        output,
        "Data",
        f"{counted(models, 'model')} x {counted(items, 'item')} in "
        f"{counted(benchmarks, 'benchmark')}: {counted(made.data.n_responses, 'response')}",
    )
    lines(output, "Files", f"{out}: the responses")
    if truth is not None:
        lines(output, "", f"{truth}: the true parameters")

"""`irtjax audit`: what a benchmark measures and which of its items are broken, as a page."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from irtjax.cli import options
from irtjax.cli.compilation_cache import use_compilation_cache
from irtjax.cli.console import console, lines
from irtjax.cli.output_folder import OutputFolder
from irtjax.cli.progress import shown_parts
from irtjax.cli.report_extra import require_report_extra

if TYPE_CHECKING:
    from rich.console import Console

    from irtjax.report.audit_page import Audit

__all__ = ["audit"]


def audit(
    run: options.Run,
    out: options.OutFolder,
    group: options.BenchmarkColumn = None,
    by: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            show_default=False,
            help="A further item column to look at like benchmarks. Repeatable.",
        ),
    ] = None,
    expected: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            show_default=False,
            help="Item column that says what an item should measure.",
        ),
    ] = None,
    answers: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            show_default=False,
            help="Which option each model gave: columns model_id, item_id, answer, key.",
        ),
    ] = None,
    published: options.Published = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="The fit's number of dims only, and three refits.")
    ] = False,
    seed: options.Seed = 0,
    force: Annotated[
        bool, typer.Option("--force", help="Replace an earlier audit in DIR.")
    ] = False,
    quiet: options.Quiet = False,
    no_cache: options.NoCache = False,
) -> None:
    """Find out what a benchmark really measures, and which of its items are broken.

    Example: irtjax audit run --out audit

    Writes DIR/report.html, a page to read, and a CSV file for every table behind it.
    """
    folder = OutputFolder(out, "audit.json", force=force)
    require_report_extra()
    from irtjax.compiler_check import require_correct_compiler
    from irtjax.fit.result import FitResult
    from irtjax.io.answers import read_answers
    from irtjax.io.scores import read_scores
    from irtjax.report.audit_page import audit as run_audit

    require_correct_compiler()
    if not no_cache:
        use_compilation_cache()
    fit = FitResult.load(run)
    given = None if answers is None else read_answers(answers)
    declared = None if published is None else read_scores(published)
    with shown_parts(quiet=quiet) as on_part:
        found = run_audit(
            fit,
            group=group,
            by=by or (),
            answers=given,
            expected=expected,
            published=declared,
            quick=quick,
            seed=seed,
            on_part=on_part,
        )
    folder.write(found.save)
    _show(found, folder.path, console(quiet=quiet))


def _show(found: "Audit", path: Path, output: "Console") -> None:
    checks = found.tables["trust"].itertuples(index=False)
    lines(output, "Trust", *(f"{row.verdict:5}{row.check}: {row.finding}" for row in checks))
    for name, told in found.report["parts"].items():
        if "left_out" in told:
            lines(output, "Left out", f"{name}: {told['left_out']}")
    n_files = len(found.tables)
    lines(output, "Files", f"{path}/report.html, and {n_files} CSV files behind it")

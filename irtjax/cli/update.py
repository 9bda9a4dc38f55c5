"""`irtjax update`: responses that arrived, folded into a run."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from irtjax.checks import counted
from irtjax.cli import options
from irtjax.cli.compilation_cache import use_compilation_cache
from irtjax.cli.console import console, lines
from irtjax.cli.progress import shown_progress
from irtjax.cli.reader_options import AS_FOUND, ReaderOptions, with_reader_options
from irtjax.cli.run_folder import RunFolder
from irtjax.cli.summary import show_files, show_fit, show_heldout, show_models, show_next

if TYPE_CHECKING:
    from irtjax.fit.result import FitResult

__all__ = ["update"]

# Fewer items a dim than this say less of a model than its population does.
_FEW_ITEMS = 10


@with_reader_options
def update(
    run: options.Run,
    responses: options.Responses,
    out: Annotated[
        Path,
        typer.Option(metavar="RUN2", show_default=False, help="Folder to write the new run to."),
    ],
    replace: Annotated[
        bool,
        typer.Option(
            "--replace", help="Where a response differs from the run's, take the new one."
        ),
    ] = False,
    max_steps: Annotated[
        int | None,
        typer.Option(metavar="N", show_default=False, help="Most steps; the run's own without."),
    ] = None,
    reader: ReaderOptions = AS_FOUND,
    force: options.Force = False,
    quiet: options.Quiet = False,
    no_cache: options.NoCache = False,
) -> None:
    """Fold responses of new models and items into a run, and say how far its estimates moved.

    Example: irtjax update run week-48.csv --out run-48

    RUN holds its own responses: RESPONSES are the new ones, and may repeat old ones. Writes RUN2
    as irtjax fit does, on the scale of RUN, with moved_models.csv and moved_items.csv. Old and new
    models count as one population: where they share few items, irtjax fit --anchors does not.
    """
    folder = RunFolder(out, force=force)
    from irtjax.fit.result import FitResult
    from irtjax.fit.updating import update as updated
    from irtjax.io import read_responses, write_table

    fit = FitResult.load(run)
    data = read_responses(responses, **reader.arguments())
    if not no_cache:
        use_compilation_cache()
    with shown_progress(quiet=quiet) as on_look:
        found = updated(fit, data, replace=replace, max_steps=max_steps, on_look=on_look)
    found.fit.report["updated"]["run"] = str(run)
    result = _tested(fit, found.fit)

    def save(new: Path) -> None:
        result.save(new)
        write_table(found.models, new / "moved_models.csv")
        write_table(found.items, new / "moved_items.csv")

    folder.write(save)
    output = console(quiet=quiet)
    show_fit(result, output)
    lines(output, "Update", *_described(found.summary, fit.spec.dims))
    if result.heldout is not None:
        show_heldout(result, output)
    show_models(result, output)
    show_files(out, output, ["moved_models.csv", "moved_items.csv"])
    show_next(output, "update", out, "RESPONSES", "--out", "RUN3")


def _tested(old: "FitResult", new: "FitResult") -> "FitResult":
    """The new fit with the metrics of the old one's held-out cells, where it has some."""
    if old.heldout is None:
        return new
    from irtjax.evaluate.heldout import with_heldout

    report = {name: value for name, value in new.report.items() if name != "heldout"}
    chosen = old.report.get("heldout", {}).get("cells", "")
    return with_heldout(dataclasses.replace(new, report=report), old.heldout, chosen=chosen)


def _described(summary: dict[str, Any], dims: int) -> list[str]:
    new = [
        counted(summary["n_new_models"], "new model"),
        counted(summary["n_new_items"], "new item"),
        counted(summary["n_new_responses"], "new response"),
    ]
    return [
        ", ".join(new),
        *_shared(summary, dims),
        *(_moved(kind, summary[kind]) for kind in ("abilities", "items")),
    ]


def _shared(summary: dict[str, Any], dims: int) -> list[str]:
    """What ties new models to the old ones."""
    n = summary["n_common_items"]
    if n is None:
        return []
    found = [f"{counted(n, 'item')} answered by both old and new models"]
    if n < _FEW_ITEMS * dims:
        found.append(
            "with so few, new models are placed by the old models' population too: where they may "
            "be stronger or weaker, use irtjax fit RESPONSES --anchors RUN"
            if n
            else "nothing ranks new models against old ones: have them answer items of the run"
        )
    return found


def _moved(kind: str, moves: dict[str, Any]) -> str:
    if moves["max"] is None:
        return f"{kind}: no errors to measure moves by"
    return (
        f"old {kind} moved by {moves['rms']:.2f} standard errors (root mean square), at most "
        f"{moves['max']:.2f} ({moves['farthest']})"
    )

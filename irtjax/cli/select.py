"""`irtjax select`: the items of a run that measure best, a budget of them."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from irtjax.checks import counted
from irtjax.cli import options
from irtjax.cli.compilation_cache import use_compilation_cache
from irtjax.cli.console import console, lines, show_table
from irtjax.cli.output_file import check_output_file
from irtjax.cli.run_folder import files_of_run
from irtjax.cli.summary import show_next
from irtjax.cli.tables import flag_counts, plain_table
from irtjax.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from irtjax.select.selection import Selection

__all__ = ["select"]

_SUFFIXES = (".csv", ".json", ".txt")
_SHOWN_SIZES = (1, 3, 10, 30, 100, 300, 1000, 3000, 10_000)
_RELIABILITIES = (0.8, 0.9, 0.95)
_QUOTAS = "Quotas"
_TARGET = "What is measured"


def select(
    run: options.Run,
    budget: Annotated[
        int, typer.Option(metavar="N", show_default=False, help="Number of items to select.")
    ],
    out: Annotated[
        list[Path],
        typer.Option(
            metavar="FILE",
            show_default=False,
            help="File to write, may be repeated: .csv (the table), .json (documents by task, as "
            "lm-evaluation-harness takes them in --samples), .txt (ids).",
        ),
    ],
    criterion: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="d-optimal or a-optimal (narrowest posterior of the abilities, greedily), fisher "
            "(mean information), leh (mean slope), discrimination, clusters (tinyBenchmarks' "
            "anchors), random.",
        ),
    ] = "d-optimal",
    method: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="greedy; exchange (then swaps until none gains; d-optimal, a-optimal); milp (best "
            "sum under quotas of several columns; fisher, leh, discrimination).",
        ),
    ] = "greedy",
    target: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Whom: models (their posterior), top (the top quarter), future=SHIFT (abilities "
            "SHIFT above the best model), or an ability (numbers with commas, one a dim).",
            rich_help_panel=_TARGET,
        ),
    ] = "models",
    dim: Annotated[
        int | None,
        typer.Option(metavar="K", help="This ability only.", rich_help_panel=_TARGET),
    ] = None,
    direction: Annotated[
        str | None,
        typer.Option(
            metavar="X,Y,...",
            help="The place along it only; one number a dim.",
            rich_help_panel=_TARGET,
        ),
    ] = None,
    per: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN=N",
            help="At most N (or LOW-HIGH) items of each value of an item column; COLUMN:VALUE=N of "
            "one value. May be repeated.",
            rich_help_panel=_QUOTAS,
        ),
    ] = None,
    min_coverage: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="At least N items of each value: of the columns of --per, of benchmark without.",
            rich_help_panel=_QUOTAS,
        ),
    ] = 0,
    exclude_flags: Annotated[
        str,
        typer.Option(
            metavar="NAMES",
            help="Leave out items with one of these flags (commas; none: keep all).",
            rich_help_panel=_QUOTAS,
        ),
    ] = "no_responses",
    seed: options.Seed = 0,
    force: options.Force = False,
    quiet: options.Quiet = False,
    no_cache: options.NoCache = False,
) -> None:
    """Select the items that measure best, with the errors to expect at each number of them.

    Example: irtjax select run --budget 100 --out short.csv

    The .csv has a row an item in the order of selection: gain, mean information, and standard error
    and reliability of every ability with the items so far.
    """
    for k, path in enumerate(out):
        check_output_file(path, _SUFFIXES, force=force, inputs=files_of_run(run), others=out[:k])
    settings: dict[str, Any] = {
        "criterion": criterion,
        "method": method,
        "target": target,
        "dim": dim,
        "direction": None if direction is None else _numbers(direction),
        "per": _quotas(per or []),
        "min_coverage": min_coverage,
        "exclude_flags": [
            name.strip() for name in exclude_flags.split(",") if name.strip() not in ("", "none")
        ],
        "seed": seed,
    }
    from irtjax.fit.result import FitResult
    from irtjax.io import all_or_none
    from irtjax.select.api import select_items

    if not no_cache:
        use_compilation_cache()
    fit = FitResult.load(run)
    selection = select_items(fit, budget, **settings)
    with all_or_none():
        for path in out:
            selection.save(path)
    output = console(quiet=quiet)
    _show(selection, fit.data.n_items, output)
    lines(output, "Files", *(f"{path}: {counted(budget, 'item')}" for path in out))
    answers = "ANSWERS.csv"  # of new models to these items
    show_next(output, "score", run, answers, "--predict-score", "--out", "scores.csv")


def _numbers(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise InputError(f"--direction {text!r} must be numbers with commas, one a dim") from None


def _quotas(texts: list[str]) -> dict[str, Any]:
    """`COLUMN=N`, `COLUMN=LOW-HIGH` and `COLUMN:VALUE=N` as `select_items` takes them."""
    found: dict[str, Any] = {}
    for text in texts:
        name, separator, bounds = text.rpartition("=")
        column, of_value, value = name.partition(":")
        if not separator or not column or (of_value and not value):
            raise InputError(
                f"--per {text!r} is not understood; write COLUMN=N, COLUMN=LOW-HIGH or "
                "COLUMN:VALUE=N"
            )
        known = found.setdefault(column, {} if of_value else bounds)
        if isinstance(known, dict) and of_value and value not in known:
            known[value] = bounds
        elif known is not bounds:
            raise InputError(f"--per bounds {name} twice; pass one of them")
    return found


def _show(selection: "Selection", n_items: int, output: "Console") -> None:
    """What was selected from what, and the precision by number of items."""
    report, budget = selection.report, len(selection.items)
    excluded = ", ".join(f"{count:,} {flag}" for flag, count in report["excluded"].items())
    lines(
        output,
        "Selected",
        f"{budget:,} of {n_items:,} items by {report['criterion']}, for {report['target']}",
        f"excluded by flag: {excluded or 'none'}; flags of the selected: "
        f"{flag_counts(selection.items['flags'])}",
    )
    curve = selection.curve()
    names = [str(name) for name in curve.columns if name != "n_items"]
    table = plain_table([], ["items", *(name.replace("_", " ") for name in names)])
    sizes = [size for size in _SHOWN_SIZES if size < budget] + [budget]
    for row in curve.iloc[[size - 1 for size in sizes]].to_dict("records"):
        table.add_row(f"{row['n_items']:,}", *(f"{row[name]:.3f}" for name in names))
    show_table(output, "Expected precision by number of items", table)
    output.print()
    needed = {each: selection.size_for(each) for each in _RELIABILITIES}
    words = {
        each: "not reached" if size is None else counted(size, "item")
        for each, size in needed.items()
    }
    reached = ", ".join(f"{each:g} {said}" for each, said in words.items())
    lines(output, "Needed", f"for a reliability of {reached}")

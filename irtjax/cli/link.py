"""`irtjax link`: a run on the scale of another one, through the items that both have."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from irtjax.checks import counted
from irtjax.cli import options
from irtjax.cli.console import console, lines
from irtjax.cli.run_folder import RunFolder
from irtjax.cli.summary import show_next

if TYPE_CHECKING:
    from irtjax.fit.linking import Link

__all__ = ["link"]

_SHOWN_ITEMS = 5


def link(
    run: options.Run,
    reference: Annotated[
        Path,
        typer.Argument(
            metavar="REFERENCE", show_default=False, help="The run whose scale is wanted."
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(metavar="RUN2", show_default=False, help="Folder to write the linked run to."),
    ],
    method: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            show_default=False,
            help="One dim: haebara (without), stocking-lord, mean-sigma. Any: oblique (without, in "
            "several dims), procrustes (rotation only).",
        ),
    ] = None,
    force: options.Force = False,
    quiet: options.Quiet = False,
) -> None:
    """Bring a run to the scale of another one, through the items that both have.

    Example: irtjax link run reference --out linked

    Writes RUN2 as irtjax fit does, with link.csv: every item of both, how far it drifted, and
    whether it was left out. No predicted probability changes.
    """
    folder = RunFolder(out, force=force)
    from irtjax.fit.linking import link as linked
    from irtjax.fit.result import FitResult
    from irtjax.io import write_table

    found = linked(FitResult.load(run), FitResult.load(reference), method)
    found.fit.report["linked"]["reference"] = str(reference)

    def save(new: Path) -> None:
        found.fit.save(new)
        write_table(found.anchors, new / "link.csv")

    folder.write(save)
    output = console(quiet=quiet)
    lines(output, "Link", *_described(found))
    lines(output, "Files", f"{out}/: the run on the scale of {reference}, link.csv")
    show_next(output, "score", out, "ANSWERS.csv", "--out", "scores.csv")


def _described(found: "Link") -> list[str]:
    linked = found.fit.report["linked"]
    mean, sd = (", ".join(f"{value:.2f}" for value in linked[name]) for name in ("mean", "sd"))
    worst = found.anchors[found.anchors["is_drifted"]].sort_values("drift", ascending=False)
    drifted = ", ".join(worst["item_id"].head(_SHOWN_ITEMS))
    more = f" and {len(worst) - _SHOWN_ITEMS:,} more" if len(worst) > _SHOWN_ITEMS else ""
    left_out = f": {drifted}{more}" if len(worst) else ""
    return [
        f"{found.method}, {counted(len(found.anchors), 'item')} in common",
        f"{len(worst):,} drifted (above {found.threshold:.1f}) and left out{left_out}",
        f"the run's population on the reference's scale: mean {mean}, sd {sd}",
    ]

"""Options that several commands share: one spelling and one help text each."""

from pathlib import Path
from typing import Annotated

import typer

from irtjax.errors import InputError

__all__ = [
    "AskedFamily",
    "BenchmarkColumn",
    "Components",
    "Dims",
    "Duplicates",
    "Estimator",
    "Family",
    "Filter",
    "Force",
    "Format",
    "Fractional",
    "Group",
    "IdColumn",
    "ItemColumn",
    "ItemDistribution",
    "ItemsInRows",
    "MaxSteps",
    "Metric",
    "ModelColumn",
    "NoCache",
    "NoHeader",
    "OutFolder",
    "Published",
    "Quiet",
    "ResponseColumn",
    "Responses",
    "Run",
    "Runs",
    "Seed",
    "chosen_components",
]

_MODEL = "Model"
_READING = "Reading the responses"
_N_COMPONENTS = 4

Responses = Annotated[
    list[str],
    typer.Argument(
        metavar="RESPONSES",
        show_default=False,
        help="Files (CSV, Parquet, JSON Lines, NPZ), globs, or folders of lm-evaluation-harness "
        "outputs.",
    ),
]
Run = Annotated[
    Path,
    typer.Argument(metavar="RUN", show_default=False, help="Folder that irtjax fit wrote."),
]
OutFolder = Annotated[
    Path, typer.Option(metavar="DIR", show_default=False, help="Folder to write to.")
]
BenchmarkColumn = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        show_default=False,
        help="Item column of the benchmarks; benchmark without, where each item has it. none: all "
        "items are one.",
    ),
]
Published = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        show_default=False,
        help="Declared averages: columns model_id, benchmark, score (shares or percentages).",
    ),
]
Family = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="Item response family: rasch, 1pl, 2pl, 3pl or 4pl.",
        rich_help_panel=_MODEL,
    ),
]
AskedFamily = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        show_default=False,
        help="Item response family: rasch, 1pl, 2pl, 3pl or 4pl; without, 2pl (1pl for deep-irt).",
        rich_help_panel=_MODEL,
    ),
]
Dims = Annotated[
    int,
    typer.Option(metavar="N", help="Number of abilities (latent dims).", rich_help_panel=_MODEL),
]
Group = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Item column (say, benchmark) for model x benchmark effects and one item "
        "distribution a benchmark.",
        rich_help_panel=_MODEL,
    ),
]
Estimator = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        rich_help_panel=_MODEL,
        help="marginal-items (few models, many items), marginal-models (many models, few items), "
        "joint-map (both sides estimated), psn and deep-irt (networks), or auto (by shape).",
    ),
]
ItemDistribution = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="Distribution of item parameters: normal; mixture, or empirical (a grid, up to 3 "
        "dims), which predict better with few models and take longer.",
        rich_help_panel=_MODEL,
    ),
]
Components = Annotated[
    int | None,
    typer.Option(metavar="N", help="Normals of a mixture; 4 without.", rich_help_panel=_MODEL),
]
MaxSteps = Annotated[
    int, typer.Option(metavar="N", help="Most steps of a fit.", rich_help_panel=_MODEL)
]
Seed = Annotated[int, typer.Option(metavar="N", help="Seed of everything that is random.")]
Force = Annotated[bool, typer.Option("--force", help="Replace what is there.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print nothing but warnings and errors.")]
NoCache = Annotated[
    bool,
    typer.Option(
        "--no-cache",
        envvar="IRTJAX_NO_CACHE",
        help="Do not keep compiled programs in ~/.cache/irtjax.",
    ),
]

Format = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="long, wide, npz, pyirt or lm-eval; found from name and content without.",
        rich_help_panel=_READING,
    ),
]
ModelColumn = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Column of the model id.", rich_help_panel=_READING),
]
ItemColumn = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Column of the item id.", rich_help_panel=_READING),
]
ResponseColumn = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Column of the response.", rich_help_panel=_READING),
]
Duplicates = Annotated[
    str,
    typer.Option(
        metavar="RULE",
        help="Of several responses of a model to an item: error, first, last, mean or any.",
        rich_help_panel=_READING,
    ),
]
Fractional = Annotated[
    str,
    typer.Option(
        metavar="RULE",
        help="Of responses between 0 and 1: error, threshold=T (T or more is right) or likelihood "
        "(keep).",
        rich_help_panel=_READING,
    ),
]
ItemsInRows = Annotated[
    bool,
    typer.Option(
        "--items-in-rows", help="The rows of a wide table are items.", rich_help_panel=_READING
    ),
]
NoHeader = Annotated[
    bool,
    typer.Option(
        "--no-header",
        help="A wide table without header and ids.",
        rich_help_panel=_READING,
    ),
]
IdColumn = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="Column of the ids in a wide table.", rich_help_panel=_READING
    ),
]
Metric = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="Metric, where a task has several.", rich_help_panel=_READING
    ),
]
Filter = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="Filter, where a task has several.", rich_help_panel=_READING
    ),
]
Runs = Annotated[
    str,
    typer.Option(
        metavar="RULE",
        help="Of several runs of a task by a model: newest, or all (as trials).",
        rich_help_panel=_READING,
    ),
]


def chosen_components(components: int | None, item_distribution: str) -> int:
    """The number of normals of a mixture that `--components` asks for.

    Raises:
        InputError: asked for without a mixture.
    """
    if components is not None and item_distribution != "mixture":
        raise InputError("--components belongs to --item-distribution mixture; add it or drop this")
    return _N_COMPONENTS if components is None else components

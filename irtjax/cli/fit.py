"""`irtjax fit`: from response files to the folder of a run."""

from pathlib import Path
from typing import Annotated

import typer

from irtjax.cli import options
from irtjax.cli.compilation_cache import use_compilation_cache
from irtjax.cli.console import console
from irtjax.cli.progress import shown_progress
from irtjax.cli.responses import read_parts, tested
from irtjax.cli.run_folder import RunFolder
from irtjax.cli.summary import show_files, show_fit, show_heldout, show_models

__all__ = ["fit"]

_STRICT = 3
_HELDOUT = "Held-out responses"


def fit(
    responses: Annotated[
        list[str],
        typer.Argument(
            metavar="RESPONSES",
            show_default=False,
            help="Files (CSV, Parquet, JSON Lines, NPZ), globs, or folders of "
            "lm-evaluation-harness outputs.",
        ),
    ],
    out: Annotated[
        Path, typer.Option(metavar="RUN", show_default=False, help="Folder to write the run to.")
    ],
    family: options.Family = "2pl",
    dims: options.Dims = 1,
    group: options.Group = None,
    estimator: options.Estimator = "auto",
    item_distribution: options.ItemDistribution = "normal",
    components: options.Components = None,
    max_steps: options.MaxSteps = 1000,
    seed: options.Seed = 0,
    holdout: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="Keep this share of the responses (0.1, say) out of the fit and test on it.",
            rich_help_panel=_HELDOUT,
        ),
    ] = None,
    test: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Test on the responses of this file, read with the same options.",
            rich_help_panel=_HELDOUT,
        ),
    ] = None,
    format: options.Format = None,
    model_column: options.ModelColumn = None,
    item_column: options.ItemColumn = None,
    response_column: options.ResponseColumn = None,
    duplicates: options.Duplicates = "error",
    fractional: options.Fractional = "error",
    items_in_rows: options.ItemsInRows = False,
    no_header: options.NoHeader = False,
    id_column: options.IdColumn = None,
    metric: options.Metric = None,
    filter: options.Filter = None,
    runs: options.Runs = "newest",
    force: Annotated[
        bool, typer.Option("--force", help="Start anew where RUN exists; only a run is replaced.")
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from the last saved state of RUN.")
    ] = False,
    checkpoint_every: Annotated[
        int,
        typer.Option(metavar="STEPS", help="Save the state every so many steps; 0 never.", min=0),
    ] = 0,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict",
            help="Exit code 3 when the fit did not converge or the data are weakly connected.",
        ),
    ] = False,
    quiet: options.Quiet = False,
    no_cache: options.NoCache = False,
) -> None:
    """Estimate abilities of models and parameters of items, with uncertainty.

    Example: irtjax fit responses.csv --dims 2 --holdout 0.1 --out run

    Writes RUN/items.csv, models.csv, fit.json, responses.npz and checkpoint/.
    """
    from irtjax.compiler_check import require_correct_compiler
    from irtjax.data.checks import check_seed
    from irtjax.fit.api import check_settings
    from irtjax.fit.api import fit as estimate
    from irtjax.fit.checkpoints import Checkpoints
    from irtjax.fit.validation import check_responses, data_warnings
    from irtjax.model.spec import ModelSpec

    # Everything that can be refused is refused before the first file is written.
    output = console(quiet=quiet)
    run = RunFolder(out, force=force, resume=resume)
    spec = ModelSpec(family, dims)
    components = options.chosen_components(components, item_distribution)
    check_settings(estimator, item_distribution, components, max_steps)
    check_seed(seed)
    reader = {
        "format": format,
        "model_column": model_column,
        "item_column": item_column,
        "response_column": response_column,
        "duplicates": duplicates,
        "fractional": fractional,
        "items_in_rows": items_in_rows,
        "no_header": no_header,
        "id_column": id_column,
        "metric": metric,
        "filter": filter,
        "runs": runs,
    }
    parts = read_parts(responses, reader, holdout=holdout, test=test, seed=seed, output=output)
    check_responses(parts.train, spec)
    if group is not None:
        parts.train.groups(group)
    if not no_cache:
        use_compilation_cache()
    require_correct_compiler()

    checkpoints = None
    if checkpoint_every or resume:
        checkpoints = Checkpoints(run.steps, checkpoint_every, resume)
    if checkpoint_every:
        run.start_saving()
    with shown_progress(quiet=quiet) as on_look:
        result = estimate(
            parts.train,
            spec,
            group=group,
            estimator=estimator,
            item_distribution=item_distribution,
            components=components,
            seed=seed,
            max_steps=max_steps,
            checkpoints=checkpoints,
            on_look=on_look,
        )
    if parts.cells is not None:
        result = tested(result, parts)
    run.write(result.save)  # before anything is shown: `| head` must not cost the run
    show_fit(result, output)
    if parts.cells is not None:
        show_heldout(result, output)
    show_models(result, output)
    show_files(run.path, output)
    if strict and (result.status != "converged" or data_warnings(parts.train)):
        raise typer.Exit(_STRICT)

"""`irtjax fit`: from response files to the folder of a run."""

from pathlib import Path
from typing import Annotated, Any

import typer

from irtjax.cli import options
from irtjax.cli.compilation_cache import use_compilation_cache
from irtjax.cli.console import console
from irtjax.cli.progress import shown_progress
from irtjax.cli.responses import read_parts, tested
from irtjax.cli.run_folder import RunFolder
from irtjax.cli.summary import show_files, show_fit, show_heldout, show_models
from irtjax.errors import InputError

__all__ = ["fit"]

_STRICT = 3
_MODEL = "Model"
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
    model_group: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Model column of populations with a mean and sd of their own.",
            rich_help_panel=_MODEL,
        ),
    ] = None,
    ability_distribution: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Distribution of abilities in marginal-models: normal or empirical.",
            rich_help_panel=_MODEL,
        ),
    ] = "normal",
    quadrature: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Of marginal-models: auto, fixed, adaptive or variational.",
            rich_help_panel=_MODEL,
        ),
    ] = "auto",
    nodes: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Quadrature nodes a dim; chosen without.", rich_help_panel=_MODEL
        ),
    ] = None,
    starts: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="Fit from this many starts and say how far they agree (marginal-models).",
            rich_help_panel=_MODEL,
        ),
    ] = 1,
    loadings: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN|FILE",
            help="Which items load on which dims: an item column (one dim a value), or a CSV with "
            "item_id and a column of 0 and 1 a dim.",
            rich_help_panel=_MODEL,
        ),
    ] = None,
    general: Annotated[
        bool,
        typer.Option(
            "--general",
            help="With --loadings: a general factor on which all items load (bifactor).",
            rich_help_panel=_MODEL,
        ),
    ] = False,
    correlated: Annotated[
        bool,
        typer.Option(
            "--correlated", help="With --loadings: dims may correlate.", rich_help_panel=_MODEL
        ),
    ] = False,
    prior: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=PRIOR",
            show_default=False,
            help="Change a prior: slope=lognormal(0,.5), intercept=normal(0,10), "
            "guessing=beta(5,17), infeasibility=beta(2,18), or NAME=off. Repeatable.",
            rich_help_panel=_MODEL,
        ),
    ] = None,
    no_priors: Annotated[
        bool,
        typer.Option(
            "--no-priors", help="All of these off: maximum likelihood.", rich_help_panel=_MODEL
        ),
    ] = False,
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
    from irtjax.fit.api import fit as estimate
    from irtjax.fit.checkpoints import Checkpoints
    from irtjax.fit.loadings import make_loadings, spec_with
    from irtjax.fit.routes import choose_route
    from irtjax.fit.settings import FitSettings
    from irtjax.fit.validation import check_responses, data_warnings
    from irtjax.model.priors import Priors, parse_prior
    from irtjax.model.spec import ModelSpec

    # Everything that can be refused is refused before the first file is written.
    output = console(quiet=quiet)
    run = RunFolder(out, force=force, resume=resume)
    spec = ModelSpec(family, dims)
    components = options.chosen_components(components, item_distribution)
    chosen: dict[str, Any] = {
        "group": group,
        "model_group": model_group,
        "estimator": estimator,
        "item_distribution": item_distribution,
        "components": components,
        "ability_distribution": ability_distribution,
        "quadrature": quadrature,
        "nodes": nodes,
        "starts": starts,
        "seed": seed,
        "max_steps": max_steps,
    }
    FitSettings(**chosen)
    if loadings is None and (general or correlated):
        raise InputError("--general and --correlated belong to --loadings; add it")
    priors = Priors.off() if no_priors else Priors()
    for text in prior or ():
        priors = parse_prior(priors, text)
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
    mask = None
    if loadings is not None:
        mask = make_loadings(parts.train, loadings, has_general=general)
        spec = spec_with(spec, mask)
    check_responses(parts.train, spec, is_confirmatory=mask is not None)
    # Refuses columns that are not there.
    settings = FitSettings(**chosen, loadings=mask, is_correlated=correlated)
    choose_route(parts.train, spec, priors, settings)
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
            **chosen,
            loadings=loadings,
            general=general,
            correlated=correlated,
            priors=priors,
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

"""`irtjax fit`: from response files to the folder of a run."""

import functools
import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from irtjax.cli import options
from irtjax.cli.compilation_cache import use_compilation_cache
from irtjax.cli.console import console, lines
from irtjax.cli.progress import shown_progress
from irtjax.cli.reader_options import AS_FOUND, ReaderOptions, with_reader_options
from irtjax.cli.responses import Parts, read_parts, tested
from irtjax.cli.run_folder import RunFolder
from irtjax.cli.summary import show_files, show_fit, show_heldout, show_models, show_next
from irtjax.errors import InputError

if TYPE_CHECKING:
    from irtjax.fit.anchors import AnchorRun
    from irtjax.fit.checkpoints import Checkpoints
    from irtjax.fit.result import FitResult
    from irtjax.model.priors import Priors
    from irtjax.model.spec import ModelSpec
    from irtjax.nets.settings import Network

__all__ = ["fit"]

_STRICT = 3
_MODEL = "Model"
_HELDOUT = "Held-out responses"


@with_reader_options
def fit(
    responses: options.Responses,
    out: Annotated[
        Path, typer.Option(metavar="RUN", show_default=False, help="Folder to write the run to.")
    ],
    family: options.AskedFamily = None,
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
    rotation: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Turn the dims to simple structure: varimax (what the fit has anyway), quartimin, "
            "oblimin or geomin (dims may correlate), geomin-orthogonal.",
            rich_help_panel=_MODEL,
        ),
    ] = None,
    correlated: Annotated[
        bool,
        typer.Option(
            "--correlated",
            help="With --loadings: dims may correlate (marginal-models).",
            rich_help_panel=_MODEL,
        ),
    ] = False,
    prior: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=PRIOR",
            show_default=False,
            help="Change a prior: slope=lognormal(0,.5), intercept=normal(0,10), "
            "guessing=beta(5,17), infeasibility=beta(2,18), or NAME=off; slope and intercept in "
            "marginal-models, joint-map, psn and deep-irt. Repeatable.",
            rich_help_panel=_MODEL,
        ),
    ] = None,
    no_priors: Annotated[
        bool,
        typer.Option(
            "--no-priors",
            help="All of these off: maximum likelihood (marginal-models, joint-map, psn, "
            "deep-irt).",
            rich_help_panel=_MODEL,
        ),
    ] = False,
    network: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            show_default=False,
            help="Change a setting of psn or deep-irt: hidden=64, batch_size=512, "
            "learning_rate=0.003, epochs=15, patience=4, stop_by=log_loss, ... Repeatable.",
            rich_help_panel=_MODEL,
        ),
    ] = None,
    item_features: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN|FILE",
            show_default=False,
            help="Of psn and deep-irt: numeric item columns (repeatable), or a CSV, Parquet or "
            "JSON Lines file with item_id and numeric columns, or .npy with a row an item.",
            rich_help_panel=_MODEL,
        ),
    ] = None,
    model_features: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN|FILE",
            show_default=False,
            help="The same for models, with model_id.",
            rich_help_panel=_MODEL,
        ),
    ] = None,
    anchors: Annotated[
        Path | None,
        typer.Option(
            metavar="RUN",
            show_default=False,
            help="Keep the parameters of the items that this run has (by id), and its scale; "
            "estimate new items, and the mean and sd of the models.",
            rich_help_panel=_MODEL,
        ),
    ] = None,
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
    reader: ReaderOptions = AS_FOUND,
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
    # Everything that can be refused is refused before the first file is written.
    output = console(quiet=quiet)
    run = RunFolder(out, force=force, resume=resume)
    arguments: dict[str, Any] = {
        "group": group,
        "model_group": model_group,
        "estimator": estimator,
        "item_distribution": item_distribution,
        "components": options.chosen_components(components, item_distribution),
        "ability_distribution": ability_distribution,
        "quadrature": quadrature,
        "nodes": nodes,
        "starts": starts,
        "seed": seed,
        "max_steps": max_steps,
        "network": _network(network or []),
    }
    # Of anchors it matters here only whether there are any.
    spec = _checked_spec(family, dims, arguments | {"anchors": anchors})
    if loadings is None and (general or correlated):
        raise InputError("--general and --correlated belong to --loadings; add it")
    _check_rotation(rotation, spec, loadings)
    arguments |= {"loadings": loadings, "general": general, "correlated": correlated}
    arguments |= {
        "item_features": _columns_or_file(item_features),
        "model_features": _columns_or_file(model_features),
        "anchors": _loaded(anchors),
    }
    arguments["priors"] = _priors(prior or [], spec, no_priors=no_priors)
    parts = read_parts(responses, reader, holdout=holdout, test=test, seed=seed, output=output)
    _check_with_data(parts, spec, arguments)
    if not no_cache:
        use_compilation_cache()
    _prepare(run, saves=checkpoint_every > 0)
    checkpoints = run.checkpoints(checkpoint_every, resume=resume)
    result = _estimated(parts, spec, arguments, checkpoints, quiet=quiet)
    if rotation is not None:
        result = _rotated(result, rotation)
    # Before anything is shown: `| head` must not cost the run.
    run.write(functools.partial(_save, result))
    _show(result, parts, run, output)
    if strict and _is_doubtful(result, parts):
        raise typer.Exit(_STRICT)


def _checked_spec(family: str | None, dims: int, settings: dict[str, Any]) -> "ModelSpec":
    """The spec, once it and the settings are known to be possible."""
    from irtjax.fit.settings import FitSettings, default_family
    from irtjax.model.spec import ModelSpec

    spec = ModelSpec(default_family(settings["estimator"]) if family is None else family, dims)
    FitSettings(**settings)
    return spec


def _check_rotation(rotation: str | None, spec: "ModelSpec", loadings: str | None) -> None:
    from irtjax.fit.rotations import METHODS, TARGET_METHODS

    if rotation is None:
        return
    known = [name for name in METHODS if name not in TARGET_METHODS]
    if rotation not in known:
        raise InputError(f"--rotation {rotation} is not known; use one of {', '.join(known)}")
    if spec.dims < 2 or loadings is not None:
        raise InputError("--rotation needs --dims 2 or more, without --loadings; drop it")


def _rotated(result: "FitResult", rotation: str) -> "FitResult":
    from irtjax.fit.alignment import rotate

    return rotate(result, rotation)


def _columns_or_file(given: list[str] | None) -> Any:
    """One name may be a file's; several are columns."""
    return given[0] if given and len(given) == 1 else given or None


def _loaded(anchors: Path | None) -> "AnchorRun | None":
    """The run of the anchors, read once; its folder stays with it for the record."""
    if anchors is None:
        return None
    from irtjax.fit.anchors import AnchorRun

    return AnchorRun.load(anchors)


def _network(changes: list[str]) -> "Network | None":
    """The network of these settings; the estimator's own without any."""
    from irtjax.nets.settings import Network, parse_network

    network = Network() if changes else None
    for text in changes:
        network = parse_network(network or Network(), text)
    return network


def _priors(changes: list[str], spec: "ModelSpec", *, no_priors: bool) -> "Priors":
    """The priors that were asked for, each once.

    Raises:
        InputError: a prior twice, beside --no-priors, or of what the family does not have.
    """
    from irtjax.model.priors import Priors, parse_prior

    if no_priors and changes:
        raise InputError(
            "--no-priors switches all priors off and --prior changes one; pass one of them "
            "(--prior NAME=off switches one off)"
        )
    priors = Priors.off() if no_priors else Priors()
    seen: set[str] = set()
    for text in changes:
        priors = parse_prior(priors, text)
        name = text.partition("=")[0].strip()
        if name in seen:
            raise InputError(f"--prior {name} is given twice; pass it once")
        if not spec.has_prior(name):
            raise InputError(
                f"--prior {text!r} has no use: family {spec.family} has no {name}; drop it"
            )
        seen.add(name)
    return priors


def _check_with_data(parts: Parts, spec: "ModelSpec", arguments: dict[str, Any]) -> None:
    """Refuse what the data do not have or cannot tell."""
    from irtjax.fit.request import make_request

    make_request(parts.train, spec, **arguments)


def _prepare(run: RunFolder, *, saves: bool) -> None:
    """Check the compiler; only then may an earlier run make way for states to come."""
    from irtjax.compiler_check import require_correct_compiler

    require_correct_compiler()
    if saves:
        run.start_saving()


def _estimated(
    parts: Parts,
    spec: "ModelSpec",
    arguments: dict[str, Any],
    checkpoints: "Checkpoints | None",
    *,
    quiet: bool,
) -> "FitResult":
    """The fit, and how well it predicts what was held out."""
    from irtjax.fit.api import fit as estimate

    with shown_progress(quiet=quiet) as on_look:
        result = estimate(parts.train, spec, **arguments, checkpoints=checkpoints, on_look=on_look)
    return result if parts.cells is None else tested(result, parts)


def _save(result: "FitResult", folder: Path) -> None:
    """The run's files, and of a network the picture of its training."""
    result.save(folder)
    curves = result.report.get("loss_curves")
    if curves is not None and importlib.util.find_spec("matplotlib") is not None:
        from irtjax.report.loss_curves import write_loss_curves

        report = result.report
        note = report["reason"] if report["status"] in ("diverged", "stalled") else None
        stopping = report["stopping"]
        write_loss_curves(curves, folder / "loss.png", stopping=stopping, note=note)


def _show(result: "FitResult", parts: Parts, run: RunFolder, output: Console) -> None:
    show_fit(result, output)
    if parts.cells is not None:
        show_heldout(result, output)
    show_models(result, output)
    show_files(run.path, output)
    show_next(output, "predict", run.path, "PAIRS.csv", "--out", "FILE.csv")
    if "loss_curves" in result.report:
        drawn = run.path / "loss.png"
        missing = "not drawn: install irtjax[report] for it"
        lines(output, "Training", f"{drawn if drawn.is_file() else f'loss.png {missing}'}")


def _is_doubtful(result: "FitResult", parts: Parts) -> bool:
    """Whether the fit did not converge or the data say little."""
    from irtjax.fit.validation import data_warnings

    return result.status != "converged" or bool(data_warnings(parts.train))

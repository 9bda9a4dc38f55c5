"""A run's folder: `items.csv`, `models.csv`, `fit.json`, `responses.npz`, `checkpoint/`."""

import json
import warnings
from pathlib import Path
from typing import Any

import jax
import numpy as np

from irtjax.checkpoint import latest_step, read_metadata, restore_arrays, save_arrays
from irtjax.checks import shown
from irtjax.data.cells import Cells
from irtjax.errors import InputError, IrtjaxWarning
from irtjax.fit.result import FitResult, FittedParameters
from irtjax.io import read_responses, sha256_of, write_json, write_responses, write_table
from irtjax.model.spec import ModelSpec

__all__ = ["load_run", "result_folder", "save_run", "steps_folder"]

_REMEDY = "fit again"
# Parts of the report that say what the estimates are: `fit.json` must agree with them.
_TIED = (
    "family",
    "dims",
    "group",
    "model_group",
    "estimator",
    "integrated",
    "item_distribution",
    "ability_distribution",
    "settings",
    "priors",
    "asked",
    "dim_names",
    "scale_correlations",
    "anchors",
    "linked",
    "updated",
    "network",
    "features",
    "status",
    "n_models",
    "n_items",
    "n_responses",
)
_HELDOUT = ("model_index", "item_index", "response", "weight")


def result_folder(run: Path) -> Path:
    """Where the final estimates of a run are."""
    return run / "checkpoint" / "result"


def steps_folder(run: Path) -> Path:
    """Where the states of a run in progress are."""
    return run / "checkpoint" / "steps"


def save_run(fit: FitResult, run: Path) -> None:
    """Write everything DESIGN section 5 lists."""
    try:
        run.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make the folder {run}: {error.strerror}") from None
    more: dict[str, np.ndarray] = {}
    if fit.heldout is not None:
        more = {f"heldout_{name}": getattr(fit.heldout, name) for name in _HELDOUT}
    write_responses(fit.data, run / "responses.npz", arrays=more)
    shapes = {
        name: (list(np.shape(value)), str(np.asarray(value).dtype))
        for name, value in vars(fit.parameters).items()
        if value is not None
    }
    metadata = {
        "family": fit.spec.family,
        "dims": fit.spec.dims,
        "group": fit.group,
        "shapes": shapes,
        "responses": sha256_of(run / "responses.npz"),
        "report": {name: fit.report[name] for name in _TIED if name in fit.report},
    }
    save_arrays(result_folder(run), 0, _present(fit.parameters), metadata)
    write_table(fit.item_parameters(), run / "items.csv")
    write_table(fit.abilities(), run / "models.csv")
    write_json(fit.report, run / "fit.json")


def load_run(run: Path) -> FitResult:
    """Read a run's folder."""
    if not run.is_dir():
        raise InputError(f"{run} is not a folder; give the --out folder of `irtjax fit`")
    for name in ("responses.npz", "fit.json"):
        if not (run / name).is_file():
            raise InputError(f"{run} has no {name}; it is not the folder of a finished fit")
    step = latest_step(result_folder(run))
    if step is None:
        raise InputError(f"{run} has no checkpoint/result; it is not the folder of a finished fit")
    metadata = read_metadata(result_folder(run), step, remedy=_REMEDY)
    template = {
        name: jax.ShapeDtypeStruct(tuple(shape), np.dtype(dtype))
        for name, (shape, dtype) in metadata["shapes"].items()
    }
    arrays = restore_arrays(result_folder(run), step, template, remedy=_REMEDY)
    absent = dict.fromkeys(FittedParameters.__dataclass_fields__)
    parameters = FittedParameters(**absent | {k: np.asarray(v) for k, v in arrays.items()})
    report = _report(run / "fit.json", metadata["report"])
    _check_responses(run / "responses.npz", metadata["responses"])
    if report.get("status") == "diverged":
        warnings.warn(
            f"the run {run} diverged: its last good state is no basis for anything; fit again",
            IrtjaxWarning,
            stacklevel=4,
        )
    with warnings.catch_warnings():
        # Of a file that `save_run` wrote: a fit with more models than items is not transposed.
        warnings.simplefilter("ignore", IrtjaxWarning)
        data = read_responses(run / "responses.npz", fractional="likelihood")
    return FitResult(
        data,
        ModelSpec(metadata["family"], metadata["dims"]),
        parameters,
        metadata["group"],
        report,
        _heldout(run / "responses.npz"),
    )


def _report(path: Path, tied: dict[str, Any]) -> dict[str, Any]:
    """What `fit.json` holds, which must be of the same fit as the estimates.

    Args:
        path: of the file.
        tied: what the estimates were saved with; null stands for what JSON does not have.
    """
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is damaged: {error}; {_REMEDY}") from None
    if not isinstance(report, dict):
        raise InputError(f"{path} is damaged: it holds {shown(report)}, no report; {_REMEDY}")
    for name, value in tied.items():
        if name not in report or report[name] != value:
            said = f"says {name} {shown(report[name])}" if name in report else f"has no {name!r}"
            raise InputError(
                f"{path} {said}, but the estimates beside it are of a fit with {name} "
                f"{shown(value)}; put its own fit.json back, or {_REMEDY}"
            )
    return report


def _check_responses(path: Path, digest: str) -> None:
    """Refuse another fit's responses: predictions would stand under the wrong ids."""
    if sha256_of(path) != digest:
        raise InputError(
            f"{path} is not the file that was saved with the estimates beside it; put its own "
            f"responses.npz back, or {_REMEDY}"
        )


def _present(parameters: FittedParameters) -> dict[str, Any]:
    return {name: value for name, value in vars(parameters).items() if value is not None}


def _heldout(path: Path) -> Cells | None:
    with np.load(path) as archive:
        if "heldout_response" not in archive:
            return None
        return Cells(*(archive[f"heldout_{name}"] for name in _HELDOUT))

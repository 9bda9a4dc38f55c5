"""A run's folder: `items.csv`, `models.csv`, `fit.json`, `responses.npz`, `checkpoint/`."""

import json
import warnings
from pathlib import Path
from typing import Any

import jax
import numpy as np

from irtjax.checkpoint import latest_step, read_metadata, restore_arrays, save_arrays
from irtjax.data.cells import Cells
from irtjax.errors import InputError, IrtjaxWarning
from irtjax.fit.result import FitResult, FittedParameters
from irtjax.io import read_responses, write_json, write_responses, write_table
from irtjax.model.spec import ModelSpec

__all__ = ["load_run", "result_folder", "save_run", "steps_folder"]

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
    metadata = read_metadata(result_folder(run), step)
    template = {
        name: jax.ShapeDtypeStruct(tuple(shape), np.dtype(dtype))
        for name, (shape, dtype) in metadata["shapes"].items()
    }
    arrays = restore_arrays(result_folder(run), step, template)
    absent = dict.fromkeys(FittedParameters.__dataclass_fields__)
    parameters = FittedParameters(**absent | {k: np.asarray(v) for k, v in arrays.items()})
    try:
        report = json.loads((run / "fit.json").read_text())
    except ValueError as error:
        raise InputError(f"{run / 'fit.json'} is damaged: {error}") from None
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


def _present(parameters: FittedParameters) -> dict[str, Any]:
    return {name: value for name, value in vars(parameters).items() if value is not None}


def _heldout(path: Path) -> Cells | None:
    with np.load(path) as archive:
        if "heldout_response" not in archive:
            return None
        return Cells(*(archive[f"heldout_{name}"] for name in _HELDOUT))

"""The report of a fit: what `fit.json` holds."""

import dataclasses
import functools
import importlib.metadata
import platform
from typing import Any

import jax
import numpy as np

from irtjax.data.responses import ResponseMatrix
from irtjax.fit.driver import Progress, Status
from irtjax.fit.result import FittedParameters
from irtjax.fit.rotation import loadings
from irtjax.fit.tables import dims_without_spread, metadata_name
from irtjax.fit.uncertainty import FEWEST_CLUSTERS
from irtjax.fit.validation import data_warnings

__all__ = ["clustered_note", "fit_report", "plain_settings"]

# A dim in which one model holds this share of the abilities' variance describes that model alone
# (a Heywood case); with 12 equal models a share is 1/12. Among few models one always stands out.
_ONE_MODEL_SHARE = 0.6
_FEWEST_MODELS = 8
# Mean squared loading below which a dim is noise: dims beyond the true two of 100 x 34,000
# simulated responses explain .0002, the weaker true one .09.
_LEAST_EXPLAINED = 1e-3


def fit_report(
    data: ResponseMatrix,
    parameters: FittedParameters,
    progress: Progress,
    settings: dict[str, Any],
    notes_of_estimator: dict[str, Any],
) -> dict[str, Any]:
    """Everything there is to know of a fit beside its estimates, in what JSON can hold.

    Args:
        data: the responses, with their provenance.
        parameters: the estimates.
        progress: how the loop ended, and its trace.
        settings: what the caller chose and measured; taken over as it is.
        notes_of_estimator: what only this estimator has to say, likewise (its `warnings` join).

    Returns:
        A dictionary; `warnings` holds one sentence each.
    """
    assert progress.status is not None
    dims, notes = _describe_dims(parameters, data)
    found = [*data.provenance.warnings, *data_warnings(data), *_renamed(data)]
    notes = [*found, *notes, *notes_of_estimator.pop("warnings", [])]
    if progress.status is not Status.converged:
        notes.append(f"{progress.status.name}: {progress.reason}")
    objective = progress.trace.objective
    return {
        "versions": _versions(),
        "inputs": [{"path": path, "sha256": digest} for path, digest in data.provenance.files],
        "choices": dict(data.provenance.choices),
        **settings,
        "status": progress.status.name,
        "reason": progress.reason,
        "n_models": data.n_models,
        "n_items": data.n_items,
        "n_responses": data.n_responses,
        "n_steps": progress.n_steps,
        "log_likelihood": objective[-1] if objective else float("nan"),
        **notes_of_estimator,
        "dimensions": dims,
        "warnings": notes,
        "trace": dataclasses.asdict(progress.trace),
    }


def _renamed(data: ResponseMatrix) -> list[str]:
    """Warnings about metadata columns with the name of a result."""
    found = []
    for kind, table in (("items", data.item_metadata), ("models", data.model_metadata)):
        for name in map(str, table.columns):
            if metadata_name(name, kind) != name:
                found.append(
                    f"the column {name!r} of your data has the name of a result; in {kind}.csv it "
                    f"is {metadata_name(name, kind)!r}"
                )
    return found


def plain_settings(settings: Any) -> dict[str, Any]:
    """A dataclass as JSON gives it back: tuples are lists, parts that are objects their text."""
    return {
        field.name: _plain(getattr(settings, field.name)) for field in dataclasses.fields(settings)
    }


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(value)
    return str(value) if dataclasses.is_dataclass(value) else value


def clustered_note(
    parameters: FittedParameters, clusters: str | None, n_clusters: int, integrated: str
) -> str:
    """What the clustered standard errors are, or why they are empty."""
    if integrated == "models":
        return "empty: abilities are integrated out, their errors are of their posteriors"
    if integrated == "none":
        return "empty: joint-map has the errors of each side given the other only"
    if clusters is None:
        return "empty: no benchmark column and no group to cluster the items by"
    if np.all(np.isnan(parameters.ability_se_clustered)):
        return (
            f"empty: needs responses in at least {FEWEST_CLUSTERS} clusters of {clusters!r}, "
            f"there are {n_clusters}"
        )
    return f"sandwich over clusters of {clusters!r}, factor G / (G - 1)"


@functools.cache
def _versions() -> dict[str, str]:
    names = ("irtjax", "jax", "jaxlib", "numpy", "pandas", "orbax-checkpoint")
    versions = {name: importlib.metadata.version(name) for name in names}
    return versions | {"python": platform.python_version(), "backend": jax.default_backend()}


def _describe_dims(
    parameters: FittedParameters, data: ResponseMatrix
) -> tuple[list[dict[str, Any]], list[str]]:
    """Explained variance of each dim and which are carried by one model, with warnings."""
    mean = np.sum(parameters.share[:, :, None] * parameters.mean, axis=1)
    explained = np.mean(loadings(mean[:, :-1].astype(np.float64)) ** 2, axis=0)
    ability = np.asarray(parameters.ability, np.float64)
    share = ability**2 / np.maximum(np.sum(ability**2, axis=0), 1e-12)
    model_ids = data.model_ids
    is_alike = dims_without_spread(ability, data.totals("models")[0] > 0)
    dims, warnings = [], []
    for k in range(ability.shape[1]):
        top = int(np.argmax(share[:, k]))
        flags = ""
        if explained[k] < _LEAST_EXPLAINED:
            flags = "no_signal"
            warnings.append(
                f"dim {k + 1} explains {explained[k]:.2%} of the items' variance: the data show no "
                "such ability, and its values mean nothing; use fewer dims, or more responses"
            )
        elif is_alike[k]:
            flags = "no_signal"
            warnings.append(
                f"all models have the same ability in dim {k + 1}: the data do not tell them apart "
                "there, and its slopes are those of their prior; use other models, or fewer dims"
            )
        if len(model_ids) >= _FEWEST_MODELS and share[top, k] > _ONE_MODEL_SHARE:
            flags = ";".join(filter(None, [flags, "one_model"]))
            warnings.append(
                f"dim {k + 1} is carried by one model ({model_ids[top]!r}, {share[top, k]:.0%} of "
                "its variance): it describes that model, not an ability; use fewer dims"
            )
        dims.append(
            {
                "name": f"dim{k + 1}",
                "explained_variance": float(explained[k]),
                "top_model": str(model_ids[top]),
                "top_model_share": float(share[top, k]),
                "flags": flags,
            }
        )
    return dims, warnings

"""The report of a fit: what `fit.json` holds."""

import dataclasses
import functools
import importlib.metadata
import platform
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from irtjax.checks import counted
from irtjax.data.responses import ResponseMatrix
from irtjax.fit.driver import Progress, Status
from irtjax.fit.result import FittedParameters, ability_correlations
from irtjax.fit.rotation import loadings
from irtjax.fit.tables import dims_without_spread, metadata_name
from irtjax.fit.uncertainty import FEWEST_CLUSTERS, FEWEST_EFFECTIVE_CLUSTERS
from irtjax.fit.validation import data_warnings

__all__ = [
    "clustered_note",
    "describe_dims",
    "described_groups",
    "fit_report",
    "plain_settings",
    "steps_taken",
]

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
        notes_of_estimator: what only this estimator has to say, likewise; its `warnings` join, and
            `ending` gives the progress with the status and reason that this estimator has for it.

    Returns:
        A dictionary; `warnings` holds one sentence each.
    """
    progress = notes_of_estimator.pop("ending", lambda found: found)(progress)
    assert progress.status is not None
    dims, notes = describe_dims(parameters, data)
    found = [*data.provenance.warnings, *data_warnings(data), *_renamed(data)]
    if progress.status is Status.diverged:
        notes = []  # of a state on the way: it does not say what the responses support
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
        **({} if data.sum_of_weights is None else {"sum_of_weights": data.sum_of_weights}),
        "n_steps": progress.n_steps,
        "log_likelihood": objective[-1] if objective else float("nan"),
        **notes_of_estimator,
        "dimensions": dims,
        "warnings": notes,
        "trace": dataclasses.asdict(progress.trace),
    }


def steps_taken(report: Mapping[str, Any]) -> str:
    """How long a fit has run: `12 steps`, of a network `6 epochs, 2 more of the refit`."""
    curves = report.get("loss_curves")
    if curves is None:
        return counted(report.get("n_steps", 0), "step")
    more = f", {len(curves['refit']):,} more of the refit" if curves["refit"] else ""
    return counted(len(curves["validation"]), "epoch") + more


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
    """A dataclass as JSON gives it back.

    Tuples are lists; parts that are dataclasses are their text, where they have one of their own
    (a prior's `normal(0, 2)`), or dictionaries.
    """
    return {
        field.name: _plain(getattr(settings, field.name)) for field in dataclasses.fields(settings)
    }


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(value)
    if not dataclasses.is_dataclass(value):
        return value
    has_text = type(value).__str__ is not object.__str__
    return str(value) if has_text else plain_settings(value)


def clustered_note(
    parameters: FittedParameters,
    clusters: str | None,
    n_clusters: int,
    integrated: str,
    estimator: str,
) -> str:
    """What the clustered standard errors are, or why they are empty."""
    if integrated == "models":
        return "empty: abilities are integrated out, their errors are of their posteriors"
    if integrated == "none":
        return f"empty: {estimator} has the errors of each side given the other only"
    if clusters is None:
        return "empty: no benchmark column and no group to cluster the items by"
    freedom = np.asarray(parameters.clustered_degrees_of_freedom, np.float64)
    is_missing = np.isnan(np.asarray(parameters.ability_se_clustered, np.float64))
    too_few = f"{FEWEST_EFFECTIVE_CLUSTERS:g} equal clusters of {clusters!r} carry the information"
    if np.all(is_missing) and np.any(np.isfinite(freedom)):
        return f"empty: fewer than {too_few}"
    if np.all(is_missing):
        return (
            f"empty: needs responses in at least {FEWEST_CLUSTERS} clusters of {clusters!r}, "
            f"there are {n_clusters}"
        )
    said = f"sandwich over clusters of {clusters!r}, factor G / (G - 1)"
    if np.any(is_missing):
        said += f"; {np.sum(is_missing)} of {is_missing.size} are empty: fewer than {too_few}, or "
        said += f"responses in fewer than {FEWEST_CLUSTERS}"
    return said


def described_groups(
    parameters: FittedParameters, codes: np.ndarray, names: list[str]
) -> list[dict[str, Any]]:
    """Each group of models: its size, and the estimated mean and sd of its abilities by dim."""
    mean = np.asarray(parameters.population_mean, np.float64)
    covariance = np.asarray(parameters.population_covariance, np.float64)
    sd = np.sqrt(np.diagonal(covariance, axis1=1, axis2=2))
    return [
        {
            "name": name,
            "n_models": int(np.count_nonzero(codes == g)),
            "mean": mean[g].tolist(),
            "sd": sd[g].tolist(),
        }
        for g, name in enumerate(names)
    ]


@functools.cache
def _versions() -> dict[str, str]:
    names = ("irtjax", "jax", "jaxlib", "numpy", "pandas", "orbax-checkpoint")
    versions = {name: importlib.metadata.version(name) for name in names}
    return versions | {"python": platform.python_version(), "backend": jax.default_backend()}


def describe_dims(
    parameters: FittedParameters, data: ResponseMatrix
) -> tuple[list[dict[str, Any]], list[str]]:
    """Explained variance of each dim and which are carried by one model, with warnings."""
    mean = np.sum(parameters.share[:, :, None] * parameters.mean, axis=1)
    slope = mean[:, :-1].astype(np.float64)
    explained = np.mean(loadings(slope, ability_correlations(parameters)) ** 2, axis=0)
    ability = np.asarray(parameters.ability, np.float64)
    share = ability**2 / np.maximum(np.sum(ability**2, axis=0), 1e-12)
    top = np.argmax(share, axis=0)
    largest = np.max(share, axis=0)
    is_weak = explained < _LEAST_EXPLAINED
    is_alike = dims_without_spread(ability, data.totals("models")[0] > 0) & ~is_weak
    is_of_one = (largest > _ONE_MODEL_SHARE) & (data.n_models >= _FEWEST_MODELS)
    dims = [
        {
            "name": f"dim{k + 1}",
            "explained_variance": float(explained[k]),
            "top_model": str(data.model_ids[top[k]]),
            "top_model_share": float(largest[k]),
            "flags": ";".join(
                name
                for name, holds in (
                    ("no_signal", is_weak[k] | is_alike[k]),
                    ("one_model", is_of_one[k]),
                )
                if holds
            ),
        }
        for k in range(len(top))
    ]
    return dims, _dim_warnings(dims, np.flatnonzero(is_alike).tolist())


def _dim_warnings(dims: list[dict[str, Any]], alike: list[int]) -> list[str]:
    """A sentence a reason, whatever number of dims has it; in `alike` no model differs."""
    weak, of_one = (
        [k for k, dim in enumerate(dims) if flag in dim["flags"].split(";")]
        for flag in ("no_signal", "one_model")
    )
    weak = [k for k in weak if k not in alike]
    or_fewer = ", or use fewer dims" if len(dims) > 1 else ""
    warnings = []
    if alike:
        whose = "its" if len(alike) == 1 else "their"
        warnings.append(
            f"all models have the same ability in {_named(alike)}: the data do not tell them apart "
            f"there, and {whose} slopes are those of their prior; use other models{or_fewer}"
        )
    if weak:
        shares = _listed([f"{dims[k]['explained_variance']:.2%}" for k in weak])
        one, several = ("explains", "its"), ("explain", "their")
        verb, whose = one if len(weak) == 1 else several
        warnings.append(
            f"{_named(weak)} {verb} {shares} of the items' variance: the data show no such "
            f"ability, and {whose} values mean nothing; use more responses{or_fewer}"
        )
    if of_one:
        models = "; ".join(
            f"{dims[k]['top_model']!r}, {dims[k]['top_model_share']:.0%} of its variance"
            for k in of_one
        )
        claim = "is carried by one model", "it describes that model, not an ability"
        if len(of_one) > 1:
            claim = "are each carried by one model", "they describe these models, not abilities"
        check = "that model's" if len({dims[k]["top_model"] for k in of_one}) == 1 else "their"
        warnings.append(
            f"{_named(of_one)} {claim[0]} ({models}): {claim[1]}; check {check} responses, leave "
            f"{'it' if check != 'their' else 'them'} out and compare{or_fewer}"
        )
    return warnings


def _named(dims: list[int]) -> str:
    """`dim 2`, or `dims 2 and 3`."""
    numbers = _listed([str(k + 1) for k in dims])
    return f"{'dim' if len(dims) == 1 else 'dims'} {numbers}"


def _listed(texts: list[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return " and ".join([", ".join(texts[:-1]), texts[-1]] if len(texts) > 1 else texts)

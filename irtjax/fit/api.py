"""`fit`: from a response matrix to abilities and item parameters."""

import dataclasses
import importlib.metadata
import platform
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from irtjax.compiler_check import require_correct_compiler
from irtjax.data.blocks import Blocks, make_blocks
from irtjax.data.responses import ResponseMatrix
from irtjax.errors import InputError, IrtjaxWarning
from irtjax.fit.assemble import describe_dims, fitted_parameters
from irtjax.fit.checkpoints import Checkpoints, fingerprint
from irtjax.fit.clock import compile_seconds
from irtjax.fit.driver import Look, Progress, Status, drive
from irtjax.fit.marginal_items import MarginalItems
from irtjax.fit.result import FitResult
from irtjax.fit.validation import check_responses, data_warnings
from irtjax.model.priors import Priors
from irtjax.model.spec import ModelSpec
from irtjax.parallel import BLOCKED, items_mesh, place

__all__ = ["ESTIMATORS", "ITEM_DISTRIBUTIONS", "fit"]

ESTIMATORS = ("auto", "marginal-items")
ITEM_DISTRIBUTIONS = ("normal", "mixture")

# Posteriors of items answered by few models are wide, and the expectations over them need more
# nodes: at 12 models (W1, one dim) 5 nodes move an ability by .012, 7 by .005, 9 by .003; at 100
# models (W2) 5 nodes move none by more than 6e-6.
_NODES = ((50, 9), (10**9, 5))


def fit(
    data: ResponseMatrix,
    spec: ModelSpec | None = None,
    *,
    group: str | None = None,
    estimator: str = "auto",
    item_distribution: str = "normal",
    components: int = 4,
    priors: Priors | None = None,
    seed: int = 0,
    max_steps: int = 1000,
    checkpoints: Checkpoints | None = None,
    devices: Sequence[jax.Device] | None = None,
    on_look: Callable[[Progress], None] | None = None,
) -> FitResult:
    """Estimate abilities of models and parameters of items, with uncertainty.

    Args:
        data: models x items, missing cells allowed.
        spec: family and dims; 2PL with one dim without.
        group: item metadata column; switches on model x group effects and one item distribution
            (and guessing, feasibility) a group.
        estimator: `auto` or `marginal-items`.
        item_distribution: `normal`, or `mixture` (of `components` normals): better held-out
            predictions with few models, for `components` times the work.
        components: normals of a mixture.
        priors: hyperparameters of the priors.
        seed: of what is random (the start, above 512 models).
        max_steps: most steps.
        checkpoints: where to save the state on the way, and whether to resume from there.
        devices: spread the items over these; all local devices without.
        on_look: called with the progress every few steps.

    Returns:
        The fit; `status` says how it ended. Warns (`IrtjaxWarning`) when it did not converge and
        about data that say little.

    Raises:
        InputError: data or settings that cannot be fitted; one line says why.

    Source: DESIGN 4.1 (Gaussian variational EM with Gauss-Hermite expectations).

    >>> from irtjax.data.tables import lsat7
    >>> fit(lsat7()).item_parameters()["item_id"].tolist()
    ['item-1', 'item-2', 'item-3', 'item-4', 'item-5']
    """
    spec = spec or ModelSpec()
    priors = priors or Priors()
    _check_settings(estimator, item_distribution, components, max_steps)
    check_responses(data, spec)
    codes, group_names = (None, [""]) if group is None else data.groups(group)
    require_correct_compiler()
    started, compiled = time.perf_counter(), compile_seconds()
    chosen = MarginalItems(
        has_effects=group is not None,
        n_components=components if item_distribution == "mixture" else 1,
        n_nodes=next(nodes for most, nodes in _NODES if data.n_models < most),
    )
    mesh = items_mesh(devices)
    blocks, layout = make_blocks(data, codes, n_shards=mesh.size)
    blocks = place(blocks, mesh, BLOCKED)
    with jax.set_mesh(mesh):
        state, progress = _run(
            chosen, blocks, spec, priors, seed, data, group, max_steps, checkpoints, on_look
        )
        estimates = chosen.finish(blocks, state)
        jax.block_until_ready(estimates)
    compiled = compile_seconds() - compiled
    parameters = fitted_parameters(estimates, layout)
    dims, dim_warnings = describe_dims(parameters, data.model_ids)
    notes = [*data.provenance.warnings, *data_warnings(data), *dim_warnings]
    assert progress.status is not None
    if progress.status is not Status.converged:
        notes.append(f"{progress.status.name}: {progress.reason}")
    for note in notes:
        warnings.warn(note, IrtjaxWarning, stacklevel=2)
    objective = progress.trace.objective[-1] if progress.trace.objective else float("nan")
    report = {
        "versions": _versions(),
        "inputs": [{"path": path, "sha256": digest} for path, digest in data.provenance.files],
        "choices": dict(data.provenance.choices),
        "seed": seed,
        "family": spec.family,
        "dims": spec.dims,
        "group": group,
        "groups": group_names if group is not None else [],
        "estimator": chosen.name,
        "estimator_reason": _reason(estimator, data),
        "item_distribution": item_distribution,
        "settings": _plain(dataclasses.asdict(chosen)),
        "priors": _plain(dataclasses.asdict(priors)),
        "status": progress.status.name,
        "reason": progress.reason,
        "n_models": data.n_models,
        "n_items": data.n_items,
        "n_responses": data.n_responses,
        "n_steps": progress.n_steps,
        "log_likelihood": objective,
        "log_likelihood_is": chosen.objective_name,
        "dimensions": dims,
        "clustered_se": _clustered_note(
            np.asarray(parameters.ability_se_clustered), len(group_names)
        ),
        "warnings": notes,
        "compile_seconds": compiled,
        "fit_seconds": max(time.perf_counter() - started - compiled, 0.0),
        "trace": dataclasses.asdict(progress.trace),
        "n_devices": mesh.size,
    }
    return FitResult(data, spec, parameters, group, report)


def _run(
    estimator: MarginalItems,
    blocks: Blocks,
    spec: ModelSpec,
    priors: Priors,
    seed: int,
    data: ResponseMatrix,
    group: str | None,
    max_steps: int,
    checkpoints: Checkpoints | None,
    on_look: Callable[[Progress], None] | None,
) -> tuple[Any, Progress]:
    """Start or resume, and drive to the end."""
    state = estimator.init(blocks, spec, priors, jax.random.key(seed))
    progress, last_saved, mark = Progress(), 0, {}
    if checkpoints is not None:
        settings = {
            "settings": _plain(dataclasses.asdict(estimator)),
            "priors": _plain(dataclasses.asdict(priors)),
            "family": spec.family,
            "dims": spec.dims,
            "group": group,
            "seed": seed,
            "blocks": list(blocks.response.shape),
        }
        mark = fingerprint(data, settings)
        if checkpoints.resume:
            state, progress = checkpoints.restore(state, mark)
            last_saved = progress.n_steps

    def look(state: Any, progress: Progress) -> None:
        nonlocal last_saved
        if checkpoints is not None:
            last_saved = checkpoints.save_if_due(state, progress, last_saved, mark)
        if on_look is not None:
            on_look(progress)

    return drive(
        estimator, blocks, state, look=Look(max_steps=max_steps), progress=progress, on_look=look
    )


def _check_settings(
    estimator: str, item_distribution: str, components: int, max_steps: int
) -> None:
    if estimator not in ESTIMATORS:
        raise InputError(
            f"estimator {estimator!r} is not known; use one of {', '.join(ESTIMATORS)}"
        )
    if item_distribution not in ITEM_DISTRIBUTIONS:
        known = ", ".join(ITEM_DISTRIBUTIONS)
        raise InputError(
            f"item distribution {item_distribution!r} is not known; use one of {known}"
        )
    if components < 1:
        raise InputError(f"a mixture needs at least 1 component, not {components}")
    if max_steps < 1:
        raise InputError(f"max_steps must be at least 1, not {max_steps}")


def _reason(estimator: str, data: ResponseMatrix) -> str:
    if estimator != "auto":
        return "asked for"
    return (
        f"auto: with {data.n_items:,} items and {data.n_models:,} models, items are integrated out "
        "and models estimated"
    )


def _clustered_note(clustered: np.ndarray, n_groups: int) -> str:
    if np.all(np.isnan(clustered)):
        return f"empty: needs responses in at least 8 groups, there are {n_groups} (see --group)"
    return "sandwich over groups, factor G / (G - 1)"


def _versions() -> dict[str, str]:
    names = ("irtjax", "jax", "jaxlib", "numpy", "pandas", "orbax-checkpoint")
    versions = {name: importlib.metadata.version(name) for name in names}
    return versions | {"python": platform.python_version(), "backend": jax.default_backend()}


def _plain(settings: dict[str, Any]) -> dict[str, Any]:
    """Tuples as lists, as JSON gives them back."""
    return {k: list(v) if isinstance(v, tuple) else v for k, v in settings.items()}

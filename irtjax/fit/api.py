"""`fit`: from a response matrix to abilities and item parameters."""

import functools
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import jax

from irtjax.compiler_check import require_correct_compiler
from irtjax.data.blocks import make_blocks
from irtjax.data.checks import check_seed
from irtjax.data.responses import ResponseMatrix
from irtjax.errors import InputError, IrtjaxWarning
from irtjax.fit.assemble import fitted_parameters
from irtjax.fit.checkpoints import Checkpoints, fingerprint
from irtjax.fit.clock import compile_seconds
from irtjax.fit.driver import Look, Progress, drive
from irtjax.fit.marginal_items import MarginalItems
from irtjax.fit.report import clustered_note, fit_report, plain_settings
from irtjax.fit.result import FitResult
from irtjax.fit.validation import check_responses
from irtjax.model.priors import Priors
from irtjax.model.spec import ModelSpec
from irtjax.parallel import BLOCKED, items_mesh, place

__all__ = ["ESTIMATORS", "ITEM_DISTRIBUTIONS", "check_settings", "chosen_estimator", "fit"]

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
    ['LSAT7/1', 'LSAT7/2', 'LSAT7/3', 'LSAT7/4', 'LSAT7/5']
    """
    spec = spec or ModelSpec()
    priors = priors or Priors()
    check_settings(estimator, item_distribution, components, max_steps)
    check_seed(seed)
    check_responses(data, spec)
    clusters = group or _cluster_column(data)
    codes, cluster_names = (None, [""]) if clusters is None else data.groups(clusters)
    require_correct_compiler()
    started, compiled = time.perf_counter(), compile_seconds()
    chosen = chosen_estimator(data, group is not None, item_distribution, components)
    settings = {
        "family": spec.family,
        "dims": spec.dims,
        "group": group,
        "seed": seed,
        "settings": plain_settings(chosen),
        "priors": plain_settings(priors),
    }
    mesh = items_mesh(devices)
    blocks, layout = make_blocks(data, codes, n_shards=mesh.size)
    blocks = place(blocks, mesh, BLOCKED)
    with jax.set_mesh(mesh):
        state = chosen.init(blocks, spec, priors, jax.random.key(seed))
        mark = settings | {"blocks": list(blocks.response.shape)}
        saver = _Saver(checkpoints, mark if checkpoints is None else fingerprint(data, mark, codes))
        state, progress = saver.start(state)
        look = Look(max_steps=max_steps)
        on_each_look = functools.partial(saver.look, on_look)
        state, progress = drive(
            chosen, blocks, state, look=look, progress=progress, on_look=on_each_look
        )
        estimates = jax.block_until_ready(chosen.finish(blocks, state))
    compiled = compile_seconds() - compiled
    parameters = fitted_parameters(estimates, layout)
    report = fit_report(
        data,
        parameters,
        progress,
        settings
        | {
            "groups": cluster_names if group is not None else [],
            "estimator": chosen.name,
            "estimator_reason": _reason(estimator, data),
            "item_distribution": item_distribution,
            "log_likelihood_is": chosen.objective_name,
            "clustered_se": clustered_note(parameters, clusters, len(cluster_names)),
            "n_devices": mesh.size,
            "compile_seconds": compiled,
            "fit_seconds": max(time.perf_counter() - started - compiled, 0.0),
        },
    )
    for note in report["warnings"]:
        warnings.warn(note, IrtjaxWarning, stacklevel=2)
    return FitResult(data, spec, parameters, group, report)


def chosen_estimator(
    data: ResponseMatrix, has_effects: bool, item_distribution: str, components: int
) -> MarginalItems:
    """The estimator of `fit`, with its settings."""
    return MarginalItems(
        has_effects=has_effects,
        n_components=components if item_distribution == "mixture" else 1,
        n_nodes=next(nodes for most, nodes in _NODES if data.n_models < most),
    )


class _Saver:
    """Resumes from the checkpoints of a fit, and saves its state when due."""

    def __init__(self, checkpoints: Checkpoints | None, mark: dict[str, Any]) -> None:
        self.checkpoints = checkpoints
        self.mark = mark
        self.last_saved = 0

    def start(self, state: Any) -> tuple[Any, Progress]:
        if self.checkpoints is None or not self.checkpoints.resume:
            return state, Progress()
        state, progress = self.checkpoints.restore(state, self.mark)
        self.last_saved = progress.n_steps
        return state, progress

    def look(
        self, on_look: Callable[[Progress], None] | None, state: Any, progress: Progress
    ) -> None:
        if self.checkpoints is not None:
            self.last_saved = self.checkpoints.save_if_due(
                state, progress, self.last_saved, self.mark
            )
        if on_look is not None:
            on_look(progress)


def check_settings(estimator: str, item_distribution: str, components: int, max_steps: int) -> None:
    """Refuse settings of `fit` that are not known or out of range, before any data are read.

    Raises:
        InputError: one line says which and what is allowed.
    """
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


def _cluster_column(data: ResponseMatrix) -> str | None:
    """Without `group`, items are clustered by their benchmark if every item has one."""
    column = data.item_metadata.get("benchmark")
    return None if column is None or column.isna().any() else "benchmark"

"""`fit`: from a response matrix to abilities and item parameters."""

import functools
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import jax

from irtjax.compiler_check import require_correct_compiler
from irtjax.data.responses import ResponseMatrix
from irtjax.errors import InputError, IrtjaxWarning
from irtjax.fit.checkpoints import Checkpoints
from irtjax.fit.clock import compile_seconds
from irtjax.fit.driver import Look, Progress, drive
from irtjax.fit.items_route import cluster_column
from irtjax.fit.loadings import make_loadings, spec_with
from irtjax.fit.rasch import at_slope_one
from irtjax.fit.report import clustered_note, fit_report, plain_settings
from irtjax.fit.result import FitResult
from irtjax.fit.routes import choose_route
from irtjax.fit.settings import FitSettings
from irtjax.fit.starts import Start, best_of_starts
from irtjax.fit.validation import check_responses, check_types
from irtjax.model.priors import Priors
from irtjax.model.spec import ModelSpec
from irtjax.parallel import items_mesh

__all__ = ["fit"]


def fit(
    data: ResponseMatrix,
    spec: ModelSpec | None = None,
    *,
    group: str | None = None,
    model_group: str | None = None,
    estimator: str = "auto",
    item_distribution: str = "normal",
    components: int = 4,
    ability_distribution: str = "normal",
    quadrature: str = "auto",
    nodes: int | None = None,
    starts: int = 1,
    loadings: Any = None,
    general: bool = False,
    correlated: bool = False,
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
        model_group: model metadata column; each group of models is a population with its own mean
            and standard deviation (of the first they are 0 and 1). `marginal-models` only.
        estimator: `marginal-items` (items are integrated out: few models, many items),
            `marginal-models` (models are integrated out: many models, few items; the textbooks'
            marginal maximum likelihood), `joint-map` (nothing is integrated out: each side at its
            mode given the other; quick, errors conditional; with `Priors.off()` joint maximum
            likelihood), or `auto`, which picks one of the first two by shape and says so.
        item_distribution: `normal`, or for better held-out predictions with few models `mixture`
            (of `components` normals, for as many times the work) or `empirical` (estimated weights
            on a grid of slopes and intercepts, up to 3 dims).
        components: normals of a mixture.
        ability_distribution: `normal`, or `empirical` (weights at the nodes are estimated: the
            empirical histogram). `marginal-models` only.
        quadrature: of `marginal-models`: `fixed` nodes, `adaptive` (Gauss-Hermite nodes around each
            model's own posterior, for models with hundreds of responses), `variational` (normal
            posteriors, in any number of dims), or `auto`.
        nodes: quadrature nodes a dim (of an empirical item distribution: nodes of each slope); by
            estimator and shape without.
        starts: fits from this many starts, of which the best is kept; the report has how far
            they agree. `marginal-models` only.
        loadings: which items may load on which dims (a confirmatory model): an item column (a dim
            for each benchmark, say), a CSV file or data frame with `item_id` and a column of 0 and
            1 a dim, or an items x dims array. `spec.dims` is then the mask's.
        general: with loadings, a general factor before them on which every item loads (bifactor).
        correlated: with loadings, dims may correlate in `marginal-models`; in `marginal-items`
            abilities are estimated one by one, and correlate as they do.
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

    Source: Bock & Aitkin (1981) for `marginal-models`; Gaussian variational EM with Gauss-Hermite
    expectations for `marginal-items`.

    >>> from irtjax.data.tables import lsat7
    >>> fit(lsat7()).item_parameters()["item_id"].tolist()
    ['LSAT7/1', 'LSAT7/2', 'LSAT7/3', 'LSAT7/4', 'LSAT7/5']
    """
    spec, priors = spec or ModelSpec(), priors or Priors()
    check_types(data, spec)
    mask = None if loadings is None else make_loadings(data, loadings, has_general=general)
    settings = FitSettings(
        group,
        model_group,
        estimator,
        item_distribution,
        components,
        ability_distribution,
        quadrature,
        nodes,
        starts,
        seed,
        max_steps,
        mask,
        correlated,
    )
    if mask is not None:
        spec = spec_with(spec, mask)
    elif general:
        raise InputError("a general factor needs loadings; give the column or file of the others")
    check_responses(data, spec, is_confirmatory=mask is not None)
    route, reason = choose_route(data, spec, priors, settings)
    clusters = settings.group or cluster_column(data)
    cluster_names = [""] if clusters is None else data.groups(clusters)[1]
    if mask is not None:
        clusters, cluster_names = "loadings", [""] * len(mask.patterns()[1])
    require_correct_compiler()
    started, compiled = time.perf_counter(), compile_seconds()
    chosen = route.estimator
    described = {
        "family": spec.family,
        "dims": spec.dims,
        "group": settings.group,
        "model_group": settings.model_group,
        "seed": settings.seed,
        "settings": plain_settings(chosen),
        "priors": plain_settings(route.priors),
    }
    if mask is not None:
        described["loadings"] = mask.digest()
    mesh = items_mesh(devices)
    blocks = route.lay_out(mesh)
    with jax.set_mesh(mesh):
        state = route.init(blocks, jax.random.key(settings.seed))
        mark = described | {"blocks": list(blocks.response.shape)}
        saver = _Saver(checkpoints, mark if checkpoints is None else route.fingerprint(mark))
        state, progress = saver.start(state)
        look = Look(max_steps=settings.max_steps)
        on_each_look = functools.partial(saver.look, on_look)
        state, progress = drive(
            chosen, blocks, state, look=look, progress=progress, on_look=on_each_look
        )
        estimates = jax.block_until_ready(chosen.finish(blocks, state))
        first = Start(progress, route.collect(blocks, estimates), route.notes(estimates))
        best, agreement = best_of_starts(route, blocks, first, settings, look)
    compiled = compile_seconds() - compiled
    parameters = best.parameters
    if spec.family == "rasch":
        parameters = at_slope_one(parameters)
    report = fit_report(
        data,
        parameters,
        best.progress,
        described
        | {
            "groups": cluster_names if settings.group is not None else [],
            "estimator": chosen.name,
            "estimator_reason": reason,
            "asked": settings.asked(),
            "integrated": route.integrated,
            "item_distribution": settings.item_distribution,
            "ability_distribution": settings.ability_distribution,
            "log_likelihood_is": chosen.objective_name,
            "clustered_se": clustered_note(
                parameters, clusters, len(cluster_names), route.integrated
            ),
            "n_devices": mesh.size,
            "compile_seconds": compiled,
            "fit_seconds": max(time.perf_counter() - started - compiled, 0.0),
        },
        best.notes | agreement,
    )
    for note in report["warnings"]:
        warnings.warn(note, IrtjaxWarning, stacklevel=2)
    return FitResult(data, spec, parameters, settings.group, report)


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

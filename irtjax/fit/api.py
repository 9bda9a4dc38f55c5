"""`fit`: from a response matrix to abilities and item parameters."""

import functools
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax.sharding import Mesh

from irtjax.compiler_check import require_correct_compiler
from irtjax.data.blocks import Blocks
from irtjax.data.responses import ResponseMatrix
from irtjax.errors import IrtjaxWarning
from irtjax.fit.anchor_drift import anchor_drift, described_drift
from irtjax.fit.arguments import check_run
from irtjax.fit.checkpoints import Checkpoints, Saver
from irtjax.fit.clock import compile_seconds, timed
from irtjax.fit.driver import Look, Progress
from irtjax.fit.rasch import at_slope_one
from irtjax.fit.report import fit_report
from irtjax.fit.request import Request, make_request
from irtjax.fit.result import FitResult, FittedParameters
from irtjax.fit.routes import Route
from irtjax.fit.settings import default_family
from irtjax.fit.starts import Start, best_of_starts, run_start
from irtjax.model.priors import Priors
from irtjax.model.spec import ModelSpec
from irtjax.parallel import items_mesh

__all__ = ["fit", "run_request"]


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
    network: Any = None,
    item_features: Any = None,
    model_features: Any = None,
    anchors: Any = None,
    seed: int = 0,
    max_steps: int = 1000,
    checkpoints: Checkpoints | None = None,
    devices: Sequence[jax.Device] | None = None,
    on_look: Callable[[Progress], None] | None = None,
) -> FitResult:
    """Estimate abilities of models and parameters of items, with uncertainty.

    Args:
        data: models x items, missing cells allowed.
        spec: family and dims; without, 2PL with one dim (1PL for `deep-irt`).
        group: item metadata column; switches on model x group effects and one item distribution
            (and guessing, feasibility) a group.
        model_group: model metadata column; each group of models is a population with its own mean
            and standard deviation (of the first they are 0 and 1). `marginal-models` only.
        estimator: `marginal-items` (items are integrated out: few models, many items),
            `marginal-models` (models are integrated out: many models, few items; the textbooks'
            marginal maximum likelihood), `joint-map` (nothing is integrated out: each side at its
            mode given the other; quick, errors conditional; with `Priors.off()` joint maximum
            likelihood), `psn` (pseudo-Siamese networks put out the parameters of both sides;
            trained by minibatches, stopped by responses kept for validation), `deep-irt` (the same
            for the 1PL, deeper), or `auto`, which picks one of the first two by shape and says so.
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
        correlated: with loadings, dims may correlate. `marginal-models` only: in `marginal-items`
            abilities are estimated one by one, and correlate as they do.
        priors: hyperparameters of the priors; one that the fit has no use for is refused.
        network: `irtjax.Network`: towers and training of `psn` and `deep-irt`.
        item_features: what `psn` and `deep-irt` learn of items beside their ids, so that an item
            never answered gets parameters: numeric item columns (a name or several), a data frame
            or a CSV, Parquet or JSON Lines file with `item_id` and numeric columns (embeddings of
            the text, say), or an array or `.npy` file with a row an item.
        model_features: the same for models, with `model_id`.
        anchors: another fit, or its folder: items that it knows (by id) keep its parameters, and so
            its scale; new items, and the mean and covariance of the models, are estimated on it.
            The family and dims must be its own. `marginal-items` and `marginal-models` only.
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
    check_run(checkpoints, on_look)
    request = make_request(
        data,
        ModelSpec(default_family(estimator)) if spec is None else spec,
        group=group,
        model_group=model_group,
        estimator=estimator,
        item_distribution=item_distribution,
        components=components,
        ability_distribution=ability_distribution,
        quadrature=quadrature,
        nodes=nodes,
        starts=starts,
        loadings=loadings,
        general=general,
        correlated=correlated,
        priors=priors,
        network=network,
        item_features=item_features,
        model_features=model_features,
        anchors=anchors,
        seed=seed,
        max_steps=max_steps,
    )
    return run_request(request, checkpoints=checkpoints, devices=devices, on_look=on_look)


def run_request(
    request: Request,
    *,
    checkpoints: Checkpoints | None = None,
    devices: Sequence[jax.Device] | None = None,
    on_look: Callable[[Progress], None] | None = None,
    start: Callable[[Route, Blocks, jax.Array], Any] | None = None,
) -> FitResult:
    """Run a fit that was asked for.

    Args:
        request: of `make_request`.
        checkpoints: as of `fit`, like the rest.
        devices: likewise.
        on_look: likewise.
        start: makes the first state; the route's own without.
    """
    identity, mesh = request.identity(), items_mesh(devices)
    require_correct_compiler()
    with timed() as seconds:
        best, agreement = _fitted(request, mesh, checkpoints, on_look, start)
    data, parameters = request.data, best.parameters
    if request.spec.family == "rasch":
        parameters = at_slope_one(parameters)
    told = identity | request.described(parameters) | {"n_devices": mesh.size} | seconds
    notes = best.notes | agreement
    if request.settings.anchors is not None:
        told["anchors"], notes["warnings"] = _with_drift(request, parameters, told, notes)
    report = fit_report(data, parameters, best.progress, told, notes)
    for note in report["warnings"]:
        warnings.warn(note, IrtjaxWarning, stacklevel=3)
    return FitResult(data, request.spec, parameters, request.settings.group, report)


def _with_drift(
    request: Request, parameters: FittedParameters, told: dict[str, Any], notes: dict[str, Any]
) -> tuple[dict[str, Any], list[str]]:
    """What a report says of anchors, and the warnings, once their drift is known."""
    anchors, data = request.settings.anchors, request.data
    assert anchors is not None
    drift = anchor_drift(data, request.spec, parameters, anchors, request.settings.group)
    found, warned = described_drift(drift, data.item_ids[anchors.is_anchor])
    return told["anchors"] | found, [*notes.get("warnings", []), *warned]


def _fitted(
    request: Request,
    mesh: Mesh,
    checkpoints: Checkpoints | None,
    on_look: Callable[[Progress], None] | None,
    start: Callable[[Route, Blocks, jax.Array], Any] | None,
) -> tuple[Start, dict[str, Any]]:
    """The best of the starts (the first may go on from a checkpoint), and how far they agree."""
    settings, route = request.settings, request.route
    look = Look(max_steps=settings.max_steps)
    mark = request.identity()
    blocks = route.lay_out(mesh)
    with jax.set_mesh(mesh):
        key = jax.random.key(settings.seed)
        compiled = compile_seconds()
        state = route.init(blocks, key) if start is None else start(route, blocks, key)
        is_new = compile_seconds() > compiled
        mark |= {"blocks": list(blocks.response.shape)}
        saver = Saver(checkpoints, {} if checkpoints is None else route.fingerprint(mark))
        state, progress = saver.start(state)
        on_each_look = functools.partial(saver.look, on_look)
        first = run_start(route, blocks, state, look, progress, on_each_look, is_new=is_new)
        return best_of_starts(route, blocks, first, settings, look)

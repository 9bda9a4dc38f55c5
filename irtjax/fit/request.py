"""A fit before it runs: what was asked for, checked against the data, and the route it takes."""

import dataclasses
from typing import Any

import numpy as np

from irtjax.data.responses import ResponseMatrix
from irtjax.errors import InputError
from irtjax.fit.anchors import anchor_run, make_anchors, warn_of_seen_models
from irtjax.fit.arguments import check_components, checked_priors, checked_settings
from irtjax.fit.features import Features, Side, make_features
from irtjax.fit.item_support import check_items
from irtjax.fit.items_route import cluster_column
from irtjax.fit.loadings import make_loadings, spec_with
from irtjax.fit.report import clustered_note, described_groups, plain_settings
from irtjax.fit.result import FittedParameters, ability_correlations
from irtjax.fit.routes import Route, choose_route
from irtjax.fit.settings import FitSettings
from irtjax.fit.used_priors import check_priors, used_priors
from irtjax.fit.validation import check_responses, check_types
from irtjax.model.priors import Priors, beta_text
from irtjax.model.spec import ModelSpec

__all__ = ["Request", "make_request"]


@dataclasses.dataclass(frozen=True, eq=False)
class Request:
    """A fit that can be run.

    Attributes:
        data: the responses.
        spec: family and dims; with loadings, as many dims as these have.
        settings: everything else that was asked for.
        route: how it is fitted.
        reason: in words, why so.
    """

    data: ResponseMatrix
    spec: ModelSpec
    settings: FitSettings
    route: Route
    reason: str

    def identity(self) -> dict[str, Any]:
        """What a report has, and a checkpoint must agree with, of what was asked for."""
        settings = self.settings
        identity = {
            "family": self.spec.family,
            "dims": self.spec.dims,
            "estimator": self.route.estimator.name,
            "group": settings.group,
            "model_group": settings.model_group,
            "seed": settings.seed,
            "settings": plain_settings(self.route.estimator),
            "priors": self._priors(),
        }
        if settings.anchors is not None:
            identity["anchors"] = settings.anchors.described(self.data.n_items)
        if settings.loadings is not None:
            identity["loadings"] = settings.loadings.digest()
        return identity

    def described(self, parameters: FittedParameters) -> dict[str, Any]:
        """What a report has on top of that of what was asked for and what was chosen."""
        settings, route = self.settings, self.route
        clusters, names = self._clusters()
        return {
            "groups": names if settings.group is not None else [],
            "estimator_reason": self.reason,
            "asked": self._asked(),
            "integrated": route.integrated,
            "item_distribution": settings.item_distribution,
            "ability_distribution": settings.ability_distribution,
            "log_likelihood_is": route.estimator.objective_name,
            "clustered_se": clustered_note(
                parameters, clusters, len(names), route.integrated, route.estimator.name
            ),
            **self._of_models(parameters),
        }

    def _priors(self) -> dict[str, Any]:
        """The priors that have an effect."""
        used = used_priors(self.route.integrated, self.spec, self.settings)
        plain = plain_settings(self.route.priors)
        for name in ("guessing", "infeasibility"):
            plain[name] = beta_text(getattr(self.route.priors, name))
        return {name: plain[name] for name in plain if name in used}

    def _asked(self) -> dict[str, Any]:
        """What was asked for, without what only a mixture has a use for."""
        asked = self.settings.asked()
        is_mixture = self.settings.item_distribution == "mixture"
        return {name: asked[name] for name in asked if is_mixture or name != "components"}

    def _of_models(self, parameters: FittedParameters) -> dict[str, Any]:
        """The distributions of ability: of each group of models, and how its dims correlate."""
        found: dict[str, Any] = {}
        if self.settings.model_group is not None:
            codes, names = self.data.populations(self.settings.model_group)
            found["model_groups"] = described_groups(parameters, codes, names)
        anchors = self.settings.anchors
        if anchors is not None:
            codes = np.zeros(self.data.n_models, np.int32)
            found["new_models"] = described_groups(parameters, codes, [""])[0]
            found["scale_correlations"] = anchors.correlations.tolist()
        if self.settings.loadings is not None and self.spec.dims > 1:
            found["ability_correlations"] = ability_correlations(parameters).tolist()
        return found

    def _clusters(self) -> tuple[str | None, list[str]]:
        """What the items are clustered by for the errors, and the clusters' names."""
        if self.settings.loadings is not None:
            return "loadings", [""] * len(self.settings.loadings.patterns()[1])
        clusters = self.settings.group or cluster_column(self.data)
        return clusters, [""] if clusters is None else self.data.groups(clusters)[1]


def make_request(
    data: ResponseMatrix,
    spec: ModelSpec,
    *,
    priors: Priors | None = None,
    loadings: Any = None,
    general: bool = False,
    correlated: bool = False,
    item_features: Any = None,
    model_features: Any = None,
    anchors: Any = None,
    **settings: Any,
) -> Request:
    """Check the arguments of `irtjax.fit` against the data, and choose the route.

    Args:
        data: the responses.
        spec: family and dims.
        priors: hyperparameters of the priors.
        loadings: as `make_loadings` takes them; None for an exploratory model.
        general: with loadings, put a general factor before them.
        correlated: with loadings, dims may correlate.
        item_features: as `make_features` takes them; None without.
        model_features: as `make_features` takes them; None without.
        anchors: as `make_anchors` takes them; None without.
        settings: all that `FitSettings` has beside these.

    Raises:
        InputError: data or settings that cannot be fitted; one line says why.
    """
    check_types(data, spec)
    priors = checked_priors(priors)
    settings = checked_settings(settings | {"general": general, "correlated": correlated})
    del settings["general"], settings["correlated"]
    # Before anything is read: of anchors it matters only whether there are any.
    FitSettings(**settings, anchors=anchors)
    run = None if anchors is None else anchor_run(anchors)
    mask = None
    if loadings is not None:
        mask = make_loadings(data, loadings, has_general=general)
    chosen = FitSettings(
        **settings,
        item_features=_features(data, "item", item_features),
        model_features=_features(data, "model", model_features),
        loadings=mask,
        is_correlated=correlated,
        anchors=None if run is None else make_anchors(data, spec, run, settings["group"]),
    )
    check_components(chosen)
    if mask is not None:
        spec = spec_with(spec, mask)
    elif general:
        raise InputError("a general factor needs loadings; give the column or file of the others")
    if run is not None and data.n_models == 1:
        raise InputError(
            "one model has no mean and sd to be estimated beside the anchors; place it with irtjax "
            "score, or fold it in with irtjax update"
        )
    check_responses(data, spec, is_confirmatory=mask is not None)
    route, reason = choose_route(data, spec, priors, chosen)
    check_items(int(np.count_nonzero(data.totals("items")[0])), spec, chosen)
    if correlated:
        _check_can_correlate(spec, route, reason)
    check_priors(priors, route.integrated, spec, chosen, route.estimator.name)
    if run is not None:
        warn_of_seen_models(data, run.fit)
    return Request(data, spec, chosen, route, reason)


def _check_can_correlate(spec: ModelSpec, route: Route, reason: str) -> None:
    if spec.dims < 2:
        raise InputError("correlated needs loadings on at least 2 dims; drop it")
    if route.integrated == "items":
        raise InputError(
            f"correlated has no use in {route.estimator.name} ({reason}): nothing keeps its "
            "abilities uncorrelated, they correlate as they do; drop it, or use estimator "
            "marginal-models"
        )


def _features(data: ResponseMatrix, side: Side, given: Any) -> Features | None:
    return None if given is None else make_features(data, side, given)

"""A fit before it runs: what was asked for, checked against the data, and the route it takes."""

import dataclasses
from typing import Any

import numpy as np

from irtjax.data.responses import ResponseMatrix
from irtjax.errors import InputError
from irtjax.fit.item_support import check_items
from irtjax.fit.items_route import cluster_column
from irtjax.fit.loadings import make_loadings, spec_with
from irtjax.fit.report import clustered_note, plain_settings
from irtjax.fit.result import FittedParameters
from irtjax.fit.routes import Route, choose_route
from irtjax.fit.settings import FitSettings
from irtjax.fit.validation import check_responses, check_types
from irtjax.model.priors import Priors
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
            "group": settings.group,
            "model_group": settings.model_group,
            "seed": settings.seed,
            "settings": plain_settings(self.route.estimator),
            "priors": plain_settings(self.route.priors),
        }
        if settings.loadings is not None:
            identity["loadings"] = settings.loadings.digest()
        return identity

    def described(self, parameters: FittedParameters) -> dict[str, Any]:
        """What a report has on top of that of what was asked for and what was chosen."""
        settings, route = self.settings, self.route
        clusters, names = self._clusters()
        return {
            "groups": names if settings.group is not None else [],
            "estimator": route.estimator.name,
            "estimator_reason": self.reason,
            "asked": settings.asked(),
            "integrated": route.integrated,
            "item_distribution": settings.item_distribution,
            "ability_distribution": settings.ability_distribution,
            "log_likelihood_is": route.estimator.objective_name,
            "clustered_se": clustered_note(parameters, clusters, len(names), route.integrated),
        }

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
    priors: Priors,
    loadings: Any,
    general: bool,
    correlated: bool,
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
        settings: all that `FitSettings` has beside the loadings.

    Raises:
        InputError: data or settings that cannot be fitted; one line says why.
    """
    check_types(data, spec)
    mask = None
    if loadings is not None:
        mask = make_loadings(data, loadings, has_general=general)
    chosen = FitSettings(**settings, loadings=mask, is_correlated=correlated)
    if mask is not None:
        spec = spec_with(spec, mask)
    elif general:
        raise InputError("a general factor needs loadings; give the column or file of the others")
    check_responses(data, spec, is_confirmatory=mask is not None)
    found = choose_route(data, spec, priors, chosen)
    check_items(int(np.count_nonzero(data.totals("items")[0])), spec, chosen)
    return Request(data, spec, chosen, *found)

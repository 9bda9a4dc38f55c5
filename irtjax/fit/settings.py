"""What a user may choose of a fit, checked before any data are read."""

import dataclasses
from typing import Any

from irtjax.data.checks import check_seed
from irtjax.errors import InputError
from irtjax.fit.anchors import Anchors
from irtjax.fit.features import Features
from irtjax.fit.loadings import Loadings
from irtjax.fit.registry import registered_estimators

__all__ = [
    "ABILITY_DISTRIBUTIONS",
    "ESTIMATORS",
    "ITEM_DISTRIBUTIONS",
    "QUADRATURES",
    "FitSettings",
    "default_family",
]

ESTIMATORS = ("auto", "marginal-items", "marginal-models", "joint-map")
ITEM_DISTRIBUTIONS = ("normal", "empirical", "mixture")
ABILITY_DISTRIBUTIONS = ("normal", "empirical")
QUADRATURES = ("auto", "fixed", "adaptive", "variational")


@dataclasses.dataclass(frozen=True)
class FitSettings:
    """Everything of `irtjax.fit` beside the data, the spec and the priors; see there.

    Raises:
        InputError: a setting that is not known, out of range, or that excludes another.
    """

    group: str | None = None
    model_group: str | None = None
    estimator: str = "auto"
    item_distribution: str = "normal"
    components: int = 4
    ability_distribution: str = "normal"
    quadrature: str = "auto"
    nodes: int | None = None
    starts: int = 1
    seed: int = 0
    max_steps: int = 1000
    loadings: Loadings | None = None
    is_correlated: bool = False
    network: Any = None
    item_features: Features | None = None
    model_features: Features | None = None
    anchors: Anchors | None = None

    def __post_init__(self) -> None:
        _check_known("estimator", self.estimator, ESTIMATORS + registered_estimators())
        _check_known("item distribution", self.item_distribution, ITEM_DISTRIBUTIONS)
        _check_known("ability distribution", self.ability_distribution, ABILITY_DISTRIBUTIONS)
        _check_known("quadrature", self.quadrature, QUADRATURES)
        if self.components < 1:
            raise InputError(f"a mixture needs at least 1 component, not {self.components}")
        if self.max_steps < 1:
            raise InputError(f"max_steps must be at least 1, not {self.max_steps}")
        if self.starts < 1:
            raise InputError(f"starts must be at least 1, not {self.starts}")
        if self.nodes is not None and not 3 <= self.nodes <= 201:
            raise InputError(f"nodes must be 3 to 201 a dim, not {self.nodes}")
        check_seed(self.seed)
        is_own = self.quadrature in ("adaptive", "variational")
        if is_own and self.ability_distribution != "normal":
            raise InputError(f"quadrature {self.quadrature} needs the normal ability distribution")
        self._check_loadings()
        self._check_anchors()
        for_items, for_models = self.needs_items(), self.needs_models()
        if for_items and for_models:
            raise InputError(
                f"{for_items} integrates the items out and {for_models} the models; choose one"
            )
        if self.nodes is not None and self.estimator in ("joint-map", *registered_estimators()):
            raise InputError(f"{self.estimator} integrates nothing out and so has no nodes")
        for what, given in (
            ("network settings", self.network),
            ("item features", self.item_features),
            ("model features", self.model_features),
        ):
            if given is not None and self.estimator not in registered_estimators():
                raise InputError(
                    f"{what} belong to estimator {' or '.join(registered_estimators())}, not "
                    f"{self.estimator}"
                )
        for needed, owner in ((for_items, "marginal-items"), (for_models, "marginal-models")):
            if needed and self.estimator not in ("auto", owner):
                raise InputError(f"{needed} does not go with estimator {self.estimator}")

    def arguments(self) -> dict[str, Any]:
        """As arguments of `irtjax.fit`, but for the loadings."""
        own = (
            "loadings",
            "is_correlated",
            "network",
            "item_features",
            "model_features",
            "anchors",
        )
        names = (field.name for field in dataclasses.fields(self))
        return {name: getattr(self, name) for name in names if name not in own}

    def asked(self) -> dict[str, Any]:
        """Arguments of `irtjax.fit` that its report has under no name of their own."""
        return {
            "components": self.components,
            "quadrature": self.quadrature,
            "nodes": self.nodes,
            "starts": self.starts,
            "max_steps": self.max_steps,
            "general": self.loadings is not None and self.loadings.has_general,
            "correlated": self.is_correlated,
        }

    def _check_loadings(self) -> None:
        if self.loadings is None:
            if self.is_correlated:
                raise InputError("correlated dims need loadings: without, rotation is free")
            return
        if self.is_correlated and self.loadings.has_general:
            raise InputError(
                "a general factor is uncorrelated with the others; drop it, or correlated"
            )
        for name, is_used in (
            (f"group {self.group!r}", self.group is not None),
            (f"item distribution {self.item_distribution}", self.item_distribution != "normal"),
            (
                f"estimator {self.estimator}",
                self.estimator in ("joint-map", *registered_estimators()),
            ),
        ):
            if is_used:
                raise InputError(f"{name} does not go with loadings; drop one of them")

    def _check_anchors(self) -> None:
        if self.anchors is None:
            return
        for name, is_used in (
            ("loadings", self.loadings is not None),
            ("an empirical item distribution", self.item_distribution == "empirical"),
            ("an empirical ability distribution", self.ability_distribution == "empirical"),
            (
                f"estimator {self.estimator}",
                self.estimator in ("joint-map", *registered_estimators()),
            ),
        ):
            if is_used:
                raise InputError(
                    f"anchors do not go with {name}; drop it, or use marginal-items or "
                    "marginal-models"
                )

    def needs_items(self) -> str:
        """The setting that only `marginal-items` has, empty without."""
        if self.group is not None:
            return f"group {self.group!r}"
        return "" if self.item_distribution == "normal" else "an item distribution"

    def needs_models(self) -> str:
        """The setting that only `marginal-models` has, empty without."""
        if self.model_group is not None:
            return f"model_group {self.model_group!r}"
        if self.ability_distribution != "normal":
            return "an ability distribution"
        if self.quadrature != "auto":
            return f"quadrature {self.quadrature}"
        return "" if self.starts == 1 else f"starts={self.starts}"


def default_family(estimator: str) -> str:
    """The family of a fit that asks for none."""
    return "1pl" if estimator == "deep-irt" else "2pl"


def _check_known(what: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise InputError(f"{what} {value!r} is not known; use one of {', '.join(known)}")

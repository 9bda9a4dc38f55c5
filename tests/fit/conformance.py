"""Every estimator with its families on small data: the members of the conformance suite."""

import dataclasses
import functools
from typing import Any

import numpy as np

from irtjax.data.responses import ResponseMatrix
from irtjax.data.simulate import simulate
from irtjax.model.spec import ModelSpec
from irtjax.nets.settings import Network
from tests.fit.fitting import KINDS, quiet_fit, simulated

# Models outnumber items where the models are integrated out: blocks of 256 models.
TALL_MODELS, TALL_ITEMS = 240, 12

# Enough steps for 1,700 responses.
NETWORK = Network(embedding=16, hidden=16, batch_size=64, learning_rate=0.01)


@dataclasses.dataclass(frozen=True)
class Member:
    """One estimator with one family: what is asked of `fit`."""

    estimator: str
    spec: ModelSpec
    settings: tuple[tuple[str, Any], ...] = ()

    @property
    def data(self) -> ResponseMatrix:
        """A tenth of the cells is missing."""
        return _tall() if self.estimator == "marginal-models" else simulated("2pl-2d").data

    def fit(self, data: ResponseMatrix | None = None, **more: Any) -> Any:
        """A fit of the member's data, or of others."""
        settings = dict(self.settings) | {"estimator": self.estimator} | more
        return quiet_fit(self.data if data is None else data, self.spec, **settings)


def _members() -> dict[str, Member]:
    found = {}
    for kind, (spec, settings) in KINDS.items():
        found[f"items-{kind}"] = Member("marginal-items", spec, tuple(settings.items()))
    for family in ("rasch", "1pl", "2pl", "3pl", "4pl"):
        found[f"models-{family}"] = Member("marginal-models", ModelSpec(family))
    found["models-2pl-2d"] = Member("marginal-models", ModelSpec("2pl", 2))
    empirical = (("ability_distribution", "empirical"), ("nodes", 21))
    found["models-empirical"] = Member("marginal-models", ModelSpec("2pl"), empirical)
    for family in ("1pl", "2pl", "3pl", "4pl"):
        found[f"joint-{family}"] = Member("joint-map", ModelSpec(family))
    found["joint-2pl-2d"] = Member("joint-map", ModelSpec("2pl", 2))
    network = (("network", NETWORK),)
    for family in ("1pl", "2pl", "3pl", "4pl"):
        found[f"psn-{family}"] = Member("psn", ModelSpec(family), network)
    found["psn-2pl-2d"] = Member("psn", ModelSpec("2pl", 2), network)
    found["deep-irt"] = Member("deep-irt", ModelSpec("1pl"), network)
    return found


MEMBERS = _members()
# One family of each way of computing; the others share their programs' structure.
CORE = ("items-2pl-2d", "items-mixture", "models-2pl", "models-empirical", "joint-2pl")
CORE += ("models-2pl-2d", "joint-2pl-2d", "psn-2pl")


@functools.cache
def _tall() -> ResponseMatrix:
    drawn = simulate(
        ModelSpec("2pl"), n_models=TALL_MODELS, n_items=TALL_ITEMS, n_benchmarks=2, missing=0.1
    )
    return drawn.data


@functools.cache
def fitted_member(name: str) -> Any:
    """The fit of a member's own data."""
    return MEMBERS[name].fit()


def everything(fit: Any) -> np.ndarray:
    """Predicted probabilities of all cells, models x items."""
    n_models, n_items = fit.data.n_models, fit.data.n_items
    models, items = np.divmod(np.arange(n_models * n_items), n_items)
    return fit.predict_cells(models, items).reshape(n_models, n_items)

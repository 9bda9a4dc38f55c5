"""How often 95% intervals hold the truth, on data simulated from the fitted model.

    python -m benchmarks coverage

Each setting draws a truth and responses again and again, fits them, and counts the intervals
`estimate +- 1.96 standard errors` that hold the truth (clustered errors: t quantiles at their
effective degrees of freedom). The truth is put into the frame of the fit. `marginal-items` gives
abilities mean 0 and sd 1 over the models: so are the true ones, and the true items move along.
`marginal-models` has the scale of the population, N(0, 1), from which true abilities are drawn:
they stay as they are. Slopes come from the family of the fitted distribution or prior: normal(1,
.4) where items are integrated out, lognormal(0, .5) and guessing Beta(5, 17) where they are
estimated; intercepts are normal(0, 1). Difficulties count where the true slope is above .5: an
interval of a ratio means nothing where its denominator may be 0.

Coverage is the mean over replications; its Monte-Carlo error is their spread over the root of their
number, below .01.
"""

import dataclasses
import json
import statistics
import time
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from rich.table import Table
from scipy.special import expit
from scipy.stats import t as student

from irtjax.data.responses import ResponseMatrix
from irtjax.errors import IrtjaxWarning
from irtjax.fit.api import fit
from irtjax.fit.result import FitResult
from irtjax.model.spec import ModelSpec

__all__ = ["SETTINGS", "Setting", "run", "table"]

NORMAL_QUANTILE = 1.959964
_SMALLEST_SLOPE = 0.5
_EFFECT_SD = 0.3


@dataclasses.dataclass(frozen=True)
class Setting:
    """One estimator at one size; with clusters, benchmarks have effects that are not fitted."""

    estimator: str
    n_models: int
    n_items: int
    replications: int
    family: str = "2pl"
    n_clusters: int = 0

    @property
    def name(self) -> str:
        """How the results call it."""
        clusters = f", {self.n_clusters} clusters" if self.n_clusters else ""
        return f"{self.estimator} {self.family} {self.n_models:,} x {self.n_items:,}{clusters}"


SETTINGS = (
    Setting("marginal-items", 12, 2000, 200),
    Setting("marginal-items", 100, 400, 100),
    Setting("marginal-items", 1000, 1500, 30),
    Setting("marginal-items", 100, 120, 100),
    Setting("marginal-items", 100, 30, 200),
    Setting("marginal-models", 100, 20, 400),
    Setting("marginal-models", 1000, 30, 200),
    Setting("marginal-models", 1000, 30, 300, family="3pl"),
    Setting("marginal-items", 100, 640, 60, n_clusters=16),
    Setting("marginal-items", 1000, 640, 20, n_clusters=16),
)


@dataclasses.dataclass(frozen=True)
class Truth:
    """Abilities of models and parameters of items, in the frame of the fit."""

    ability: np.ndarray
    slope: np.ndarray
    intercept: np.ndarray
    guessing: np.ndarray


def drawn(setting: Setting, seed: int) -> tuple[ResponseMatrix, Truth]:
    """Responses and the truth behind them, in the frame of the fit."""
    rng = np.random.default_rng((seed, setting.n_models, setting.n_items))
    n_models, n_items = setting.n_models, setting.n_items
    is_integrated = setting.estimator == "marginal-items"
    ability = rng.standard_normal(n_models)
    slope = rng.normal(1, 0.4, n_items) if is_integrated else rng.lognormal(0, 0.5, n_items)
    intercept = rng.normal(0, 1, n_items)
    guessing = rng.beta(5, 17, n_items) if setting.family == "3pl" else np.zeros(n_items)
    logit = ability[:, None] * slope + intercept
    cluster = np.arange(n_items) * max(setting.n_clusters, 1) // n_items
    if setting.n_clusters:
        logit += rng.normal(0, _EFFECT_SD, (n_models, setting.n_clusters))[:, cluster]
    p = guessing + (1 - guessing) * expit(logit)
    response = (rng.random(p.shape) < p).astype(np.int8)
    metadata = pd.DataFrame({"benchmark": cluster.astype(str)})
    data = ResponseMatrix.from_dense(response, item_metadata=metadata)
    if is_integrated:
        mean, sd = ability.mean(), ability.std()
        ability, intercept, slope = (ability - mean) / sd, intercept + slope * mean, slope * sd
    return data, Truth(ability, slope, intercept, guessing)


def covered(result: FitResult, truth: Truth) -> dict[str, np.ndarray]:
    """Whether each interval of each kind of parameter holds the truth."""
    items, models = result.item_parameters(), result.abilities()
    found = {}

    def note(name: str, column: pd.Series, error: pd.Series, true: np.ndarray, width: Any) -> None:
        away = np.abs(column.to_numpy(float) - true)
        found[name] = away < width * error.to_numpy(float)

    ability, z = models["dim1_ability"], NORMAL_QUANTILE
    note("ability", ability, models["dim1_ability_se"], truth.ability, z)
    if not models["dim1_ability_se_clustered"].isna().any():
        freedom = result.parameters.clustered_degrees_of_freedom[:, 0]
        width = student.ppf(0.975, freedom)
        error = models["dim1_ability_se_clustered"]
        note("ability clustered", ability, error, truth.ability, width)
    for name, true in (
        ("slope", truth.slope),
        ("intercept", truth.intercept),
        ("difficulty", -truth.intercept / truth.slope),
        ("guessing", truth.guessing),
    ):
        if name == "guessing" and not result.spec.has_guessing:
            continue
        column = "dim1_slope" if name == "slope" else name
        note(name, items[column], items[f"{column}_se"], true, z)
    found["difficulty"] = found["difficulty"][truth.slope > _SMALLEST_SLOPE]
    return found


def coverage(setting: Setting) -> dict[str, Any]:
    """Coverage of each kind of parameter with its Monte-Carlo error, statuses and seconds."""
    start = time.process_time()
    shares: dict[str, list[float]] = {}
    statuses: dict[str, int] = {}
    for seed in range(setting.replications):
        data, truth = drawn(setting, seed)
        result = fit(data, ModelSpec(setting.family), estimator=setting.estimator)
        statuses[result.status] = statuses.get(result.status, 0) + 1
        for name, holds in covered(result, truth).items():
            shares.setdefault(name, []).append(float(np.mean(holds)))
    root = setting.replications**0.5
    return {
        "coverage": {name: statistics.fmean(each) for name, each in shares.items()},
        "monte_carlo_error": {
            name: statistics.stdev(each) / root if len(each) > 1 else float("nan")
            for name, each in shares.items()
        },
        "replications": setting.replications,
        "statuses": statuses,
        "cpu_seconds": time.process_time() - start,
    }


def run(n_runs: int = 0) -> dict[str, Any]:
    """Coverage of every setting; `n_runs` replications of each instead of its own number."""
    warnings.simplefilter("ignore", IrtjaxWarning)
    changed = {"replications": n_runs} if n_runs else {}
    settings = [dataclasses.replace(setting, **changed) for setting in SETTINGS]
    return {setting.name: coverage(setting) for setting in settings}


def table(measured: Mapping[str, Any]) -> Table:
    """A row a setting, a column a kind of parameter."""
    names = list(dict.fromkeys(name for each in measured.values() for name in each["coverage"]))
    shown = Table(title="coverage of 95% intervals (Monte-Carlo error)")
    shown.add_column("setting")
    for name in names:
        shown.add_column(name, justify="right")
    shown.add_column("CPU s", justify="right")
    for setting, each in measured.items():
        cells = [
            f"{each['coverage'][name]:.3f} ({each['monte_carlo_error'][name]:.3f})"
            if name in each["coverage"]
            else ""
            for name in names
        ]
        shown.add_row(setting, *cells, f"{each['cpu_seconds']:.0f}")
    return shown


def main() -> None:
    """Measure; JSON on the last line."""
    print(json.dumps(run()))


if __name__ == "__main__":
    main()

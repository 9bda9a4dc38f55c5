"""The rows of the table: who, how, from how many seeds, and what the paper printed for it."""

import dataclasses
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from benchmarks.problems import Problem
from benchmarks.psn_irt.bayes import Unknowns, cell_probability
from benchmarks.psn_irt.sampling import nuts_draws
from benchmarks.psn_irt.variational import posterior_draws
from irtjax.fit.api import fit
from irtjax.fit.result import FitResult
from irtjax.model.priors import Priors
from irtjax.model.spec import ModelSpec
from irtjax.nets.settings import Network

__all__ = ["ROWS", "Outcome", "Row", "fitted", "outcome_of"]

_NAMES = ("accuracy", "f1", "auc", "kendall_accuracy")


def _paper(*values: float) -> dict[str, float]:
    return dict(zip(_NAMES, values, strict=True))


@dataclasses.dataclass(frozen=True)
class Row:
    """One row: a method with its settings.

    Attributes:
        name: of the row, as `--rows` takes it.
        label: in words.
        method: `irtjax` (then `family`, `dims` and `arguments` are of `irtjax.fit`), `vi`, `vibo`
            or `mcmc`.
        paper: what Zhou et al. 2026 print in their Table 2; None where they have no such row.
        n_seeds: how many by default.
        is_random: whether seeds make a difference; else one fit is all, after one that compiles.
        n_items: as many items at random, for what is too slow for all of them.
    """

    name: str
    label: str
    method: str = "irtjax"
    family: str = "4pl"
    dims: int = 1
    arguments: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    paper: Mapping[str, float] | None = None
    n_seeds: int = 5
    is_random: bool = True
    n_items: int | None = None


_PSN = {"estimator": "psn"}
_PUBLISHED = _PSN | {"network": Network.published(), "priors": Priors.off()}
_MLE = {"estimator": "joint-map", "priors": Priors.off(), "max_steps": 200}
_EFFECTS = {"group": "benchmark"}

ROWS = (
    Row("mle", "joint maximum likelihood, 4PL", arguments=_MLE, is_random=False,
        paper=_paper(0.7211, 0.8034, 0.7012, 0.9697)),
    Row("mcmc", "NUTS, 4PL", "mcmc", n_seeds=1, n_items=2000,
        paper=_paper(0.7070, 0.7811, 0.7278, 0.9697)),
    Row("vi", "mean-field VI, 4PL", "vi", paper=_paper(0.7201, 0.8015, 0.6940, 0.9091)),
    Row("vibo", "amortised VI (VIBO), 4PL", "vibo", paper=_paper(0.7188, 0.8007, 0.7055, 0.9697)),
    Row("deep-irt", "Deep-IRT, 1PL", family="1pl", arguments={"estimator": "deep-irt"},
        paper=_paper(0.7974, 0.8516, 0.8519, 0.9697)),
    Row("psn-published", "PSN-IRT, 4PL, published recipe", arguments=_PUBLISHED,
        paper=_paper(0.7998, 0.8538, 0.8485, 1.0)),
    Row("psn-1pl", "psn, 1PL", family="1pl", arguments=_PSN),
    Row("psn-2pl", "psn, 2PL", family="2pl", arguments=_PSN),
    Row("psn-3pl", "psn, 3PL", family="3pl", arguments=_PSN),
    Row("psn-4pl", "psn, 4PL", arguments=_PSN, paper=_paper(0.7998, 0.8538, 0.8485, 1.0)),
    Row("default", "irtjax, default (2PL)", family="2pl", is_random=False),
    Row("effects", "irtjax, --group benchmark, 3 dims", family="2pl", dims=3, arguments=_EFFECTS,
        is_random=False),
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What one fit says of the held-out cells and of the models.

    Attributes:
        probability: of a right response, a held-out cell.
        rank_by: what ranks the models: ability, or the expected score where there are effects.
        cpu_seconds: of the fit, data in memory to estimates in memory.
        notes: how the fit went.
        fit: of irtjax; None of the others.
    """

    probability: np.ndarray
    rank_by: np.ndarray
    cpu_seconds: float
    notes: dict[str, Any]
    fit: FitResult | None = None


def fitted(row: Row, problem: Problem, seed: int) -> Outcome:
    """One fit of a row to the training responses of a problem."""
    start = time.process_time()
    if row.method != "irtjax":
        draws, notes = _draws(row, problem.train.to_dense().astype(np.int8), seed)
        seconds = time.process_time() - start
        ability = np.mean([np.asarray(each.ability) for each in draws], axis=0)
        return Outcome(cell_probability(draws, problem.test), ability, seconds, notes)
    spec = ModelSpec(row.family, row.dims)
    result = fit(problem.train, spec, **row.arguments, seed=seed)
    return outcome_of(result, problem, time.process_time() - start)


def outcome_of(result: FitResult, problem: Problem, cpu_seconds: float) -> Outcome:
    """What a fit of irtjax says."""
    models, test = result.abilities(), problem.test
    is_ranked_by_score = result.group is not None or result.spec.dims > 1
    rank_by = models["expected_score" if is_ranked_by_score else "dim1_ability"].to_numpy(float)
    notes = {"status": result.status, "n_steps": result.report["n_steps"]}
    if "loss_curves" in result.report:
        curves = result.report["loss_curves"]
        notes |= {"n_epochs": len(curves["training"]), "n_refit": len(curves["refit"])}
    probability = result.predict_cells(test.model_index, test.item_index)
    return Outcome(probability, rank_by, cpu_seconds, notes, result)


def _draws(row: Row, response: np.ndarray, seed: int) -> tuple[list[Unknowns], dict[str, Any]]:
    if row.method == "mcmc":
        return nuts_draws(response, seed=seed)
    draws, bounds = posterior_draws(response, is_amortised=row.method == "vibo", seed=seed)
    return draws, {"bound": float(bounds[-1]), "n_steps": len(bounds)}

"""`FitResult`: what a fit leaves, as data frames, predictions and files."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Array, Float

from irtjax.checks import check_path, counted, shown
from irtjax.data.cells import Cells
from irtjax.data.checks import checked_index
from irtjax.data.responses import ResponseMatrix
from irtjax.errors import InputError
from irtjax.fit.prediction import PredictionParameters, cell_probabilities
from irtjax.fit.tables import ability_table, item_table
from irtjax.model.pytree import pytree_dataclass
from irtjax.model.response import Asymptotes
from irtjax.model.spec import ModelSpec

__all__ = ["FitResult", "FittedParameters", "ability_correlations"]


@pytree_dataclass
class FittedParameters:
    """All estimates as arrays, items and models in the matrix's order (a pytree, host arrays).

    `z_j = (slope_j, intercept_j)` of item j has the posterior
    `sum_c share_jc N(mean_jc, covariance_jc)`; covariances are packed lower triangles. Where the
    models are integrated out, that is the estimate and its sampling covariance. `item_spread` is
    what the errors of the abilities add to an item's published covariance. `group_*` describe
    the distribution of items (None where items are no sample), `population_*` that of abilities in
    each population of models. `item_tower`, `model_tower` are the networks that make parameters
    of features, packed (`irtjax.nets.unseen`; None without features).
    """

    ability: Float[Array, "models dims"]
    ability_covariance: Float[Array, "models dims dims"]
    ability_se_clustered: Float[Array, "models dims"]
    clustered_degrees_of_freedom: Float[Array, "models dims"]
    effect: Float[Array, "models groups"] | None
    effect_variance: Float[Array, ""] | None
    expected_score: Float[Array, " models"]
    mean: Float[Array, "items components coordinates"]
    covariance: Float[Array, "items components pairs"]
    share: Float[Array, "items components"]
    group_mean: Float[Array, "groups components coordinates"] | None
    group_covariance: Float[Array, "groups components coordinates coordinates"] | None
    group_log_weight: Float[Array, "groups components"] | None
    guessing: Float[Array, " items"]
    feasibility: Float[Array, " items"]
    guessing_se: Float[Array, " items"]
    feasibility_se: Float[Array, " items"]
    population_mean: Float[Array, "populations dims"]
    population_covariance: Float[Array, "populations dims dims"]
    item_spread: Float[Array, "items pairs"] | None = None
    item_tower: Float[Array, " weights"] | None = None
    model_tower: Float[Array, " weights"] | None = None


@dataclasses.dataclass(frozen=True, eq=False)
class FitResult:
    """A fitted model: made by `irtjax.fit` or `FitResult.load`.

    Attributes:
        data: the responses it was fitted to.
        spec: family and dims.
        parameters: all estimates as arrays.
        group: the item metadata column of benchmark effects, None without.
        report: what `fit.json` holds (status, versions, trace, held-out metrics, ...).
        heldout: the cells kept out of the fit, None without.
    """

    data: ResponseMatrix
    spec: ModelSpec
    parameters: FittedParameters
    group: str | None = None
    report: dict[str, Any] = dataclasses.field(default_factory=dict)
    heldout: Cells | None = None

    @property
    def status(self) -> str:
        """`converged`, `max_steps`, `stalled` or `diverged`; the sentence is `report["reason"]`."""
        return str(self.report.get("status", ""))

    @property
    def integrated(self) -> str:
        """The side whose parameters are integrated out: `items`, `models`, or `none`."""
        return str(self.report.get("integrated", "items"))

    def ability_correlations(self) -> np.ndarray:
        """Correlations of the abilities (dims x dims, float64), of the first population.

        The identity for exploratory models, and for confirmatory ones of `marginal-models` unless
        they are `correlated`. In confirmatory models of `marginal-items` nothing holds the
        abilities uncorrelated: theirs are those of the estimates, 0 with a general factor. On the
        scale of another fit (anchors, `link`, `update`) they are that fit's, so that discrimination
        and difficulty mean the same in both.
        """
        if "scale_correlations" in self.report:
            return np.array(self.report["scale_correlations"], np.float64)
        return ability_correlations(self.parameters)

    def groups(self) -> tuple[np.ndarray, list[str]]:
        """Group of each item (codes) and the groups' names; one unnamed group without `group`."""
        if self.group is None:
            return np.zeros(self.data.n_items, np.int32), [""]
        return self.data.groups(self.group)

    def item_parameters(self) -> pd.DataFrame:
        """One row an item, in the data's order: the columns of `items.csv`.

        `difficulty` and `discrimination` are the location and signed slope at one dim, MDIFF and
        MDISC at more (latent standard deviations; logits a standard deviation); `guessing` and
        `feasibility` are probabilities; `intercept` and `dim1_slope` are in logits. `*_se` are
        standard errors (posterior standard deviations; delta method for derived columns).
        """
        return item_table(self)

    def abilities(self) -> pd.DataFrame:
        """One row a model, in the data's order: the columns of `models.csv`.

        Abilities have mean 0 and sd 1 over the models. `expected_score` is the mean predicted
        probability over all items: with benchmark effects, that is what ranks the models.
        """
        return ability_table(self)

    def predict(self, pairs: pd.DataFrame) -> pd.DataFrame:
        """Probability of a right response for pairs of a model and an item.

        Args:
            pairs: columns `model_id` and `item_id`, any order, repeats allowed.

        Returns:
            `model_id`, `item_id`, `probability` in the order of the pairs.

        Raises:
            InputError: a missing column, an id that was not in the fit.
        """
        if not isinstance(pairs, pd.DataFrame):
            raise InputError(
                "pairs to predict must be a data frame with the columns 'model_id' and 'item_id', "
                f"not {type(pairs).__name__}"
            )
        for column in ("model_id", "item_id"):
            if column not in pairs:
                raise InputError(f"pairs to predict need a column {column!r}")
        model_index = _positions(pairs["model_id"], self.data.model_ids, "model")
        item_index = _positions(pairs["item_id"], self.data.item_ids, "item")
        probability = self.predict_cells(model_index, item_index)
        ids = pairs[["model_id", "item_id"]].reset_index(drop=True)
        return ids.assign(probability=probability)

    def predict_cells(self, model_index: np.ndarray, item_index: np.ndarray) -> np.ndarray:
        """Probabilities (float64) of cells given by row and column of the matrix.

        Raises:
            InputError: indices beyond the data, that are no whole numbers, or of unequal numbers.
        """
        n_cells = np.size(model_index)
        model_index = checked_index(model_index, self.data.n_models, n_cells, "model")
        item_index = checked_index(item_index, self.data.n_items, n_cells, "item")
        return cell_probabilities(self.prediction_parameters(), model_index, item_index)

    def prediction_parameters(self) -> PredictionParameters:
        """The part of the estimates that predictions need."""
        fitted, asymptotes = self.parameters, None
        if self.spec.has_asymptotes:
            asymptotes = Asymptotes.from_natural(fitted.guessing, fitted.feasibility)
        covariance, ability_covariance = fitted.covariance, None
        if self.integrated != "items":
            covariance = np.zeros_like(fitted.covariance)  # type: ignore[assignment]
        if self.integrated == "models":
            ability_covariance = fitted.ability_covariance
        return PredictionParameters(
            fitted.ability,
            fitted.effect,
            self.groups()[0],  # type: ignore[arg-type]
            fitted.mean,
            covariance,
            fitted.share,
            asymptotes,
            ability_covariance,
        )

    def save(self, folder: str | Path) -> None:
        """Write `items.csv`, `models.csv`, `fit.json`, `responses.npz` and `checkpoint/`.

        Raises:
            InputError: the folder cannot be written.
        """
        from irtjax.fit.files import save_run

        save_run(self, check_path("the folder to save to", folder))

    @classmethod
    def load(cls, folder: str | Path) -> "FitResult":
        """Read a run's folder; predictions are identical to those before `save`.

        Raises:
            InputError: no such folder, or a file in it that is missing or damaged.
        """
        from irtjax.fit.files import load_run

        return load_run(check_path("the folder to load", folder))

    def __repr__(self) -> str:
        return (
            f"FitResult({self.spec.family}, dims={self.spec.dims}, "
            f"{counted(self.data.n_models, 'model')} x {counted(self.data.n_items, 'item')}, "
            f"{self.status})"
        )


def ability_correlations(parameters: FittedParameters) -> np.ndarray:
    """Correlations of the abilities of the first population, dims x dims, float64."""
    covariance = np.asarray(parameters.population_covariance[0], np.float64)
    sd = np.sqrt(np.diagonal(covariance))
    return covariance / sd[:, None] / sd


def _positions(ids: pd.Series, known: np.ndarray, kind: str) -> np.ndarray:
    positions = np.where(ids.isna(), -1, pd.Index(known).get_indexer(ids.astype(str)))
    if (positions < 0).any():
        row = int(np.flatnonzero(positions < 0)[0])
        count = int(np.count_nonzero(positions < 0))
        raise InputError(
            f"{kind} {shown(ids.iloc[row])} (row {row + 1} of the pairs) was not in the fit; "
            f"{counted(count, 'such row')}"
        )
    return positions

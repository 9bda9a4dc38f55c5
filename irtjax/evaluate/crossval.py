"""k-fold cross-validation over cells, items or models, and the number of dims it chooses."""

import dataclasses
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import numpy as np
import pandas as pd

from irtjax.checks import shown
from irtjax.compiler_check import require_correct_compiler
from irtjax.data.responses import ResponseMatrix
from irtjax.errors import InputError, IrtjaxWarning
from irtjax.evaluate.comparison import FIT, Comparison, OnFold
from irtjax.evaluate.fold_fits import block_folds
from irtjax.evaluate.fold_metrics import one_standard_error, summary
from irtjax.evaluate.fold_scores import Scores
from irtjax.evaluate.folds import Folds, check_folds, make_folds
from irtjax.evaluate.heldout import benchmark_of_items
from irtjax.fit.arguments import check_components, checked_priors, checked_settings
from irtjax.fit.item_support import check_items
from irtjax.fit.items_route import cluster_column
from irtjax.fit.marginal_items import MarginalItems
from irtjax.fit.settings import FitSettings
from irtjax.fit.validation import check_responses
from irtjax.model.priors import Priors
from irtjax.model.spec import ModelSpec

__all__ = ["FIT", "RULE", "STARTS", "CrossValidation", "check_crossval", "cross_validate"]

RULE = "fewest dims whose log-loss is within one standard error of the lowest"
STARTS = ("warm", "cold")

_KEYS = ("dims", "predictor")


@dataclasses.dataclass(frozen=True, eq=False)
class CrossValidation:
    """What cross-validation found.

    Attributes:
        table: a row for each predictor: `dims` (missing for baselines without), `predictor`
            (`fit`, or a baseline: `model_mean`, `model_benchmark_mean`, `1pl`, `2pl`), means over
            the folds and their standard errors (`_se`) of `accuracy`, `mae`, `log_loss`,
            `spearman` and `kendall` (`irtjax.evaluate.fold_metrics`), `n` scored cells, and
            `spearman_pooled`, `kendall_pooled`, of the models' means over all folds.
        by_fold: the metrics of each fold, and how its fit ended (`status`, `n_steps`).
        chosen_dims: the number of dims by the one-standard-error rule.
        settings: what was asked for, and of which data.
        notes: sentences on what was counted and not refused.
    """

    table: pd.DataFrame
    by_fold: pd.DataFrame
    chosen_dims: int
    settings: dict[str, Any]
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Everything in what JSON can hold; undefined numbers are None."""
        return {
            **self.settings,
            "chosen_dims": self.chosen_dims,
            "rule": RULE,
            "table": _records(self.table),
            "by_fold": _records(self.by_fold),
            "notes": list(self.notes),
        }


def cross_validate(
    data: ResponseMatrix,
    dims: int | Sequence[int] = (1, 2, 3),
    *,
    folds: int = 10,
    over: str = "cells",
    family: str = "2pl",
    group: str | None = None,
    estimator: str = "auto",
    item_distribution: str = "normal",
    components: int = 4,
    priors: Priors | None = None,
    seed: int = 0,
    max_steps: int = 1000,
    start: str = "warm",
    devices: Sequence[jax.Device] | None = None,
    on_fold: OnFold | None = None,
) -> CrossValidation:
    """Predict each fold's responses by fits that have not seen them, beside baselines.

    Over items (models), half of the cells of each that a fold leaves out place it given the fold's
    fit, which it does not change, and the rest is scored; the baselines learn from all but the
    scored cells.

    Args:
        data: models x items, missing cells allowed.
        dims: numbers of dims to compare.
        folds: number of folds.
        over: what is dealt out to the folds: `cells`, `items` or `models`.
        family: of the fits, as `ModelSpec`.
        group: item metadata column of benchmark effects and distributions, as `irtjax.fit`; the
            model x benchmark mean without takes the column `benchmark` where every item has one.
        estimator: as `irtjax.fit`; over items and models only `marginal-items` can place what was
            left out, and `auto` is that.
        item_distribution: as `irtjax.fit`.
        components: as `irtjax.fit`.
        priors: as `irtjax.fit`.
        seed: of the folds, and of what is random in a fit.
        max_steps: most steps of a fit.
        start: `warm` starts each fold where the fit of all responses ended: from abilities,
            effects, item distributions and asymptotes, never from the items' posteriors. `cold`
            starts each anew: several times the work, abilities the same to 1e-4; over cells only.
            Other estimators than `marginal-items` always start cold.
        devices: as `irtjax.fit`.
        on_fold: called with the predictor, its dims and the fold, after each fit of a fold.

    Returns:
        The table, the values of each fold, and the chosen number of dims. Warns (`IrtjaxWarning`)
        of fits that did not converge, and of items or models with nothing to score.

    Raises:
        InputError: data or settings that cannot be used; one line says why.

    >>> import irtjax as ij
    >>> data = ij.simulate(ij.ModelSpec(), n_models=30, n_items=60).data
    >>> found = cross_validate(data, [1, 2], folds=3)
    >>> found.chosen_dims, found.table["predictor"].tolist()
    (1, ['fit', 'fit', 'model_mean', 'model_benchmark_mean', '1pl', '2pl'])
    """
    chosen = _listed(dims)
    check_crossval(chosen, folds=folds, over=over, family=family, start=start)
    asked_for = checked_settings(
        {
            "group": group,
            "estimator": estimator,
            "item_distribution": item_distribution,
            "components": components,
            "max_steps": max_steps,
        }
    )
    if over != "cells" and estimator == "auto":
        asked_for["estimator"] = MarginalItems.name
    settings = FitSettings(seed=seed, **asked_for)
    check_components(settings)
    _check_can_place(settings, over)
    _check_data(data, chosen, folds, over, family)
    _check_items(data, [ModelSpec(family, each) for each in chosen], folds, over, settings)
    # Blocked as a fit of these data is, so that folds and fits run the same programs.
    blocked_by = group or cluster_column(data)
    codes = None if blocked_by is None else data.groups(blocked_by)[0]
    benchmarks = benchmark_of_items(data, group)
    dealt = make_folds(data, over, folds, seed)
    require_correct_compiler()
    blocked = block_folds(dealt, codes, devices) if start == "warm" else None
    comparison = Comparison(dealt, blocked, checked_priors(priors), devices, on_fold)
    specs = [ModelSpec(family, each) for each in chosen]
    scores = comparison.scores(specs, settings, benchmarks)
    asked = {"over": over, "folds": folds} | _asked(specs, settings) | {"start": start}
    found = _found(dealt, scores, asked)
    for note in found.notes:
        warnings.warn(note, IrtjaxWarning, stacklevel=2)
    return found


def _listed(dims: Any) -> list[Any]:
    if isinstance(dims, int | np.integer):
        return [dims]
    if isinstance(dims, str) or not hasattr(dims, "__iter__"):
        raise InputError(f"dims must be a whole number or several, not {shown(dims)}")
    return list(dims)


def check_crossval(
    dims: Sequence[int], *, folds: int, over: str, family: str, start: str = "warm"
) -> None:
    """Refuse settings that are not known or out of range, before any data are read.

    Raises:
        InputError: one line says which and what is allowed.
    """
    if not dims:
        raise InputError("no dims to compare; name at least one, as in --dims 1 2 3")
    repeated = [each for k, each in enumerate(dims) if each in dims[:k]]
    if repeated:
        raise InputError(f"dims {repeated[0]} is listed twice; name each number of dims once")
    for each in dims:
        ModelSpec(family, each)
    check_folds(over, folds)
    if start not in STARTS:
        raise InputError(f"start {start!r} is not known; use one of {', '.join(STARTS)}")
    if start == "cold" and over != "cells":
        raise InputError(f"a cold start cannot place the {over} left out; use start 'warm'")


def _check_can_place(settings: FitSettings, over: str) -> None:
    if over != "cells" and settings.estimator != MarginalItems.name:
        raise InputError(
            f"estimator {settings.estimator} cannot place the {over} left out; use "
            "marginal-items, or folds over cells"
        )


def _check_data(
    data: ResponseMatrix, dims: Sequence[int], folds: int, over: str, family: str
) -> None:
    for each in dims:
        check_responses(data, ModelSpec(family, each))
    n_left = data.n_models - -(-data.n_models // folds)
    if over == "models" and max(dims) >= n_left:
        raise InputError(
            f"{max(dims)} dims need more than {max(dims)} models; with {folds} folds over models "
            f"{n_left} of {data.n_models} are left in a fold; use fewer dims or more folds"
        )


def _check_items(
    data: ResponseMatrix, specs: Sequence[ModelSpec], folds: int, over: str, settings: FitSettings
) -> None:
    n_items, where = int(np.count_nonzero(data.totals("items")[0])), ""
    if over == "items":
        n_items, where = n_items - -(-n_items // folds), " left in a fold"
    for spec in specs:
        check_items(n_items, spec, settings, where)


def _asked(specs: Sequence[ModelSpec], settings: FitSettings) -> dict[str, Any]:
    """What was asked of the fits, as the result has it."""
    is_mixture = settings.item_distribution == "mixture"
    return {
        "seed": settings.seed,
        "dims": [spec.dims for spec in specs],
        "family": specs[0].family,
        "group": settings.group,
        "estimator": settings.estimator,
        "item_distribution": settings.item_distribution,
        "components": settings.components if is_mixture else 1,
    }


def _found(dealt: Folds, scores: Sequence[Scores], asked: dict[str, Any]) -> CrossValidation:
    by_fold = pd.DataFrame([row for each in scores for row in each.rows()])
    by_fold = by_fold.astype({"dims": "Int64", "n_steps": "Int64"})
    table = summary(by_fold, _KEYS)
    table = pd.concat([table, pd.DataFrame([each.pooled() for each in scores])], axis=1)
    fits = table[table["predictor"] == FIT]
    dims = [int(each) for each in fits["dims"]]
    loss, error = (dict(zip(dims, fits[name], strict=True)) for name in ("log_loss", "log_loss_se"))
    data = dealt.data
    settings = {
        "inputs": [{"path": path, "sha256": digest} for path, digest in data.provenance.files],
        "n_models": data.n_models,
        "n_items": data.n_items,
        "n_responses": data.n_responses,
        **asked,
    }
    notes = tuple(_notes(dealt, by_fold))
    return CrossValidation(table, by_fold, one_standard_error(loss, error), settings, notes)


def _notes(dealt: Folds, by_fold: pd.DataFrame) -> Iterator[str]:
    if dealt.n_unscored:
        noun = dealt.over if dealt.n_unscored > 1 else dealt.over[:-1]
        yield (
            f"{dealt.n_unscored:,} {noun} with fewer than two responses: one places it, nothing is "
            "left to score"
        )
    ended = by_fold[by_fold["status"].notna() & (by_fold["status"] != "converged")]
    for (dims, predictor, status), rows in ended.groupby(["dims", "predictor", "status"]):
        yield f"{len(rows)} of {dealt.n_folds} folds of {predictor} at dims {dims}: {status}"


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    return [
        {str(name): None if pd.isna(value) else value for name, value in row.items()}
        for row in table.astype(object).to_dict(orient="records")
    ]

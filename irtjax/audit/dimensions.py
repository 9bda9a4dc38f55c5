"""How many abilities the responses hold, what each explains, and whether each comes back.

A dim is trusted when refits find it again: from random starts, without half of the items, without
half of the models, each aligned with the fit (`irtjax.align`).
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float

from irtjax.checks import check_whole, counted
from irtjax.data.checks import check_seed
from irtjax.errors import InputError, IrtjaxWarning
from irtjax.evaluate.crossval import CrossValidation, cross_validate
from irtjax.fit.alignment import align
from irtjax.fit.api import fit as fit_anew
from irtjax.fit.bootstrap_settings import fit_arguments
from irtjax.fit.refits import refit_from, refit_without
from irtjax.fit.result import FitResult
from irtjax.fit.rotation import loadings
from irtjax.fit.tables import slope_and_intercept
from irtjax.model.spec import ModelSpec

__all__ = [
    "FEWEST_CONGRUENT",
    "FEWEST_CORRELATED",
    "REFITS",
    "compare_dims",
    "dim_correlations",
    "explained_variance",
    "fits_by_dims",
    "refit_agreement",
    "stable_dims",
]

# A dim comes back when it correlates with itself by this much in the mean over the refits of each
# kind. On 100 x 34,000 responses of two abilities (benchmarks W2) the true ones have .997 and more,
# a third one .08 from random starts, .51 without half of the items, .53 without half the models.
FEWEST_CORRELATED = 0.9
# Below this congruence two factors are not even similar (Lorenzo-Seva & ten Berge 2006).
FEWEST_CONGRUENT = 0.85
REFITS = ("seeds", "items", "models")

# Dims that the data do not hold are fitted to noise, and creep for hundreds of steps: fits to be
# compared are judged by where so many bring them, more where cells are few and steps cheap. W2
# settles in 15 at its two dims; three to five predict it no better after 40: log-loss .4781, .4782,
# .4783, .4783.
_FEWEST_STEPS, _MOST_STEPS = 25, 200
_CELL_STEPS = 80_000_000
_FOLDS = 5
# Up to so many responses folds start anew: they run the programs of `fits_by_dims` then, where
# warm starts have three more of their own for each number of dims, which take longer to compile
# than all steps of such fits.
_COLD_RESPONSES = 200_000
_CROSSVAL_TAKES = ("group", "estimator", "item_distribution", "priors", "seed")


def compare_dims(
    fit: FitResult,
    dims: Sequence[int] = (1, 2, 3, 4, 5),
    *,
    folds: int = _FOLDS,
    max_steps: int | None = None,
    on_fold: Callable[[str, int | None, int], None] | None = None,
) -> CrossValidation:
    """Held-out predictions of fits with other numbers of dims, and the number they choose.

    Args:
        fit: whose data and settings are used.
        dims: numbers of dims to compare.
        folds: over cells.
        max_steps: most steps of a fit; 25 to 200 by the number of cells without.
        on_fold: as `irtjax.cross_validate`.

    Returns:
        As `irtjax.cross_validate`: `table` (log-loss, accuracy, MAE of each number of dims and of
        the baselines, with standard errors over the folds), `chosen_dims` by the
        one-standard-error rule. Fits stopped at `max_steps` are counted in `notes`, not warned of.

    Raises:
        InputError: a confirmatory fit, or settings that cannot be cross-validated.
    """
    _check_exploratory(fit)
    arguments = fit_arguments(fit)
    settings = {name: arguments[name] for name in _CROSSVAL_TAKES}
    if settings["item_distribution"] == "mixture":
        settings["components"] = arguments["components"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IrtjaxWarning)
        return cross_validate(
            fit.data,
            dims,
            folds=folds,
            family=fit.spec.family,
            max_steps=max_steps or _steps_for(fit),
            start="cold" if fit.data.n_responses <= _COLD_RESPONSES else "warm",
            on_fold=on_fold,
            **settings,
        )


def fits_by_dims(
    fit: FitResult, dims: Sequence[int] = (1, 2, 3, 4, 5), *, max_steps: int | None = None
) -> dict[int, FitResult]:
    """Fits of the same responses with other numbers of dims, each in its canonical frame.

    Args:
        fit: whose data and settings are used; it stands itself for its number of dims.
        dims: numbers of dims.
        max_steps: most steps of the others; as `compare_dims`.

    Returns:
        A fit for each number of dims, in their order.

    Raises:
        InputError: a confirmatory fit.
    """
    _check_exploratory(fit)
    arguments = fit_arguments(fit) | {"max_steps": max_steps or _steps_for(fit)}
    found = {}
    for each in dims:
        if each == fit.spec.dims:
            found[each] = fit
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", IrtjaxWarning)  # of dims without signal: in the table
            found[each] = fit_anew(fit.data, ModelSpec(fit.spec.family, each), **arguments)
    return found


def explained_variance(fits: Mapping[int, FitResult]) -> pd.DataFrame:
    """What each dim explains of the items' latent variance, in fits of several numbers of dims.

    Returns:
        A row for each dim of each fit: `dims`, `dim` (1, 2, ...), `explained_variance` (mean
        squared loading), `top_model` and `top_model_share` (of the dim's variance), `flags`
        (`no_signal`, `one_model`; as in `fit.json`), `status` of the fit.
    """
    rows = [
        {"dims": dims, "dim": k + 1}
        | {name: value for name, value in dim.items() if name != "name"}
        | {"status": fit.status}
        for dims, fit in fits.items()
        for k, dim in enumerate(fit.report["dimensions"])
    ]
    return pd.DataFrame(rows)


def dim_correlations(fits: Mapping[int, FitResult]) -> pd.DataFrame:
    """Correlations of the abilities of one fit's dims with those of another's.

    They show which dim splits when there is one more, and which is new.

    Returns:
        A row for each pair of dims of each pair of fits: `dims`, `dim`, `other_dims`, `other_dim`,
        `correlation` over the models with responses.
    """
    rows = []
    numbers = list(fits)
    for position, dims in enumerate(numbers):
        for other in numbers[position + 1 :]:
            one, two = (_abilities(fits[each]) for each in (dims, other))
            found = _correlation_matrix(one, two)
            rows += [
                {
                    "dims": dims,
                    "dim": k + 1,
                    "other_dims": other,
                    "other_dim": l + 1,
                    "correlation": found[k, l],
                }
                for k in range(found.shape[0])
                for l in range(found.shape[1])
            ]
    names = ["dims", "dim", "other_dims", "other_dim", "correlation"]
    return pd.DataFrame(rows, columns=names)


def refit_agreement(
    fit: FitResult,
    *,
    refits: int = 2,
    kinds: Sequence[str] = REFITS,
    seed: int = 0,
    max_steps: int | None = None,
) -> pd.DataFrame:
    """How far refits, aligned with the fit, find its dims again.

    Args:
        fit: exploratory.
        refits: of each kind. Every second one leaves out the half that the one before kept.
        kinds: of `seeds` (from random starts), `items` (without half of them), `models` (without
            half of them).
        seed: of starts and halves.
        max_steps: most steps of a refit; as the fit without.

    Returns:
        A row for each refit and dim: `kind`, `refit` (1, 2, ...), `dim`; over what both have,
        `ability_correlation` (models), `slope_correlation` (items), and `congruence` (items;
        Tucker's coefficient of the loadings, `sum x y / sqrt(sum x^2 sum y^2)`); `status` of the
        refit.

    Raises:
        InputError: a confirmatory fit, an unknown kind, halves with too few models or items.

    Source: Tucker (1951); Lorenzo-Seva & ten Berge (2006), Methodology 2, 57-64.
    """
    _check_exploratory(fit)
    check_whole("refits", refits, 1)
    check_seed(seed)
    unknown = [kind for kind in kinds if kind not in REFITS]
    if unknown:
        raise InputError(f"refits are of {', '.join(REFITS)}, not {unknown[0]!r}")
    least = 2 * (fit.spec.dims + 1)
    if "models" in kinds and np.count_nonzero(fit.data.totals("models")[0]) < least:
        raise InputError(
            f"half of {fit.data.n_models} models cannot hold {counted(fit.spec.dims, 'dim')}; "
            "leave out the refits over models"
            + (", or use fewer dims" if fit.spec.dims > 1 else "")
        )
    rows = []
    for kind in kinds:
        for k, again in enumerate(_refits(fit, kind, refits, seed, max_steps)):
            for row in _agreement(align(again, fit), fit):
                rows.append({"kind": kind, "refit": k + 1, **row, "status": again.status})
    return pd.DataFrame(rows)


def stable_dims(agreement: pd.DataFrame) -> pd.DataFrame:
    """Which dims come back.

    A dim is unstable where, in the mean over the refits of a kind, its abilities correlate by less
    than `FEWEST_CORRELATED` or its loadings have a congruence below `FEWEST_CONGRUENT`.

    Args:
        agreement: of `refit_agreement`.

    Returns:
        A row a dim: `dim`, for each kind `<kind>_correlation` and `<kind>_congruence` (means over
        its refits), `is_stable`, and `reason`, in words where it is not.
    """
    measures = (
        ("ability_correlation", "correlation", FEWEST_CORRELATED),
        ("congruence", "congruence", FEWEST_CONGRUENT),
    )
    kinds = list(dict.fromkeys(agreement["kind"]))
    rows = []
    for dim in sorted(set(agreement["dim"])):
        row: dict[str, Any] = {"dim": dim}
        reasons = []
        for kind in kinds:
            found = agreement[(agreement["dim"] == dim) & (agreement["kind"] == kind)]
            for column, name, least in measures:
                mean = float(found[column].mean())
                row[f"{kind}_{name}"] = mean
                if not mean >= least:
                    reasons.append(f"{kind}: {name} {mean:.2f}, below {least}")
        rows.append(row | {"is_stable": not reasons, "reason": "; ".join(reasons)})
    return pd.DataFrame(rows)


def _steps_for(fit: FitResult) -> int:
    return min(max(_CELL_STEPS // max(fit.data.n_responses, 1), _FEWEST_STEPS), _MOST_STEPS)


def _check_exploratory(fit: FitResult) -> None:
    if not isinstance(fit, FitResult):
        raise InputError(f"dimensions are judged of a FitResult, not {type(fit).__name__}")
    if "dim_names" in fit.report:
        raise InputError(
            "the dims of a confirmatory fit are given by its loadings; fit without to audit them"
        )


def _refits(
    fit: FitResult, kind: str, refits: int, seed: int, max_steps: int | None
) -> list[FitResult]:
    if kind == "seeds":
        return [refit_from(fit, seed + k + 1, max_steps=max_steps) for k in range(refits)]
    rng = np.random.default_rng([seed, REFITS.index(kind)])
    found, left_out = [], np.zeros(0, bool)
    count = fit.data.totals(kind)[0]
    for k in range(refits):
        left_out = _half(rng, count > 0) if k % 2 == 0 else (count > 0) & ~left_out
        sides = {side: left_out if side == kind else None for side in ("models", "items")}
        found.append(refit_without(fit, **sides, max_steps=max_steps))
    return found


def _half(
    rng: np.random.Generator, is_seen: Bool[np.ndarray, " rows"]
) -> Bool[np.ndarray, " rows"]:
    """A random half of those with responses."""
    rows = np.flatnonzero(is_seen)
    chosen = np.zeros(len(is_seen), bool)
    chosen[rng.permutation(rows)[: len(rows) // 2]] = True
    return chosen


def _agreement(again: FitResult, fit: FitResult) -> list[dict[str, Any]]:
    """A row a dim."""
    has_models, has_items = (again.data.totals(side)[0] > 0 for side in ("models", "items"))
    ability = [np.asarray(e.parameters.ability, np.float64)[has_models] for e in (again, fit)]
    slope = [slope_and_intercept(each)[0][has_items] for each in (again, fit)]
    loading = [
        loadings(of, each.ability_correlations())
        for of, each in zip(slope, (again, fit), strict=True)
    ]
    return [
        {
            "dim": k + 1,
            "ability_correlation": _correlation(ability[0][:, k], ability[1][:, k]),
            "slope_correlation": _correlation(slope[0][:, k], slope[1][:, k]),
            "congruence": _congruence(loading[0][:, k], loading[1][:, k]),
        }
        for k in range(fit.spec.dims)
    ]


def _abilities(fit: FitResult) -> Float[np.ndarray, "models dims"]:
    return np.asarray(fit.parameters.ability, np.float64)[fit.data.totals("models")[0] > 0]


def _correlation_matrix(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Between the columns of two tables; NaN where one does not vary."""
    sides = []
    for side in (one, other):
        centred = side - side.mean(axis=0)
        with np.errstate(invalid="ignore", divide="ignore"):
            sides.append(centred / np.linalg.norm(centred, axis=0))
    return sides[0].T @ sides[1]


def _correlation(x: np.ndarray, y: np.ndarray) -> float:
    return float(_correlation_matrix(x[:, None], y[:, None])[0, 0])


def _congruence(x: np.ndarray, y: np.ndarray) -> float:
    size = float(np.sqrt(np.sum(x**2) * np.sum(y**2)))
    return float(np.sum(x * y)) / size if size > 0 else float("nan")

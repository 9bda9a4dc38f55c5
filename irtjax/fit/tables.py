"""`items.csv` and `models.csv` as data frames: published parameters, errors and flags."""

import re
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from irtjax.fit.packed import mixture_moments, unpack_index
from irtjax.fit.rotation import SCALE, loadings
from irtjax.model.priors import beta_numbers

if TYPE_CHECKING:
    from irtjax.fit.result import FitResult

__all__ = [
    "ITEM_FLAGS",
    "ability_table",
    "difficulty_and_discrimination",
    "dims_without_spread",
    "item_table",
    "metadata_name",
    "slope_and_intercept",
]

# What a row of `items.csv` may have under `flags`.
ITEM_FLAGS = (
    "no_responses",
    "few_responses",
    "all_right",
    "all_wrong",
    "negative_slope",
    "weak_slope",
    "unbounded",
    "weak_guessing",
    "weak_feasibility",
    "no_error",
    "drifted_anchor",
)
# Below this an item says nothing about ability, and its difficulty is a division by noise: NaN.
_SMALLEST_DISCRIMINATION = 1e-4
# Abilities closer than this, in standard deviations, are the same in their rounding.
_SAME_ABILITY = 1e-3
_RESULT_NAMES = {
    "items": re.compile(
        r"item_id|(difficulty|discrimination|guessing|feasibility|intercept|dim\d+_(slope|loading))"
        r"(_se)?|n_responses|p_correct|flags"
    ),
    "models": re.compile(
        r"model_id|dim\d+_ability(_se(_clustered)?)?|expected_score|.*_effect|n_responses|"
        r"p_correct|flags"
    ),
}
# An asymptote's error may be this share of its prior's standard deviation.
_WEAK_SHARE = 0.9
_PRIOR_OF = {"guessing": "guessing", "feasibility": "infeasibility"}
# With this many responses or fewer an estimate is mostly its prior.
FEW_RESPONSES = 5
# Without a prior, a slope or an intercept past this many logits has no maximum that data could
# show: at 10 logits one answer in 20,000 goes the other way.
UNBOUNDED = 10.0


def slope_and_intercept(
    fit: "FitResult",
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Posterior mean slopes and intercepts, and the covariance of both together (float64).

    The covariance has what the abilities' errors add, where the fit knows it.

    Returns:
        items x dims, items, items x (dims + 1) x (dims + 1).
    """
    fitted = fit.parameters
    mean, packed = mixture_moments(
        *(np.asarray(part, np.float64) for part in (fitted.mean, fitted.covariance, fitted.share))
    )
    if fit.parameters.item_spread is not None:
        packed = packed + np.asarray(fit.parameters.item_spread, np.float64)
    covariance = packed[:, unpack_index(mean.shape[1])]
    return mean[:, :-1], mean[:, -1], covariance


def dims_without_spread(ability: np.ndarray, is_scored: np.ndarray) -> np.ndarray:
    """Dims in which all models with responses have the same ability: they answered alike."""
    return np.ptp(ability[is_scored], axis=0) < _SAME_ABILITY


def item_table(fit: "FitResult") -> pd.DataFrame:
    """The columns of `items.csv`."""
    slope, intercept, covariance = slope_and_intercept(fit)
    dims = slope.shape[1]
    count, correct = fit.data.totals("items")
    columns = {"item_id": fit.data.item_ids} | _metadata(fit.data.item_metadata, "items")
    correlation = fit.ability_correlations()
    values, errors = _derived(slope, intercept, covariance, correlation)
    loading = loadings(slope, correlation)
    loading_se = _loading_errors(slope, covariance, correlation)
    columns |= {"difficulty": values[0], "discrimination": values[1]}
    columns["guessing"] = np.asarray(fit.parameters.guessing)
    columns["feasibility"] = np.asarray(fit.parameters.feasibility)
    columns["intercept"] = intercept
    columns |= {f"dim{k + 1}_slope": slope[:, k] for k in range(dims)}
    columns |= {f"dim{k + 1}_loading": loading[:, k] for k in range(dims)}
    columns |= {"difficulty_se": errors[0], "discrimination_se": errors[1]}
    columns["guessing_se"] = np.asarray(fit.parameters.guessing_se)
    columns["feasibility_se"] = np.asarray(fit.parameters.feasibility_se)
    sd = _roots(np.diagonal(covariance, axis1=1, axis2=2))
    columns["intercept_se"] = sd[:, -1]
    columns |= {f"dim{k + 1}_slope_se": sd[:, k] for k in range(dims)}
    columns |= {f"dim{k + 1}_loading_se": loading_se[:, k] for k in range(dims)}
    columns |= {"n_responses": count, "p_correct": correct}
    asymptotes = columns["guessing_se"] + columns["feasibility_se"]
    has_error = np.all(np.isfinite([errors[1], asymptotes, *sd.T, *loading_se.T]), axis=0)
    has_error &= np.isfinite(errors[0]) | np.isnan(values[0])
    claims = _slope_claims(fit, slope, values, errors[1]) | {
        "unbounded": _is_unbounded(fit, slope, intercept, correct),
        "weak_guessing": _is_weak(fit, "guessing"),
        "weak_feasibility": _is_weak(fit, "feasibility"),
        "no_error": ~has_error,
        "drifted_anchor": pd.Index(fit.data.item_ids).isin(
            fit.report.get("anchors", {}).get("drifted", [])
        ),
    }
    columns["flags"] = _flags(count, correct, claims)
    return pd.DataFrame(columns)


def _slope_claims(
    fit: "FitResult", slope: np.ndarray, values: tuple[np.ndarray, np.ndarray], error: np.ndarray
) -> dict[str, np.ndarray]:
    """Which items have negative slopes, and which none to speak of.

    That is one below its standard error; one without a difficulty, however small its error is said
    to be; and all of them where all models have the same ability.
    """
    strongest = np.argmax(np.abs(slope), axis=1)
    is_scored = fit.data.totals("models")[0] > 0
    is_alike = dims_without_spread(np.asarray(fit.parameters.ability), is_scored)
    is_weak = ~(np.abs(values[1]) > error) | np.isnan(values[0]) | np.all(is_alike)
    return {
        "negative_slope": np.take_along_axis(slope, strongest[:, None], axis=1)[:, 0] < 0,
        "weak_slope": is_weak,
    }


def _is_weak(fit: "FitResult", name: str) -> np.ndarray:
    """Items whose asymptote (or their group's) is hardly better known than by its prior alone."""
    error = np.asarray(getattr(fit.parameters, f"{name}_se"), np.float64)
    prior = fit.report.get("priors", {}).get(_PRIOR_OF[name], [1.0, 1.0])
    # A list is what earlier versions wrote.
    a, b = beta_numbers(prior) if isinstance(prior, str) else (float(prior[0]), float(prior[1]))
    spread = np.sqrt(a * b / (a + b + 1)) / (a + b)
    return ~(error <= _WEAK_SHARE * spread) & (error > 0)


def _is_unbounded(
    fit: "FitResult", slope: np.ndarray, intercept: np.ndarray, correct: np.ndarray
) -> np.ndarray:
    """Items whose estimates run away because the priors that would hold them are off."""
    found = np.zeros(len(intercept), bool)
    if fit.integrated == "items":
        return found
    priors = fit.report.get("priors", {})
    if priors.get("slope") == "off":
        found |= np.max(np.abs(slope), axis=1) > UNBOUNDED
    if priors.get("intercept") == "off":
        found |= (np.abs(intercept) > UNBOUNDED) | (correct == 0) | (correct == 1)
    return found


def ability_table(fit: "FitResult") -> pd.DataFrame:
    """The columns of `models.csv`."""
    fitted = fit.parameters
    count, correct = fit.data.totals("models")
    ability = np.asarray(fitted.ability, np.float64)
    covariance = np.asarray(fitted.ability_covariance, np.float64)
    error = _roots(np.diagonal(covariance, axis1=1, axis2=2))
    clustered = np.asarray(fitted.ability_se_clustered, np.float64)
    dims = ability.shape[1]
    columns = {"model_id": fit.data.model_ids} | _metadata(fit.data.model_metadata, "models")
    columns |= {f"dim{k + 1}_ability": ability[:, k] for k in range(dims)}
    columns |= {f"dim{k + 1}_ability_se": error[:, k] for k in range(dims)}
    columns |= {f"dim{k + 1}_ability_se_clustered": clustered[:, k] for k in range(dims)}
    columns["expected_score"] = np.asarray(fitted.expected_score, np.float64)
    if fitted.effect is not None:
        effect = np.asarray(fitted.effect, np.float64)
        columns |= {f"{name}_effect": effect[:, g] for g, name in enumerate(fit.groups()[1])}
    flags = _flags(count, correct, {"no_error": ~np.all(np.isfinite(error), axis=1)})
    columns |= {"n_responses": count, "p_correct": correct, "flags": flags}
    return pd.DataFrame(columns)


def _roots(variance: np.ndarray) -> np.ndarray:
    """Standard errors: NaN (flagged `no_error`) where a variance is negative or not finite."""
    is_variance = np.isfinite(variance) & (variance >= 0)
    return np.where(is_variance, np.sqrt(np.where(is_variance, variance, 0)), np.nan)


def _metadata(table: pd.DataFrame, kind: str) -> dict[str, np.ndarray]:
    names = sorted(table.columns, key=lambda name: name != "benchmark")
    return {metadata_name(str(name), kind): table[name].to_numpy() for name in names}


def metadata_name(name: str, kind: str) -> str:
    """What a metadata column is called in `items.csv` or `models.csv`.

    One with the name of a result (`difficulty`, say) is put out as `input_difficulty`.
    """
    return f"input_{name}" if _RESULT_NAMES[kind].fullmatch(name) else name


def difficulty_and_discrimination(
    slope: np.ndarray, intercept: np.ndarray, correlation: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Location and signed slope at one dim; at more MDIFF and MDISC.

    `discrimination = sqrt(slope' Phi slope)`, Phi the abilities' correlations, and
    `difficulty = -intercept / discrimination`, NaN where that divides by noise.
    """
    if slope.shape[1] == 1:
        discrimination = slope[:, 0]
    else:
        discrimination = np.sqrt(np.sum((slope @ correlation) * slope, axis=1))
    with np.errstate(divide="ignore", invalid="ignore"):
        has_place = np.abs(discrimination) > _SMALLEST_DISCRIMINATION
        return np.where(has_place, -intercept / discrimination, np.nan), discrimination


def _derived(
    slope: np.ndarray, intercept: np.ndarray, covariance: np.ndarray, correlation: np.ndarray
) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Difficulty and discrimination with their delta-method errors.

    The gradient of difficulty is `-1 / discrimination` in the intercept and
    `-difficulty / discrimination` in the discrimination.
    """
    difficulty, discrimination = difficulty_and_discrimination(slope, intercept, correlation)
    if slope.shape[1] == 1:
        direction = np.ones_like(slope)
    else:
        size = np.where(discrimination > 0, discrimination, 1)[:, None]
        direction = slope @ correlation / size
    with np.errstate(divide="ignore", invalid="ignore"):
        gradient = np.concatenate([direction * difficulty[:, None], np.ones_like(slope[:, :1])], 1)
        variance = np.einsum("ja,jab,jb->j", gradient, covariance, gradient)
        difficulty_se = _roots(variance) / np.abs(discrimination)
    discrimination_se = _roots(
        np.einsum("ja,jab,jb->j", direction, covariance[:, :-1, :-1], direction)
    )
    return (difficulty, discrimination), (difficulty_se, discrimination_se)


def _loading_errors(
    slope: np.ndarray, covariance: np.ndarray, correlation: np.ndarray
) -> np.ndarray:
    """Delta method: `dL_k / da_l = (delta_kl - L_k (Phi L)_l) / sqrt(1.702^2 + a' Phi a)`."""
    loading = loadings(slope, correlation)
    along = loading @ correlation
    jacobian = np.eye(slope.shape[1]) - loading[:, :, None] * along[:, None]
    size = np.sqrt(SCALE**2 + np.sum((slope @ correlation) * slope, axis=1))
    jacobian /= size[:, None, None]
    return _roots(np.einsum("jkl,jlm,jkm->jk", jacobian, covariance[:, :-1, :-1], jacobian))


def _flags(count: np.ndarray, correct: np.ndarray, more: dict[str, np.ndarray]) -> np.ndarray:
    """Names of the flags of each row, semicolon-separated."""
    claims = {
        "no_responses": count == 0,
        "few_responses": (count > 0) & (count <= FEW_RESPONSES),
        "all_right": correct == 1,
        "all_wrong": correct == 0,
    } | more
    flags = np.full(len(count), "", object)
    for name, holds in claims.items():
        separator = np.where(flags[holds] == "", "", ";")
        flags[holds] = flags[holds] + separator + name
    return flags

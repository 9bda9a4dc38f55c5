"""What each benchmark measures: the dims its items load on, and whether that is what it says.

Any item column will do in place of `benchmark`: a format, a language, a sub-category.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from scipy import stats

from irtjax.data.responses import ResponseMatrix
from irtjax.errors import InputError
from irtjax.fit.result import FitResult
from irtjax.fit.rotation import loadings
from irtjax.fit.tables import slope_and_intercept

__all__ = ["CLEAR_SHARE", "FEWEST_ITEMS", "SIGNIFICANT", "dims_by_value", "expected_dims"]
__all__ += ["mixed_signals"]

# A benchmark's correlation with an ability has a sign when its adjusted p-value is below this.
SIGNIFICANT = 0.05
# A dim is clearly what some items measure when it has this share of their discrimination: one and a
# half times what the others have together.
CLEAR_SHARE = 0.6
# Fewer items of a sub-category say nothing of what it measures.
FEWEST_ITEMS = 10
# Fewer models have no correlation to speak of.
_FEWEST_MODELS = 4


def dims_by_value(fit: FitResult, columns: str | Sequence[str] = "benchmark") -> pd.DataFrame:
    """What the items of each value of some metadata columns measure.

    Args:
        fit: in the frame that is wanted (`irtjax.rotate`).
        columns: of the item metadata; items without a value are left out of that column.

    Returns:
        A row for each value and dim: `column`, `value`, `n_items`, `dim` (1, 2, ...),
        `mean_loading` (`slope_k / sqrt(1.702^2 + slope' Phi slope)`), `mean_slope` (logits a
        standard deviation), `discrimination_share` (of the dim in the sum of `slope' Phi slope`
        over the items; where dims correlate, what two have together is shared out),
        `is_dominant` (the largest share), `correlation` of the models' mean responses to these
        items with the ability, `n_models` it is over, `p_value` (t test of no correlation),
        `p_adjusted` (Benjamini & Hochberg 1995, over all rows), and `sign`: 1 where the average
        rises with the ability, -1 where it falls, 0 where `p_adjusted` does not tell.

    Raises:
        InputError: no such column, or one without any value.

    >>> import irtjax as ij
    >>> data = ij.simulate(ij.ModelSpec(dims=2), n_models=40, n_items=200, n_benchmarks=3).data
    >>> table = dims_by_value(ij.fit(data, ij.ModelSpec(dims=2)))
    >>> len(table), round(float(table["discrimination_share"].sum()), 6)
    (6, 3.0)
    """
    if not isinstance(fit, FitResult):
        raise InputError(f"dims_by_value takes a FitResult, not {type(fit).__name__}")
    names = [columns] if isinstance(columns, str) else list(columns)
    if not names:
        raise InputError("no columns to look at; name one of the items' metadata, as 'benchmark'")
    parts = [
        _described(fit, *_codes(fit.data, name)).assign(column=name)
        for name in dict.fromkeys(names)
    ]
    table = pd.concat(parts, ignore_index=True)
    table["p_adjusted"] = _adjusted(table["p_value"].to_numpy())
    is_clear = table["p_adjusted"] < SIGNIFICANT
    table["sign"] = np.where(is_clear, np.sign(table["correlation"]), 0).astype(int)
    order = ["column", "value", "n_items", "dim", "mean_loading", "mean_slope"]
    order += ["discrimination_share", "is_dominant", "correlation", "n_models", "p_value"]
    return table[[*order, "p_adjusted", "sign"]]


def expected_dims(fit: FitResult, expected: str, *, column: str = "benchmark") -> pd.DataFrame:
    """Whether benchmarks measure what a declared column says of them.

    The dim of a category is the one with the largest mean share of the discrimination of its
    benchmarks, each counting the same. So a benchmark cannot be judged that is alone in its
    category, nor one whose items tell models apart along no dim, nor any by a fit of one dim; what
    falls with its dim is not as expected all the same.

    Args:
        fit: in the frame that is wanted.
        expected: item column with what each item is said to measure.
        column: item column of the benchmarks. One with items of several categories has a row each.

    Returns:
        A row for each benchmark and category, those that are not as expected first: `value` (of
        `column`), `category`, `n_items`, `expected_dim`, `dominant_dim`, `expected_share` and
        `dominant_share` (of the discrimination), `expected_correlation` (of the models' averages
        with the ability of the category), `sign` (of the average with the dominant dim: -1 falls),
        `is_as_expected` (the same dim, and not falling with it; missing where that cannot be
        judged), and `reason`, why not or why it cannot be judged.

    Raises:
        InputError: no such columns, or none with values of both.
    """
    pair = _pairs(fit, column, expected)
    table = dims_by_value(_with_column(fit, _PAIR, pair.astype("string")), _PAIR)
    table = table.astype({"value": int})
    share, correlation, sign = (
        table.pivot(index="value", columns="dim", values=name)
        for name in ("discrimination_share", "correlation", "sign")
    )
    found = _named_pairs(fit, pair, column, expected).loc[share.index]
    # Where nothing discriminates any dim will do: it is not judged.
    known = share.fillna(0)
    of_category = known.groupby(found["category"].to_numpy()).mean().idxmax(axis=1)
    dominant, wanted = known.idxmax(axis=1), found["category"].map(of_category)
    rows = np.arange(len(found))
    at_wanted = rows, share.columns.get_indexer(pd.Index(wanted))
    at_dominant = rows, share.columns.get_indexer(pd.Index(dominant))
    found = found.assign(
        n_items=table.groupby("value")["n_items"].first(),
        expected_dim=wanted,
        dominant_dim=dominant,
        expected_share=share.to_numpy()[at_wanted],
        dominant_share=share.to_numpy()[at_dominant],
        expected_correlation=correlation.to_numpy()[at_wanted],
        sign=sign.to_numpy()[at_dominant],
    )
    tells = found["dominant_share"].notna()
    n_telling = found["category"].map(found["category"][tells].value_counts())
    against = np.where(tells, [_reason(row) for row in found.itertuples()], "")
    unknown = [
        _reason_not_judged(share.shape[1], *each) for each in zip(tells, n_telling, strict=True)
    ]
    found["reason"] = np.where(against == "", unknown, against)
    is_expected = pd.Series(against == "", found.index, dtype="boolean")
    found["is_as_expected"] = is_expected.mask(is_expected & (found["reason"] != ""))
    order = [name for name in found.columns if name not in ("is_as_expected", "reason")]
    found = found[[*order, "is_as_expected", "reason"]]
    # What is not as expected first, then what nobody can say.
    place = found["is_as_expected"].to_numpy(float, na_value=0.5)
    return found.iloc[np.argsort(place, kind="stable")].reset_index(drop=True)


def mixed_signals(fit: FitResult, within: str, *, column: str = "benchmark") -> pd.DataFrame:
    """Benchmarks whose sub-categories measure different things.

    A sub-category of `FEWEST_ITEMS` items or more measures a dim where it has `CLEAR_SHARE` of its
    items' discrimination, and rises or falls with it by the adjusted p-value of its correlation. A
    benchmark is mixed where its sub-categories measure two dims, or one in both directions.

    Args:
        fit: in the frame that is wanted.
        within: item column of the sub-categories.
        column: item column of the benchmarks.

    Returns:
        A row for each sub-category of each benchmark, mixed benchmarks first: `value` (of
        `column`), `category` (of `within`), `n_items`, `dominant_dim`, `dominant_share`,
        `correlation` and `sign` with that dim, `signal` (`dim1+`, `dim2-`, ...; empty where none
        is clear), and `is_mixed`, of the benchmark.

    Raises:
        InputError: no such columns, or none with values of both.
    """
    pair = _pairs(fit, column, within)
    table = dims_by_value(_with_column(fit, _PAIR, pair.astype("string")), _PAIR)
    top = table[table["is_dominant"]].astype({"value": int}).set_index("value").sort_index()
    found = _named_pairs(fit, pair, column, within).loc[top.index]
    found = found.assign(
        n_items=top["n_items"],
        dominant_dim=top["dim"],
        dominant_share=top["discrimination_share"],
        correlation=top["correlation"],
        sign=top["sign"],
    )
    is_clear = (found["dominant_share"] >= CLEAR_SHARE) & (found["n_items"] >= FEWEST_ITEMS)
    ending = found["sign"].map({1: "+", -1: "-"})
    signal = "dim" + found["dominant_dim"].astype(str) + ending.fillna("")
    found["signal"] = signal.where(is_clear & ending.notna(), "")
    several = found[found["signal"] != ""].groupby("value")["signal"].nunique() > 1
    found["is_mixed"] = found["value"].map(several).eq(True)
    return found.sort_values("is_mixed", ascending=False, kind="stable").reset_index(drop=True)


_PAIR = "benchmark and category"


def _described(fit: FitResult, codes: Int[np.ndarray, " items"], names: list[str]) -> pd.DataFrame:
    """Loadings, shares and correlations of each value; items with code -1 are left out."""
    slope = slope_and_intercept(fit)[0]
    correlation = fit.ability_correlations()
    n_values, dims = len(names), slope.shape[1]
    count = np.bincount(codes[codes >= 0], minlength=n_values)
    part = slope * (slope @ correlation)
    sums = [
        _by_value(values, codes, n_values) for values in (loadings(slope, correlation), slope, part)
    ]
    total = sums[2].sum(axis=1, keepdims=True)
    share = np.divide(sums[2], total, out=np.full_like(sums[2], np.nan), where=total > 0)
    found, n_models = _correlations(fit, codes, n_values)
    dominant = np.argmax(np.nan_to_num(share, nan=-np.inf), axis=1)
    is_dominant = np.arange(dims) == dominant[:, None]
    return pd.DataFrame(
        {
            "value": np.repeat(np.array(names, object), dims),
            "n_items": np.repeat(count, dims),
            "dim": np.tile(np.arange(1, dims + 1), n_values),
            "mean_loading": (sums[0] / count[:, None]).ravel(),
            "mean_slope": (sums[1] / count[:, None]).ravel(),
            "discrimination_share": share.ravel(),
            "is_dominant": is_dominant.ravel(),
            "correlation": found.ravel(),
            "n_models": np.repeat(n_models, dims),
            "p_value": _p_values(found, n_models[:, None]).ravel(),
        }
    )


def _by_value(
    values: Float[np.ndarray, "items dims"], codes: Int[np.ndarray, " items"], n_values: int
) -> Float[np.ndarray, "values dims"]:
    """Sums over the items of each value."""
    seen = codes >= 0
    return np.stack([np.bincount(codes[seen], of[seen], n_values) for of in values.T], axis=1)


def _correlations(
    fit: FitResult, codes: Int[np.ndarray, " items"], n_values: int
) -> tuple[Float[np.ndarray, "values dims"], Int[np.ndarray, " values"]]:
    """Of the models' averages over the items of each value with each ability."""
    average = _averages(fit.data, codes, n_values)
    ability = np.asarray(fit.parameters.ability, np.float64)
    found = np.full((n_values, ability.shape[1]), np.nan)
    is_seen = ~np.isnan(average)
    for g in range(n_values):
        seen = is_seen[:, g]
        if np.count_nonzero(seen) < _FEWEST_MODELS or np.ptp(average[seen, g]) == 0:
            continue
        away = average[seen, g] - average[seen, g].mean()
        moved = ability[seen] - ability[seen].mean(axis=0)
        size = np.linalg.norm(away) * np.linalg.norm(moved, axis=0)
        found[g] = np.divide(away @ moved, size, out=found[g], where=size > 0)
    return np.clip(found, -1, 1), is_seen.sum(axis=0)


def _averages(
    data: ResponseMatrix, codes: Int[np.ndarray, " items"], n_values: int
) -> Float[np.ndarray, "models values"]:
    """Mean response of each model to the items of each value, NaN without responses."""
    if data.dense is not None and data.dense_weight is None:
        order = np.argsort(codes, kind="stable")
        bounds = np.searchsorted(codes[order], np.arange(n_values + 1))
        total = np.zeros((data.n_models, n_values))
        count = np.zeros_like(total)
        for g in range(n_values):
            part = data.dense[:, order[bounds[g] : bounds[g + 1]]]
            count[:, g] = np.count_nonzero(part >= 0, axis=1)
            total[:, g] = np.sum(part, axis=1, where=part >= 0, dtype=np.float64)
    else:
        cells = data.cells()
        code = codes[cells.item_index]
        seen = code >= 0
        place = cells.model_index[seen].astype(np.int64) * n_values + code[seen]
        weight = cells.weight[seen].astype(np.float64)
        size = data.n_models * n_values
        count = np.bincount(place, weight, size).reshape(-1, n_values).astype(np.float64)
        right = np.bincount(place, weight * cells.response[seen], size)
        total = right.reshape(-1, n_values).astype(np.float64)
    return np.divide(total, count, out=np.full_like(total, np.nan), where=count > 0)


def _p_values(correlation: np.ndarray, n: np.ndarray) -> np.ndarray:
    """Two-sided, of Student's t with n - 2 degrees of freedom: `r sqrt((n - 2) / (1 - r^2))`."""
    free = np.maximum(n - 2, 1)
    with np.errstate(divide="ignore"):
        t = np.abs(correlation) * np.sqrt(free / (1 - correlation**2))
    return 2 * stats.t.sf(t, free)


def _adjusted(p: np.ndarray) -> np.ndarray:
    adjusted = np.full(len(p), np.nan)
    is_known = ~np.isnan(p)
    if is_known.any():
        adjusted[is_known] = stats.false_discovery_control(p[is_known])
    return adjusted


def _values(data: ResponseMatrix, column: str) -> pd.Series:
    """The column as text, missing where an item has no value."""
    if column not in data.item_metadata:
        have = ", ".join(map(str, data.item_metadata.columns)) or "none"
        raise InputError(f"no item metadata column {column!r}; columns: {have}")
    values = data.item_metadata[column].reset_index(drop=True)
    values = values.astype("string")
    values = values.mask(values == "")
    if values.isna().all():
        raise InputError(f"no item has a value in the column {column!r}; choose another")
    return values


def _codes(data: ResponseMatrix, column: str) -> tuple[Int[np.ndarray, " items"], list[str]]:
    """Code of each item (-1 without a value), and the values in order of first appearance."""
    codes, names = pd.factorize(_values(data, column))
    return codes.astype(np.int64), [str(name) for name in names]


def _pairs(fit: FitResult, column: str, other: str) -> pd.Series:
    """A code for each item's pair of values, missing without both."""
    if not isinstance(fit, FitResult):
        raise InputError(f"benchmarks are judged by a FitResult, not {type(fit).__name__}")
    both = [_values(fit.data, name) for name in (column, other)]
    has_both = both[0].notna() & both[1].notna()
    if not has_both.any():
        raise InputError(f"no item has a value in both {column!r} and {other!r}")
    frame = pd.DataFrame({"value": both[0], "category": both[1]})[has_both]
    codes = frame.groupby(["value", "category"], sort=False).ngroup()
    return codes.reindex(both[0].index).astype("Int64")


def _named_pairs(fit: FitResult, pair: pd.Series, column: str, other: str) -> pd.DataFrame:
    """The two values of each pair; the index is its code."""
    table = pd.DataFrame(
        {"value": _values(fit.data, column), "category": _values(fit.data, other), "code": pair}
    ).dropna()
    table = table.drop_duplicates("code").astype({"value": str, "category": str})
    return table.set_index(table["code"].astype(int)).drop(columns="code")


def _with_column(fit: FitResult, name: str, values: pd.Series) -> FitResult:
    metadata = fit.data.item_metadata
    metadata = metadata.assign(**{name: values.set_axis(metadata.index)})
    return dataclasses.replace(fit, data=fit.data.replace(item_metadata=metadata))


def _reason(row: object) -> str:
    """Why a benchmark is not as expected, in words; empty where it is or who knows."""
    dominant, wanted = row.dominant_dim, row.expected_dim  # type: ignore[attr-defined]
    reasons = []
    if dominant != wanted:
        reasons.append(
            f"measures dim {dominant} ({row.dominant_share:.0%} of its discrimination), "  # type: ignore[attr-defined]
            f"{row.category} is dim {wanted} ({row.expected_share:.0%})"  # type: ignore[attr-defined]
        )
    if row.sign < 0:  # type: ignore[attr-defined]
        reasons.append(f"falls with dim {dominant}")
    return "; ".join(reasons)


def _reason_not_judged(dims: int, tells: bool, n_telling: float) -> str:
    """Why nobody can say whether a benchmark is as expected, empty where one can."""
    if not tells:
        return "cannot be judged: its items tell models apart along no dim"
    if dims == 1:
        return "cannot be judged: the fit has one dim, which all share"
    if n_telling == 1:
        return "cannot be judged: no other benchmark of its category says which dim that is"
    return ""

"""Two models side by side: where one is better, on what kind of items, and on which items.

For a version regression, or a variant with something removed. Differences are B minus A.
"""

import dataclasses
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from irtjax.checks import check_number, check_path, counted, shown
from irtjax.data.responses import ResponseMatrix
from irtjax.errors import InputError, IrtjaxWarning
from irtjax.fit.all_responses import all_responses
from irtjax.fit.prediction import cell_probabilities
from irtjax.fit.result import FitResult
from irtjax.fit.rotation import loadings
from irtjax.fit.tables import slope_and_intercept
from irtjax.io import write_json, write_table

__all__ = ["Comparison", "compare_models"]

_Z = stats.norm.ppf(0.975)
_FEWEST = 2  # items that a t-test needs
_FEWEST_OF_DIM = 5  # of fewer items the answers are often all alike, and there is no test
_NO_VALUE = "(no value)"  # of items without one in a column: they are counted, not dropped
_STEP = 0.01  # of abilities, for slopes of expected scores


@dataclasses.dataclass(frozen=True, eq=False)
class Comparison:
    """What sets two models apart.

    Attributes:
        dims: a row a dim: abilities, their difference with its 95% interval, and the responses'
            difference on the items that discriminate most in it.
        values: a row a value of each column compared: means, difference, test, and the
            difference that the fit expects with its interval.
        gained: items that A got wrong and B right, the most surprising first.
        lost: items that A got right and B wrong, the most surprising first.
    """

    dims: pd.DataFrame
    values: pd.DataFrame
    gained: pd.DataFrame
    lost: pd.DataFrame

    def save(self, folder: str | Path) -> None:
        """Write `dims.csv`, `values.csv`, `gained.csv`, `lost.csv`, and `compare.json`, which
        lists them.

        Raises:
            InputError: the folder cannot be written.
        """
        folder = check_path("the folder to save to", folder)
        folder.mkdir(parents=True, exist_ok=True)
        tables = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        for name, table in tables.items():
            write_table(table, folder / f"{name}.csv")
        write_json(
            {"files": ["compare.json", *(f"{n}.csv" for n in tables)]}, folder / "compare.json"
        )


def compare_models(
    fit: FitResult,
    model_a: str,
    model_b: str,
    *,
    by: Iterable[str] | None = None,
    top_share: float = 0.1,
) -> Comparison:
    """Compare two models of a fit.

    Args:
        fit: in which both answered.
        model_a: id of the first (the old version).
        model_b: id of the second (the new one).
        by: item columns whose values are compared; without, the fit's group, or `benchmark` where
            the items have one.
        top_share: share of the items, by loading, that stand for a dim; five items at least.

    Returns:
        Differences by dim and by value, and items gained and lost. Tests are of the items that
        both answered, held out of the fit or not: paired t-tests, p-values adjusted by Holm within
        each table; Cohen's d is the difference over the pooled standard deviation of both models'
        responses.

    Raises:
        InputError: a model or a column that is not there, the same model twice, fewer than two
            items that both answered.
    """
    check_number("top_share", top_share, 1e-9, 1)
    rows = [_row(fit.data, model) for model in (model_a, model_b)]
    if rows[0] == rows[1]:
        raise InputError(f"{shown(model_a)} is compared with itself; name two models")
    data = all_responses(fit)
    responses = np.stack([_responses(data, row) for row in rows])
    is_common = np.all(responses >= 0, axis=0)
    if np.count_nonzero(is_common) < _FEWEST:
        raise InputError(
            f"{shown(model_a)} and {shown(model_b)} have fewer than two items that both answered"
        )
    columns = _columns(fit, by)
    item = np.flatnonzero(is_common)
    pair = _Pair(fit, (rows[0], rows[1]), item, responses[:, item].astype(np.float64))
    expected, items = pair.predicted(), fit.item_parameters()
    gained, lost = (_changed(pair, expected, items, sign) for sign in (1, -1))
    values = _by_value(pair, expected, columns)
    return Comparison(_by_dim(pair, top_share), values, gained, lost)


@dataclasses.dataclass(frozen=True, eq=False)
class _Pair:
    """Two models' rows, the items that both answered, and their responses to them (2 x items)."""

    fit: FitResult
    rows: tuple[int, int]
    item: np.ndarray
    response: np.ndarray

    def predicted(self, moved: np.ndarray | float = 0.0) -> np.ndarray:
        """Probability of a right response to the items in common, 2 x items.

        Args:
            moved: added to the abilities.
        """
        parameters = self.fit.prediction_parameters()
        parameters = dataclasses.replace(parameters, ability=parameters.ability + moved)
        return np.stack(
            [
                cell_probabilities(parameters, np.full(len(self.item), row), self.item)
                for row in self.rows
            ]
        )


def _by_dim(pair: _Pair, top_share: float) -> pd.DataFrame:
    fit = pair.fit
    slope = slope_and_intercept(fit)[0]
    loading = loadings(slope, fit.ability_correlations())[pair.item]
    ability = np.asarray(fit.parameters.ability, np.float64)[list(pair.rows)]
    covariance = np.asarray(fit.parameters.ability_covariance, np.float64)[list(pair.rows)]
    variance = np.diagonal(covariance, axis1=1, axis2=2)
    count = _items_of_dim(len(pair.item), top_share)
    found = []
    for k in range(fit.spec.dims):
        chosen = np.argsort(-np.abs(loading[:, k]), kind="stable")[:count]
        difference = ability[1, k] - ability[0, k]
        error = float(np.sqrt(variance[:, k].sum()))
        # An item that falls with the ability speaks for the model that got it wrong.
        signed = np.where(
            loading[chosen, k] < 0, 1 - pair.response[:, chosen], pair.response[:, chosen]
        )
        found.append(
            {
                "dim": f"dim{k + 1}",
                "ability_a": ability[0, k],
                "ability_b": ability[1, k],
                "difference": difference,
                "difference_se": error,
                "difference_low": difference - _Z * error,
                "difference_high": difference + _Z * error,
            }
            | _tested(signed)
        )
    return _with_adjusted(pd.DataFrame(found))


def _items_of_dim(n_items: int, top_share: float) -> int:
    count, least = round(top_share * n_items), min(_FEWEST_OF_DIM, n_items)
    if count < least:
        warnings.warn(
            f"a share of {top_share:g} of {n_items:,} items is {counted(count, 'item')}; the "
            f"{least} of the highest loadings stand for a dim",
            IrtjaxWarning,
            stacklevel=4,
        )
    return max(count, least)


def _by_value(pair: _Pair, expected: np.ndarray, columns: list[str]) -> pd.DataFrame:
    gradient = _gradients(pair)
    covariance = np.asarray(pair.fit.parameters.ability_covariance, np.float64)[list(pair.rows)]
    metadata = pair.fit.data.item_metadata
    groups = [("all items", "", np.arange(len(pair.item)))]
    for column in columns:
        codes, names = pd.factorize(metadata[column].iloc[pair.item].astype(object))
        groups += [(column, str(name), np.flatnonzero(codes == g)) for g, name in enumerate(names)]
        if (codes < 0).any():
            groups.append((column, _NO_VALUE, np.flatnonzero(codes < 0)))
    found = []
    for column, value, which in groups:
        difference = float(np.mean(expected[1, which] - expected[0, which]))
        along = gradient[:, which].mean(axis=1)
        error = float(np.sqrt(np.einsum("mk,mkl,ml->", along, covariance, along)))
        found.append(
            {"column": column, "value": value}
            | _tested(pair.response[:, which])
            | {
                "expected_difference": difference,
                "expected_low": difference - _Z * error,
                "expected_high": difference + _Z * error,
            }
        )
    return _with_adjusted(pd.DataFrame(found))


def _gradients(pair: _Pair) -> np.ndarray:
    """`dP/dtheta` of both models' expected responses: 2 x items x dims."""
    dims = pair.fit.spec.dims
    slopes = [
        (pair.predicted(_STEP * unit) - pair.predicted(-_STEP * unit)) / (2 * _STEP)
        for unit in np.eye(dims, dtype=np.float32)
    ]
    return np.stack(slopes, axis=2)


def _tested(response: np.ndarray) -> dict[str, Any]:
    """Means, difference, paired t-test and Cohen's d of two rows of responses."""
    away = response[1] - response[0]
    mean, n = response.mean(axis=1), response.shape[1]
    pooled = np.sqrt(response.var(axis=1, ddof=1).mean()) if n >= _FEWEST else np.nan
    has_test = n >= _FEWEST and np.ptp(away) > 0
    test = stats.ttest_rel(response[1], response[0]) if has_test else None
    return {
        "n_items": n,
        "mean_a": mean[0],
        "mean_b": mean[1],
        "mean_difference": float(away.mean()),
        "cohens_d": float(away.mean() / pooled) if pooled > 0 else np.nan,
        "t": float(test.statistic) if test is not None else np.nan,
        "p_value": float(test.pvalue) if test is not None else np.nan,
    }


def _with_adjusted(table: pd.DataFrame) -> pd.DataFrame:
    """With Holm's adjusted p-values beside the p-values."""
    p = table["p_value"].to_numpy()
    adjusted, has_test = np.full(len(p), np.nan), np.flatnonzero(~np.isnan(p))
    order = has_test[np.argsort(p[has_test], kind="stable")]
    steps = p[order] * np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1)
    table.insert(list(table.columns).index("p_value") + 1, "p_adjusted", adjusted)
    return table


def _changed(pair: _Pair, predicted: np.ndarray, items: pd.DataFrame, sign: int) -> pd.DataFrame:
    """Items on which B is better (sign 1) or worse (-1), the least expected first."""
    away = sign * (pair.response[1] - pair.response[0])
    which = np.flatnonzero(away > 0)
    expected = predicted[:, which]
    better, worse = (1, 0) if sign > 0 else (0, 1)
    # How likely such a change was: the better one right, the other wrong.
    chance = expected[better] * (1 - expected[worse])
    order = np.argsort(chance, kind="stable")
    items = items.iloc[pair.item[which]].reset_index(drop=True)
    metadata = [name for name in pair.fit.data.item_metadata.columns if name in items]
    table = items[["item_id", *metadata]].assign(
        response_a=pair.response[0, which],
        response_b=pair.response[1, which],
        probability_a=expected[0],
        probability_b=expected[1],
        chance=chance,
        difficulty=items["difficulty"],
        discrimination=items["discrimination"],
        flags=items["flags"],
    )
    return table.iloc[order].reset_index(drop=True)


def _row(data: ResponseMatrix, model: str) -> int:
    found = np.flatnonzero(data.model_ids == model)
    if len(found) == 0:
        near = ", ".join(map(str, data.model_ids[:5]))
        more = ", ..." if data.n_models > 5 else ""
        raise InputError(f"model {shown(model)} was not in the fit; models: {near}{more}")
    return int(found[0])


def _responses(data: ResponseMatrix, row: int) -> np.ndarray:
    """One model's responses, float32, -1 where missing."""
    if data.dense is not None:
        return data.dense[row].astype(np.float32)
    cells = data.cells()
    is_here = cells.model_index == row
    found = np.full(data.n_items, -1, np.float32)
    found[cells.item_index[is_here]] = cells.response[is_here]
    return found


def _columns(fit: FitResult, by: Iterable[str] | None) -> list[str]:
    metadata = fit.data.item_metadata
    if by is None:
        likely = fit.group or "benchmark"
        return [likely] if likely in metadata else []
    if isinstance(by, str):
        by = [by]
    columns = list(dict.fromkeys(by))
    for column in columns:
        if column not in metadata:
            known = ", ".join(map(str, metadata.columns)) or "none"
            raise InputError(f"items have no column {shown(column)}; their columns: {known}")
    return columns

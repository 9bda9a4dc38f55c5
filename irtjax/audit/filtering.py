"""Shorter benchmarks: BenchMIRT's filter, and how well short averages stand for long ones.

Source of the filter: Ai2 (2026), BenchMIRT: within quantile bins of difficulty the items that
discriminate most on a dim are kept, so that a short version is as hard as the long one.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from irtjax.checks import check_number, check_whole, counted, shown
from irtjax.errors import InputError
from irtjax.fit.alignment import align
from irtjax.fit.refits import refit_without
from irtjax.fit.result import FitResult
from irtjax.fit.tables import slope_and_intercept
from irtjax.select.api import select_items

__all__ = ["FEWEST_MODELS", "filter_items", "n_removed", "validate_filters"]

_N_BINS = 10
_MOST_GREEDY = 1_000
FEWEST_MODELS = 8


def filter_items(
    fit: FitResult,
    removed: float,
    *,
    dim: int = 1,
    by: str | None = None,
    n_bins: int = _N_BINS,
) -> pd.DataFrame:
    """Keep the items that discriminate most on a dim, equally many of every difficulty.

    Args:
        fit: the fit.
        removed: share of the items to remove, from 0 to below 1.
        dim: the ability to keep measuring (1, 2, ...).
        by: item column; the filter works within each of its values. Without, over all items.
        n_bins: quantile bins of difficulty along the dim (`-intercept / |slope|` on it).

    Returns:
        A row an item in the data's order: `item_id`, `by`'s column, `difficulty` along the dim,
        `slope` on the dim, `bin` (from 0, the easiest), `is_kept`. `round(removed n)` of all n
        items go. Each value of `by`, and within it each bin, loses its share of them; what whole
        items leave over is taken from the largest remainders, and of equal ones where the item
        that would go discriminates least.

    Raises:
        InputError: a share, dim or number of bins out of its bounds, a column that is not there,
            a share that leaves no item.
    """
    _check_removed(removed)
    check_whole("dim", dim, 1, fit.spec.dims)
    check_whole("n_bins", n_bins, 1)
    slope, intercept, _ = slope_and_intercept(fit)
    along = slope[:, dim - 1]
    with np.errstate(divide="ignore", invalid="ignore"):
        difficulty = np.where(along == 0, np.sign(-intercept) * np.inf, -intercept / np.abs(along))
    group = np.zeros(len(along), np.int64) if by is None else fit.data.groups(by)[0]
    found_bin = np.zeros(len(along), np.int64)
    for which in _parts(group, np.argsort(difficulty, kind="stable")):
        found_bin[which] = np.arange(len(which)) * n_bins // len(which)
    is_kept = ~_removed(along, group, found_bin, removed)
    columns: dict[str, Any] = {"item_id": fit.data.item_ids}
    if by is not None:
        columns[by] = fit.data.item_metadata[by].to_numpy()
    columns |= {"difficulty": difficulty, "slope": along, "bin": found_bin, "is_kept": is_kept}
    return pd.DataFrame(columns)


def _check_removed(removed: float) -> None:
    if not 0 <= check_number("removed", removed) < 1:
        raise InputError(f"removed is a share from 0 to below 1, not {shown(removed)}")


def n_removed(n_items: int, removed: float) -> int:
    """How many of so many items a share of them is: 2.5 items are 3."""
    # To rounding: .9 of 10 is 9, though .9 * 10 may fall short of it.
    return int(np.floor(removed * n_items + 0.5 + 1e-9))


def _removed(
    slope: np.ndarray, group: np.ndarray, found_bin: np.ndarray, removed: float
) -> np.ndarray:
    """Which items go: each group's part of all that go, and each bin's of those of its group."""
    total = n_removed(len(slope), removed)
    if total >= len(slope):
        raise InputError(
            f"removing {removed:g} of {counted(len(slope), 'item')} leaves none; remove a smaller "
            "share"
        )
    is_removed = np.zeros(len(slope), bool)
    groups = _parts(group, np.argsort(slope, kind="stable"))
    for part, count in zip(groups, _shared_out(total, groups, slope, removed), strict=True):
        bins = _parts(found_bin, part)
        for inside, n_gone in zip(bins, _shared_out(count, bins, slope, removed), strict=True):
            is_removed[inside[:n_gone]] = True
    return is_removed


def _parts(code: np.ndarray, items: np.ndarray) -> list[np.ndarray]:
    """These items by their code, each part in their order."""
    ordered = items[np.argsort(code[items], kind="stable")]
    return np.split(ordered, np.flatnonzero(np.diff(code[ordered])) + 1)


def _shared_out(
    total: int, parts: list[np.ndarray], slope: np.ndarray, removed: float
) -> list[int]:
    """How many items go from each part, `total` in all, by largest remainders.

    Args:
        total: within one item a part of the sum of the parts' shares.
        parts: items of each, the least discriminating first.
        slope: of all items.
        removed: share of every part.
    """
    exact = removed * np.array([len(part) for part in parts])
    count = np.floor(exact + 1e-9).astype(int)
    # Ties, of which equal parts have many, go by the item that would go next.
    following = [slope[part[n]] for part, n in zip(parts, count.tolist(), strict=True)]
    remainder = np.round(exact - count, 9)
    order = np.lexsort((following, -remainder))
    count[order[: total - int(count.sum())]] += 1
    return count.tolist()


def validate_filters(
    fit: FitResult,
    *,
    dims: int | Iterable[int] = 1,
    by: str | None = None,
    removed: Sequence[float] = (0.5, 0.9),
    halves: int = 4,
    seed: int = 0,
) -> pd.DataFrame:
    """How well averages over fewer items rank models that the choice of items has not seen.

    Half of the models are fitted and items chosen from that fit; the other half's averages over
    them are compared with their averages over all items and with their abilities in the full fit.

    Args:
        fit: of all models.
        dims: the abilities to keep measuring, one at a time.
        by: item column within whose values BenchMIRT's filter works a second time.
        removed: shares of the items to remove.
        halves: number of random halves.
        seed: of the halves and of the random items.

    Returns:
        A row for each dim, share and method (`filter`, `filter by COLUMN`, `selection`, which is
        `irtjax.select_items` for the dim, by `fisher` beyond 1,000 items, and `random`): `dim`,
        `removed`, `method`, `n_items`, and Pearson's and Spearman's correlation of the short
        average with the full average (`r_full`, `rho_full`) and with the ability (`r_ability`,
        `rho_ability`), means over halves, each with its standard error over them (`_se`).

    Raises:
        InputError: fewer than 8 models with responses, shares or dims out of bounds.
    """
    scored = np.flatnonzero(fit.data.totals("models")[0] > 0)
    if len(scored) < FEWEST_MODELS:
        raise InputError(
            f"short versions are checked with half of the models, which needs {FEWEST_MODELS} at "
            f"least, not {len(scored)}"
        )
    check_whole("halves", halves, 2)
    for share in removed:
        _check_removed(share)
    listed = [dims] if isinstance(dims, int) else list(dims)
    chosen_dims = [check_whole("dim", dim, 1, fit.spec.dims) for dim in listed]
    rng, matrix = np.random.default_rng(seed), fit.data.to_dense()
    full, ability = _means(matrix), np.asarray(fit.parameters.ability, np.float64)
    rows = []
    for half in range(halves):
        new = rng.permutation(scored)[len(scored) // 2 :]
        left_out = np.isin(np.arange(fit.data.n_models), new)
        learnt = align(refit_without(fit, models=left_out), fit)
        for dim in chosen_dims:
            for share in removed:
                for method, mask in _choices(learnt, share, dim, by, rng).items():
                    keys = {"dim": dim, "removed": share, "method": method, "half": half}
                    short, place = matrix[np.ix_(new, mask)], ability[new, dim - 1]
                    rows.append(keys | _judged(short, full[new], place))
    return _averaged(pd.DataFrame(rows))


def _judged(short: np.ndarray, full: np.ndarray, ability: np.ndarray) -> dict[str, float]:
    """What models' averages over fewer items say of their full averages and abilities."""
    mean = _means(short)
    found = _correlated(mean, full, "full") | _correlated(mean, ability, "ability")
    return {"n_items": short.shape[1]} | found


def _choices(
    learnt: FitResult, removed: float, dim: int, by: str | None, rng: np.random.Generator
) -> dict[str, np.ndarray]:
    kept = filter_items(learnt, removed, dim=dim)["is_kept"].to_numpy()
    found = {"filter": kept}
    if by is not None:
        within = filter_items(learnt, removed, dim=dim, by=by)["is_kept"].to_numpy()
        found[f"filter by {by}"] = within
    count = int(kept.sum())
    # Greedily one after the other takes minutes for many thousand items, and hardly matters there.
    criterion = "d-optimal" if count <= _MOST_GREEDY else "fisher"
    chosen = select_items(learnt, count, dim=dim, criterion=criterion)
    found["selection"] = np.isin(learnt.data.item_ids, list(chosen.item_ids))
    drawn = np.zeros(len(kept), bool)
    drawn[rng.choice(len(kept), count, replace=False)] = True
    return found | {"random": drawn}


def _means(matrix: np.ndarray) -> np.ndarray:
    """Each model's mean response, NaN without any; -1 is missing."""
    seen = matrix >= 0
    with np.errstate(invalid="ignore"):
        total = np.sum(matrix, axis=1, where=seen, dtype=np.float64)
        return np.asarray(total / seen.sum(axis=1), np.float64)


def _correlated(short: np.ndarray, other: np.ndarray, name: str) -> dict[str, float]:
    has_both = ~np.isnan(short) & ~np.isnan(other)
    x, y = short[has_both], other[has_both]
    if len(x) < 3 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return {f"r_{name}": np.nan, f"rho_{name}": np.nan}
    return {
        f"r_{name}": float(stats.pearsonr(x, y).statistic),
        f"rho_{name}": float(stats.spearmanr(x, y).statistic),
    }


def _averaged(rows: pd.DataFrame) -> pd.DataFrame:
    grouped = rows.drop(columns="half").groupby(["dim", "removed", "method"], sort=False)
    mean, error = grouped.mean(), grouped.sem()
    columns = {"n_items": mean["n_items"].round().astype(int)}
    for name in mean.columns.drop("n_items"):
        columns |= {name: mean[name], f"{name}_se": error[name]}
    return pd.DataFrame(columns).reset_index()

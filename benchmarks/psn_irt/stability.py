"""Table 4 of the paper: estimates of refits on some of the items against those of the full fit."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import pearsonr, spearmanr

from benchmarks.problems import Problem
from benchmarks.psn_irt.parts import drawn_items, restricted
from benchmarks.psn_irt.rows import ROWS, fitted
from irtjax.fit.result import FitResult

__all__ = ["PAPER", "PARAMETERS", "SHARES", "correlations", "stability"]

SHARES = (0.3, 0.5, 0.7)
PARAMETERS = ("ability", "discrimination", "difficulty", "guessing", "feasibility")
PAPER: Mapping[float, Mapping[str, float]] = {
    share: dict(zip(("difficulty", "discrimination", "guessing", "feasibility"), r, strict=True))
    for share, r in (
        (0.3, (0.9009, 0.8186, 0.8274, 0.9025)),
        (0.5, (0.7437, 0.7835, 0.8776, 0.9330)),
        (0.7, (0.9519, 0.7414, 0.8320, 0.9442)),
    )
}
_ROWS = ("psn-4pl", "default")


def _estimates(result: FitResult) -> dict[str, pd.Series]:
    items = result.item_parameters().set_index("item_id")
    ability = result.abilities().set_index("model_id")["dim1_ability"]
    return {"ability": ability} | {name: items[name] for name in PARAMETERS[1:]}


def correlations(part: FitResult, full: FitResult) -> dict[str, dict[str, float]]:
    """Pearson's and Spearman's correlation of each parameter between two fits, by id.

    Over items that have the parameter in both; parameters that do not vary (asymptotes that the
    family fixes or all items share) are left out.
    """
    found: dict[str, dict[str, float]] = {"pearson": {}, "spearman": {}}
    ours, theirs = _estimates(part), _estimates(full)
    for name in PARAMETERS:
        both = pd.concat([ours[name], theirs[name]], axis=1, join="inner").dropna().to_numpy(float)
        if np.any(np.ptp(both, axis=0) < 1e-6):
            continue
        found["pearson"][name] = float(pearsonr(both[:, 0], both[:, 1]).statistic)
        found["spearman"][name] = float(spearmanr(both[:, 0], both[:, 1]).statistic)
    return found


def stability(problem: Problem, seed: int = 0) -> list[dict[str, Any]]:
    """Correlations with the full fit, for each row and share of the items."""
    found = []
    for row in (row for row in ROWS if row.name in _ROWS):
        full = fitted(row, problem, seed).fit
        assert full is not None
        for share in SHARES:
            items = drawn_items(problem.train.n_items, round(share * problem.train.n_items), seed)
            part = fitted(row, restricted(problem, items), seed).fit
            assert part is not None
            found.append({"name": row.name, "share": share} | correlations(part, full))
    return found

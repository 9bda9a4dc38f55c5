"""Declared benchmark scores of models against the responses that should give them.

The published average is one of all items of the benchmark, which are taken to be those of the
matrix. A model that answered all of them must reach it, but for the tolerance and the rounding of
the published figure; one that answered a sample of n of N items may be off by the sample's error,
`sqrt(p (1 - p) / (n - 1) (1 - n / N))`.
"""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy.stats import norm

from irtjax.audit.integrity.accusations import Row
from irtjax.audit.integrity.testing import FALSE_ALARMS, adjusted
from irtjax.checks import counted, shown
from irtjax.errors import InputError, IrtjaxWarning

__all__ = ["TOLERANCE", "check_published", "published_rows", "published_table"]

# Two evaluations of one model differ in prompt, shots and sampling: on open leaderboards by one to
# three points. Accused is only what certainly differs by more.
TOLERANCE = 0.03
_MOST_DECIMALS = 6
_MOST_ROUNDING = 0.005  # nobody publishes less than whole percents: .9 was .90
_MOST_NAMED = 3
_COLUMNS = ("model_id", "benchmark", "score")
_PERCENT = 100.0


def check_published(published: pd.DataFrame) -> pd.DataFrame:
    """Scores as shares in [0, 1], percentages where any exceeds 1, and their `rounding`.

    `rounding` is half a unit of the last decimal that any of the scores has, as a share: 91.2 and
    88 are percentages to .05 points. It is never more than half a percent.

    Raises:
        InputError: a missing column, a score that is no number in [0, 100], a pair given twice,
            more shares than percentages in one table.
    """
    absent = [name for name in _COLUMNS if name not in published]
    if absent:
        raise InputError(
            f"published scores need the columns {', '.join(_COLUMNS)}; not there: "
            f"{', '.join(absent)}"
        )
    table = published[list(_COLUMNS)].copy()
    table["model_id"], table["benchmark"] = (table[name].astype(str) for name in _COLUMNS[:2])
    score = pd.to_numeric(table["score"], errors="coerce")
    for at in np.flatnonzero(~score.between(0, _PERCENT).to_numpy())[:1]:
        row = table.iloc[at]
        raise InputError(
            f"the published score of {row.model_id!r} in {row.benchmark!r} is {shown(row.score)}; "
            "give shares in [0, 1] or percentages up to 100"
        )
    twice = table.duplicated(["model_id", "benchmark"])
    if twice.any():
        row = table[twice].iloc[0]
        raise InputError(
            f"the published score of {row.model_id!r} in {row.benchmark!r} is given twice"
        )
    unit = _PERCENT if score.max() > 1 else 1.0
    n_above = int((score > 1).sum())
    if 0 < n_above < int(((score > 0) & (score < 1)).sum()):
        row = table[score > 1].iloc[0]
        raise InputError(
            f"{n_above:,} of the {len(table):,} published scores are above 1 (that of "
            f"{row.model_id!r} in {row.benchmark!r} is {shown(row.score)}), most others below: "
            "give all as shares in [0, 1] or all as percentages"
        )
    rounding = min(0.5 * 10.0 ** -_decimals(score) / unit, _MOST_ROUNDING)
    return table.assign(score=score / unit, rounding=rounding)


def _decimals(scores: pd.Series) -> int:
    """The most decimals that a score has."""
    values = scores.to_numpy(float)
    for places in range(_MOST_DECIMALS):
        # Measured by the number, not by its text: 0.1 + 0.2 has one decimal.
        if np.all(np.abs(values - values.round(places)) < 1e-9):
            return places
    return _MOST_DECIMALS


def published_table(
    published: pd.DataFrame,
    model_ids: np.ndarray,
    benchmarks: Sequence[tuple[str, int]],
    n_cells: Float[np.ndarray, "models benchmarks"],
    total: Float[np.ndarray, "models benchmarks"],
    tolerance: float = TOLERANCE,
) -> pd.DataFrame:
    """Each declared score beside the block's mean response; warns of those without responses.

    Args:
        published: as `check_published` returns it.
        model_ids: rows of the matrix.
        benchmarks: names of its benchmarks, and how many items each has.
        n_cells: observed cells of each block.
        total: sum of their responses.
        tolerance: difference, as a share, that needs no explanation.

    Returns:
        In the order of the scores, `model_id`, `benchmark`, `score`, `p_correct`, `n_responses`,
        `n_items`, `difference`, `standard_error` (of a sample of the items; 0 where all were
        answered), `threshold` (what the difference must exceed: the tolerance, the rounding and as
        many errors as make one false accusation among all scores have a chance of .01), `z` (of
        what exceeds tolerance and rounding; NaN without an error), `p` (two-sided; 0 or 1 without
        an error). Scores without responses have `n_responses` 0 and no numbers.

    Raises:
        InputError: no score is of a model and a benchmark that the data have.
    """
    names, sizes = zip(*benchmarks, strict=True)
    model = pd.Index(model_ids.astype(str)).get_indexer(pd.Index(published["model_id"]))
    group = pd.Index(names).get_indexer(pd.Index(published["benchmark"]))
    n = np.where((model >= 0) & (group >= 0), n_cells[model, group], 0)
    _report_unknown(published, n, model, group, names)
    known = n > 0
    safe, size = np.where(known, n, 1), np.array(sizes, float)[group]
    mean = np.where(known, total[model, group] / safe, np.nan)
    difference = mean - published["score"].to_numpy(float)
    # Half a cell keeps the variance of 0 and 1 from 0.
    middle = np.clip(mean, 0.5 / safe, 1 - 0.5 / safe)
    left = np.maximum(1 - safe / size, 0)
    error = np.sqrt(middle * (1 - middle) / np.maximum(safe - 1, 1) * left)
    allowed = tolerance + published["rounding"].to_numpy(float)
    over = np.maximum(np.abs(difference) - allowed - 1e-9, 0)
    is_sample = known & (error > 0)
    z = np.where(is_sample, np.sign(difference) * over / np.where(is_sample, error, 1), np.nan)
    p = np.where(is_sample, 2 * norm.sf(np.abs(np.nan_to_num(z))), np.where(over > 0, 0.0, 1.0))
    # A difference within what is allowed says nothing at all.
    p = np.where(over > 0, p, 1.0)
    steps = norm.isf(FALSE_ALARMS / 2 / max(int(known.sum()), 1))
    columns = {
        "p_correct": mean,
        "n_responses": n.astype(np.int64),
        "n_items": np.where(group >= 0, size, 0).astype(np.int64),
        "difference": difference,
        "standard_error": np.where(known, error, np.nan),
        "threshold": np.where(known, allowed + steps * error, np.nan),
        "z": z,
        "p": np.where(known, p, np.nan),
    }
    return published.drop(columns="rounding").reset_index(drop=True).assign(**columns)


def _report_unknown(
    published: pd.DataFrame,
    n: np.ndarray,
    model: np.ndarray,
    group: np.ndarray,
    benchmarks: Sequence[str],
) -> None:
    """Refuse scores that are all of other data; warn of some that have no responses."""
    is_unknown = n == 0
    if not is_unknown.any():
        return
    reasons = []
    for what, name, place in (("models", "model_id", model), ("benchmarks", "benchmark", group)):
        absent = list(dict.fromkeys(published.loc[place < 0, name]))
        if absent:
            more = " ..." if len(absent) > _MOST_NAMED else ""
            shown_ones = ", ".join(map(repr, absent[:_MOST_NAMED]))
            reasons.append(f"{what} that the data lack: {shown_ones}{more}")
    n_empty = int(np.sum(is_unknown & (model >= 0) & (group >= 0)))
    if n_empty:
        reasons.append(f"{counted(n_empty, 'block')} without a response")
    if is_unknown.all():
        have = ", ".join(map(repr, benchmarks[:_MOST_NAMED]))
        raise InputError(
            f"no published score is of a model and benchmark of the data ({'; '.join(reasons)}); "
            f"the data's benchmarks are {have}{' ...' if len(benchmarks) > _MOST_NAMED else ''}"
        )
    warnings.warn(
        f"{counted(int(is_unknown.sum()), 'published score')} of {len(n):,} cannot be compared: "
        f"{'; '.join(reasons)}",
        IrtjaxWarning,
        stacklevel=2,
    )


def published_rows(table: pd.DataFrame) -> list[Row]:
    """Accusations of declared scores that certainly differ by more than the tolerance."""
    table = table[table["n_responses"] > 0]
    p = adjusted(table["p"].to_numpy(float), len(table))
    # Where all items were answered nothing is left to chance, and there is no p-value.
    told = np.where(np.isfinite(table["z"]), p, np.nan)
    accused = table.assign(p_adjusted=told)[p <= FALSE_ALARMS]
    return [
        {
            "kind": "contradicts_published",
            "seen": row["p_correct"],
            "expected": row["score"],
            "explanation": _explanation(row),
        }
        | {name: row[name] for name in ("model_id", "benchmark", "n_responses", "z", "p_adjusted")}
        for row in accused.to_dict("records")
    ]


def _explanation(row: Mapping[Any, Any]) -> str:
    return (
        f"{row['p_correct']:.1%} of {counted(row['n_responses'], 'response')} to "
        f"{row['n_items']:,} items are right, {row['score']:.1%} are published: "
        f"{100 * abs(row['difference']):.1f} points apart, more than "
        f"{100 * row['threshold']:.2f} is accused"
    )

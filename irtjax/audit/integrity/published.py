"""Declared benchmark scores of models against the responses that should give them."""

import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy.stats import norm

from irtjax.audit.integrity.accusations import Row
from irtjax.audit.integrity.testing import FALSE_ALARMS, adjusted
from irtjax.checks import shown
from irtjax.errors import InputError

__all__ = ["TOLERANCE", "check_published", "published_rows", "published_table"]

# Two evaluations of one model differ in prompt, shots and sampling: on open leaderboards by one to
# three points. Accused is only what certainly differs by more.
TOLERANCE = 0.03
_COLUMNS = ("model_id", "benchmark", "score")
_PERCENT = 100.0


def check_published(published: pd.DataFrame) -> pd.DataFrame:
    """Scores as shares in [0, 1]: percentages where any score exceeds 1.

    Raises:
        InputError: a missing column, a score that is no number in [0, 100], a pair given twice.
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
    return table.assign(score=score / (_PERCENT if score.max() > 1 else 1))


def published_table(
    published: pd.DataFrame,
    model_ids: np.ndarray,
    benchmarks: list[str],
    n_cells: Float[np.ndarray, "models benchmarks"],
    total: Float[np.ndarray, "models benchmarks"],
    tolerance: float = TOLERANCE,
) -> tuple[pd.DataFrame, list[str]]:
    """Each declared score beside the block's mean response.

    Args:
        published: as `check_published` returns it.
        model_ids: rows of the matrix.
        benchmarks: names of its benchmarks.
        n_cells: observed cells of each block.
        total: sum of their responses.
        tolerance: difference, as a share, that needs no explanation.

    Returns:
        Columns `model_id`, `benchmark`, `score`, `p_correct`, `n_responses`, `difference`, `z` (of
        what exceeds the tolerance) and `p` (two-sided); and the pairs that the matrix lacks, in
        words.
    """
    model = pd.Index(model_ids.astype(str)).get_indexer(pd.Index(published["model_id"]))
    group = pd.Index(benchmarks).get_indexer(pd.Index(published["benchmark"]))
    known = (model >= 0) & (group >= 0)
    known[known] = n_cells[model[known], group[known]] > 0
    absent = [f"{row.model_id} in {row.benchmark}" for row in published[~known].itertuples()]
    found, model, group = published[known].reset_index(drop=True), model[known], group[known]
    n, mean = n_cells[model, group], total[model, group] / n_cells[model, group]
    score = found["score"].to_numpy(float)
    difference = mean - score
    # Both are averages over as many answers; half a cell keeps the variance of 0 and 1 from 0.
    middle = np.clip((mean + score) / 2, 0.5 / n, 1 - 0.5 / n)
    error = np.sqrt(2 * middle * (1 - middle) / n)
    z = np.sign(difference) * np.maximum(np.abs(difference) - tolerance, 0) / error
    columns = {"p_correct": mean, "n_responses": n.astype(np.int64), "difference": difference}
    return found.assign(**columns, z=z, p=2 * norm.sf(np.abs(z))), absent


def published_rows(table: pd.DataFrame) -> list[Row]:
    """Accusations of declared scores that certainly differ by more than the tolerance."""
    p = adjusted(table["p"].to_numpy(float), len(table))
    return [
        {
            "kind": "contradicts_published",
            "model_id": row.model_id,
            "benchmark": row.benchmark,
            "n_responses": row.n_responses,
            "seen": row.p_correct,
            "expected": row.score,
            "z": row.z,
            "p_adjusted": p_adjusted,
            "explanation": (
                f"{row.p_correct:.1%} of the responses are right, {row.score:.1%} are published"
            ),
        }
        for row, p_adjusted in zip(table.itertuples(), p, strict=True)
        if p_adjusted <= FALSE_ALARMS
    ]

"""All blocks and all models with their numbers, accused or not."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from jaxtyping import Float

from irtjax.audit.integrity.copies import Similarity
from irtjax.audit.integrity.evidence import Evidence
from irtjax.audit.integrity.lags import Lag
from irtjax.data.responses import ResponseMatrix

__all__ = ["block_table", "model_table"]


def block_table(
    data: ResponseMatrix,
    evidence: Sequence[Evidence],
    lags: dict[tuple[int, int], Lag],
    n_cells: Float[np.ndarray, "models benchmarks"],
    total: Float[np.ndarray, "models benchmarks"],
    accusations: pd.DataFrame,
) -> pd.DataFrame:
    """A row a block with responses, in the order of the models and the benchmarks.

    `agreement` is the correlation with the other models' blocks as they stand, `expected_agreement`
    what models of this accuracy reach, `z` the distance from a third of it in standard errors; of
    inverted blocks what they reach without guessing, and the distance from 0.
    `best_lag` is 0 where a block fits in its place and empty where nothing was searched;
    `closest_model` is empty where no other model's answers correlate with the block's.
    """
    model, group = np.nonzero(n_cells)
    size = n_cells.shape
    grids = {name: np.full(size, np.nan) for name in _NUMBERS}
    closest = np.full(size, -1)
    for g, each in enumerate(evidence):
        main, at = each.main, each.model
        expected = np.where(each.is_inverted, main.unguessed, main.expected)
        z = np.where(each.is_inverted, main.z_inverted, main.z)
        has_closest = each.closest_correlation > 0
        alike = np.where(has_closest, each.closest_correlation, np.nan)
        numbers = (main.seen, main.error, expected, z, alike)
        for name, values in zip(_NUMBERS[:5], numbers, strict=True):
            grids[name][at, g] = np.where(main.is_tested, values, np.nan)
        grids["best_lag"][at, g] = np.where(main.is_tested & (main.z > 0), 0, np.nan)
        closest[at, g] = np.where(main.is_tested & has_closest, at[each.closest], -1)
    for (i, g), lag in lags.items():
        grids["best_lag"][i, g], grids["lag_z"][i, g] = lag.lag, lag.z
    names = np.array([each.benchmark.name for each in evidence], object)
    partner = np.append(data.model_ids.astype(object), "")
    table = pd.DataFrame(
        {
            "model_id": data.model_ids[model],
            "benchmark": names[group],
            "n_responses": n_cells[model, group].astype(np.int64),
            "p_correct": total[model, group] / n_cells[model, group],
            **{name: grid[model, group] for name, grid in grids.items()},
            "closest_model": partner[closest[model, group]],
        }
    )
    table["best_lag"] = table["best_lag"].astype("Int64")
    kinds = accusations.groupby(["model_id", "benchmark"])["kind"].agg(
        lambda kind: ";".join(dict.fromkeys(kind))
    )
    place = pd.MultiIndex.from_frame(table[["model_id", "benchmark"]])
    return table.assign(accused_of=kinds.reindex(place).fillna("").to_numpy())


_NUMBERS = (
    "agreement",
    "agreement_se",
    "expected_agreement",
    "z",
    "closest_correlation",
    "best_lag",
    "lag_z",
)


def model_table(data: ResponseMatrix, similarity: Similarity) -> pd.DataFrame:
    """A row a model: what it counts as, and whom it is most alike.

    `evidence` is 1 for a model of its own, 1/k for one of k copies and 0 without responses. `alike`
    is 1 minus the share of the differences from `closest_model` that two models of their accuracies
    would show: chance included, which `evidence` leaves out.
    """
    excess = similarity.excess
    np.fill_diagonal(excess, -1)
    closest = np.argmax(excess, axis=1)
    alike = excess[np.arange(len(excess)), closest]
    partner = np.where(alike > 0, data.model_ids[closest], "")
    n_responses = np.asarray(data.totals("models")[0])
    columns = {
        "model_id": data.model_ids,
        "n_responses": n_responses,
        "evidence": np.where(n_responses > 0, similarity.evidence(), 0),
    }
    return pd.DataFrame(columns | {"closest_model": partner, "alike": np.maximum(alike, 0)})

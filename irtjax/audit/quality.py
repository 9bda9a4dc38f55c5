"""Item quality as PSN-IRT defines it: six indicators of an item, and ranks over benchmarks.

Source: Zhou et al. (2026), arXiv 2505.15055, Table 5. LEH (local efficiency headroom) is the slope
of the curve at the highest ability: how much an item still tells apart at the top.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jaxtyping import Array, Float

from irtjax.errors import InputError
from irtjax.fit.result import FitResult
from irtjax.model.information import logit_information, logit_slope

__all__ = [
    "INDICATORS",
    "highest_logits",
    "item_quality",
    "quality_at",
    "ranked_means",
    "with_ranks",
]


@dataclasses.dataclass(frozen=True)
class _Indicator:
    name: str
    is_higher_better: bool = True


INDICATORS = (
    _Indicator("difficulty"),
    _Indicator("discrimination"),
    _Indicator("guessing", is_higher_better=False),
    _Indicator("feasibility"),
    _Indicator("leh"),
    _Indicator("information"),
)
# The published total leaves difficulty out: hard and broken look alike.
_IN_TOTAL = tuple(indicator.name for indicator in INDICATORS[1:])


def item_quality(fit: FitResult) -> pd.DataFrame:
    """One row an item, in the data's order.

    Columns: `item_id`, the item metadata, `difficulty` (latent standard deviations),
    `discrimination` (logits a standard deviation), `guessing`, `feasibility`, `leh` (probability a
    standard deviation at the highest ability), `information` (Fisher's, there), `flags`.

    With more than one dim, an item is looked at along its own slopes: its highest ability is the
    largest projection of the models on them.
    """
    table = fit.item_parameters()
    logit, steepness = highest_logits(fit, table)
    guessing, feasibility = table["guessing"].to_numpy(), table["feasibility"].to_numpy()
    metadata = [name for name in fit.data.item_metadata.columns if name in table]
    found = table[["item_id", *metadata, "difficulty", "discrimination", "guessing"]]
    leh, information = _at_the_top(logit, steepness, guessing, feasibility)
    return found.assign(
        feasibility=feasibility, leh=leh, information=information, flags=table["flags"]
    )


def highest_logits(fit: FitResult, table: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Logits of items at the highest ability along their slopes, and how steep they are there.

    Args:
        fit: the fit.
        table: its item parameters.
    """
    slope = np.asarray(fit.parameters.mean[:, :, :-1], np.float64)
    share = np.asarray(fit.parameters.share, np.float64)
    slope = np.einsum("jc,jck->jk", share, slope)
    ability = np.asarray(fit.parameters.ability, np.float64)
    if fit.spec.dims == 1:
        # A falling item's top is still the best model.
        return slope[:, 0] * ability.max() + table["intercept"].to_numpy(), slope[:, 0]
    logit = np.max(slope @ ability.T, axis=1) + table["intercept"].to_numpy()
    return logit, table["discrimination"].to_numpy()


def quality_at(
    ability: float,
    *,
    difficulty: np.ndarray,
    discrimination: np.ndarray,
    guessing: np.ndarray,
    feasibility: np.ndarray,
) -> pd.DataFrame:
    """The six indicators of items given by their parameters (one dim), at an ability.

    Args:
        ability: in the items' own scale; the highest of the models, for LEH.
        difficulty: items, where the curve is halfway.
        discrimination: items, logits a unit of ability.
        guessing: items.
        feasibility: items.
    """
    logit = discrimination * (ability - difficulty)
    leh, information = _at_the_top(logit, discrimination, guessing, feasibility)
    return pd.DataFrame(
        {
            "difficulty": difficulty,
            "discrimination": discrimination,
            "guessing": guessing,
            "feasibility": feasibility,
            "leh": leh,
            "information": information,
        }
    )


def _at_the_top(
    logit: np.ndarray, steepness: np.ndarray, guessing: np.ndarray, feasibility: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """LEH and information of items at these logits, float64."""
    parts = [jnp.asarray(part) for part in (logit, guessing, feasibility)]
    rise, tells = (np.asarray(found, np.float64) for found in _slope_and_information(*parts))
    return steepness * rise, steepness**2 * tells


@jax.jit
def _slope_and_information(
    logit: Float[Array, " items"],
    guessing: Float[Array, " items"],
    feasibility: Float[Array, " items"],
) -> tuple[Float[Array, " items"], Float[Array, " items"]]:
    return (
        logit_slope(logit, guessing, feasibility),
        logit_information(logit, guessing, feasibility),
    )


def ranked_means(table: pd.DataFrame, by: pd.Series) -> pd.DataFrame:
    """Means of the indicators by a column, their ranks (1 is best), and the sum of the ranks.

    Args:
        table: one row an item, with the indicators.
        by: the value of each item, the benchmark usually; items without a value count nowhere.

    Returns:
        Sorted by `total_rank` (without difficulty's rank); columns are the values' name, `n_items`,
        the six means, six `*_rank`, `total_rank`. A mean that is NaN (no difficulty: no slopes)
        ranks last.

    Raises:
        InputError: no item has a value.
    """
    values = by.replace("", np.nan).reset_index(drop=True)
    if values.isna().all():
        raise InputError(f"no item has a value in the column {by.name!r}; choose another")
    names = [indicator.name for indicator in INDICATORS]
    grouped = table[names].reset_index(drop=True).groupby(values, sort=False)
    means = grouped.mean()
    ranks = _ranks(means)
    found = means.assign(n_items=grouped.size(), **ranks).sort_values("total_rank", kind="stable")
    found.index.name = by.name
    return found[["n_items", *names, *ranks]].reset_index()


def with_ranks(table: pd.DataFrame) -> pd.DataFrame:
    """The items with their rank by each indicator (1 is best), and the sum of the ranks.

    Args:
        table: one row an item, with the indicators.

    Returns:
        The same rows with six `*_rank` and `total_rank` (without difficulty's) at the end; an
        indicator that is NaN ranks last.
    """
    return table.assign(**_ranks(table))


def _ranks(table: pd.DataFrame) -> pd.DataFrame:
    """Six `*_rank` and `total_rank` of the rows."""
    ranks = {
        f"{indicator.name}_rank": table[indicator.name]
        .rank(ascending=not indicator.is_higher_better, method="min", na_option="bottom")
        .astype(int)
        for indicator in INDICATORS
    }
    found = pd.DataFrame(ranks, index=table.index)
    return found.assign(total_rank=found[[f"{name}_rank" for name in _IN_TOTAL]].sum(axis=1))

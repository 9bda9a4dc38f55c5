"""`predict_score`: what a new model would score on all items, from its answers to a few.

Three predictions of the share right on all items of the fit:

- the posterior predictive, the default: what was answered is known; the rest is predicted over the
  posterior of the model's ability, of its benchmark effects and of how large they are, with a 95%
  interval;
- p-IRT (Polo et al. 2024, tinyBenchmarks): the same at the one ability that is likeliest, without
  effects;
- gp-IRT (there): p-IRT mixed with the anchor-weighted share right, each weighted by the other's
  variance.
"""

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from irtjax.checks import shown
from irtjax.data.cells import Cells
from irtjax.data.responses import ResponseMatrix
from irtjax.errors import InputError
from irtjax.fit.seen import seen_answers, warn_of_seen
from irtjax.score.bank import ItemBank, item_bank, without_effects
from irtjax.score.cells import batches
from irtjax.score.effects import EffectPrior
from irtjax.score.group_sums import sums_at
from irtjax.score.known import check_fit, known_cells
from irtjax.score.left_out import effect_prior, stratum_prior
from irtjax.score.mode import find_mode
from irtjax.score.models import checked_uncertainty
from irtjax.score.posterior import expected_at
from irtjax.score.predictive import Known, Predicted, posterior_predictive

if TYPE_CHECKING:
    from irtjax.fit.result import FitResult

__all__ = ["predict_score"]

_DEFAULT_COLUMN = "benchmark"


def predict_score(
    fit: "FitResult",
    responses: ResponseMatrix,
    *,
    by: str | None = None,
    anchor_weights: Mapping[str, float] | None = None,
    uncertainty: str = "items",
) -> pd.DataFrame:
    """Predict new models' shares right on all items of the fit, from answers to some of them.

    A model's benchmark effects (of the fit's `group`, else of the column `benchmark` where there is
    one, else on six strata of difficulty) are unknown and integrated out, with the spread that they
    have among the fit's models when each is left out. Where the answers say so, the model may lie
    up to four times as far out, in ability and effects: the less it is like the fit's models, the
    more its own answers count, as in the plain share.

    Args:
        fit: the fit whose items were answered.
        responses: the answers; items that the fit does not know are left out with a warning.
        by: the effects' column: a row a model and value, in place of one a model.
        anchor_weights: of answered items by id (`anchor_points`): adds `gp_irt`.
        uncertainty: `items` or `none`, as `score_models`.

    Returns:
        `model_id` (and `by`), `score`, `score_se`, `score_lower` and `score_upper` (95%), `p_irt`,
        `gp_irt` with anchor weights, `observed` (the plain share right), `n_responses`.

    Raises:
        InputError: none of the items is in the fit; another column than that of the effects.
    """
    check_fit(fit, "predict_score")
    is_uncertain = checked_uncertainty(uncertainty) == "items"
    cells = known_cells(fit, responses, "predict_score")
    effects = _effects(fit, by)
    bank = item_bank(fit, effects, is_uncertain=is_uncertain)
    n_groups = 1 if effects is None else len(effects.names)
    # An ability that is not the fit's own stands behind every predicted score.
    seen = seen_answers(fit, responses.model_ids, cells)
    warn_of_seen(seen, responses.model_ids, "scored")
    known = Known.of(cells, responses.n_models, bank, n_groups)
    predicted = posterior_predictive(bank, cells, known, fit.spec.dims, is_by_group=by is not None)
    plain = _at_mode(without_effects(bank, fit.spec.dims), cells, known)
    frame = _table(responses, known, predicted, plain)
    if anchor_weights is not None:
        frame["gp_irt"] = _mixed(frame, cells, _weights_of(fit, anchor_weights))
    if by is None or effects is None:
        return (
            frame[frame["group"] == len(known.n_items)].drop(columns="group").reset_index(drop=True)
        )
    of_groups = frame[frame["group"] < len(known.n_items)]
    return (
        of_groups.assign(group=np.array(effects.names, object)[of_groups["group"]])
        .rename(columns={"group": by})
        .drop(columns="gp_irt", errors="ignore")
        .reset_index(drop=True)
    )


def _effects(fit: "FitResult", by: str | None) -> EffectPrior | None:
    column = fit.group if fit.parameters.effect is not None else None
    metadata = fit.data.item_metadata
    if column is None and _DEFAULT_COLUMN in metadata:
        column = None if metadata[_DEFAULT_COLUMN].isna().any() else _DEFAULT_COLUMN
    if by is not None:
        column = by
    if column is None:
        return stratum_prior(fit)
    found = effect_prior(fit, column)
    if found is None and by is None:
        return stratum_prior(fit)
    if found is None and by is not None:
        raise InputError(f"all items have the same {by!r}; leave out `by`")
    return found


def _at_mode(bank: ItemBank, cells: Cells, known: Known) -> np.ndarray:
    """p-IRT in each group and over all items: the rest at the likeliest ability."""
    n_models, n_groups = known.count.shape
    latent = np.zeros((n_models, bank.n_latent))
    expected = np.zeros((n_models, n_groups))
    for batch in batches(bank, cells, n_models):
        mode = find_mode(batch.answers, batch.items, None)
        n = batch.rows.stop - batch.rows.start
        latent[batch.rows] = np.asarray(mode.latent, np.float64)[:n]
        seen, _ = expected_at(batch.answers, batch.items, mode.latent, n_groups=n_groups)
        expected[batch.rows] = np.asarray(seen, np.float64)[:n]
    sums, _ = sums_at(bank, n_groups, latent, np.zeros((n_models, 1, n_groups)))
    total = known.right + np.maximum(sums[:, 0] - expected, 0)
    total = np.concatenate([total, total.sum(axis=1, keepdims=True)], axis=1)
    return total / np.append(known.n_items, known.n_items.sum())


def _table(
    responses: ResponseMatrix, known: Known, predicted: Predicted, plain: np.ndarray
) -> pd.DataFrame:
    """A row a model and group, and one over all items, whose group is the number of groups."""
    n_columns = predicted.mean.shape[1]
    count, right = (
        np.concatenate([part, part.sum(axis=1, keepdims=True)], axis=1)
        for part in (known.count, known.right)
    )
    n_items = np.append(known.n_items, np.sum(known.n_items))
    observed = right / np.where(count > 0, count, np.nan)
    # Nothing is left to predict where all was answered, and rounding leaves no share its bounds.
    is_whole = (count >= n_items) & (count > 0)
    score = np.where(is_whole, observed, np.clip(predicted.mean, 0, 1))
    predicted = dataclasses.replace(
        predicted,
        mean=score,
        sd=np.where(is_whole, 0, predicted.sd),
        lower=np.where(is_whole, observed, np.clip(predicted.lower, 0, score)),
        upper=np.where(is_whole, observed, np.clip(predicted.upper, score, 1)),
    )
    plain = np.where(is_whole, observed, np.clip(plain, 0, 1))
    return pd.DataFrame(
        {
            "model_id": np.repeat(responses.model_ids, n_columns),
            "group": np.tile(np.arange(n_columns), responses.n_models),
            "score": predicted.mean.ravel(),
            "score_se": predicted.sd.ravel(),
            "score_lower": predicted.lower.ravel(),
            "score_upper": predicted.upper.ravel(),
            "p_irt": plain.ravel(),
            "observed": observed.ravel(),
            "n_responses": count.ravel(),
        }
    )


def _weights_of(fit: "FitResult", anchor_weights: Mapping[str, float]) -> np.ndarray:
    """Weight of each item of the fit, 0 for those that are no anchors.

    Raises:
        InputError: an item that the fit does not know, a weight that is no positive number.
    """
    weights = pd.Series(dict(anchor_weights), dtype=np.float64)
    position = pd.Index(fit.data.item_ids).get_indexer(weights.index.astype(str))
    if (position < 0).any():
        first = weights.index[int(np.flatnonzero(position < 0)[0])]
        raise InputError(f"anchor {shown(first)} is no item of the run; check the item ids")
    is_bad = ~(np.isfinite(weights.to_numpy()) & (weights.to_numpy() > 0))
    if is_bad.any():
        first = weights.index[int(np.flatnonzero(is_bad)[0])]
        raise InputError(f"the weight of anchor {shown(first)} must be a number above 0")
    found = np.zeros(fit.data.n_items)
    found[position] = weights
    return found


def _mixed(frame: pd.DataFrame, cells: Cells, weight: np.ndarray) -> np.ndarray:
    """gp-IRT of the rows over all items; NaN where a model answered no anchor."""
    n_models = frame["model_id"].size // frame["group"].nunique()
    each = weight[cells.item_index]
    total, square = (np.bincount(cells.model_index, each**power, n_models) for power in (1, 2))
    right = np.bincount(cells.model_index, each * cells.response, n_models)
    safe = np.where(total > 0, total, np.nan)
    share = right / safe
    columns = frame["group"].nunique()
    point = frame["p_irt"].to_numpy().reshape(n_models, columns)[:, -1]
    variance = frame["score_se"].to_numpy().reshape(n_models, columns)[:, -1] ** 2
    of_anchors = np.maximum(point * (1 - point), 1e-3) * square / safe**2
    mixing = variance / (variance + of_anchors)
    return np.repeat(mixing * share + (1 - mixing) * point, columns)

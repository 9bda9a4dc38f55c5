"""`predict_score`: what a new model would score on all items, from its answers to a few.

Three predictions of the share right on all items of the fit:

- the posterior predictive, the default: what was answered is known; the rest is predicted over the
  posterior of the model's ability and benchmark effects, with a 95% interval;
- p-IRT (Polo et al. 2024, tinyBenchmarks): the same at the one ability that is likeliest, without
  effects;
- gp-IRT (there): p-IRT mixed with the anchor-weighted share right, each weighted by the other's
  variance.
"""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.special import ndtr

from irtjax.checks import shown
from irtjax.data.cells import Cells
from irtjax.data.responses import ResponseMatrix
from irtjax.errors import InputError
from irtjax.score.bank import ItemBank, item_bank, without_effects
from irtjax.score.cells import batches
from irtjax.score.effects import EffectPrior, effect_prior, stratum_prior
from irtjax.score.group_sums import sums_at
from irtjax.score.known import check_fit, known_cells
from irtjax.score.mode import find_mode
from irtjax.score.models import checked_uncertainty
from irtjax.score.posterior import NodePosterior, expected_at, node_posterior

if TYPE_CHECKING:
    from irtjax.fit.result import FitResult

__all__ = ["predict_score"]

_NORMAL_QUANTILE = 1.959964
# Halvings of [0, 1] for the ends of an interval: to 1e-6.
_HALVINGS = 20
_MODELS_AT_ONCE = 1000
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
    have among the fit's models.

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
    known = _Known.of(cells, responses.n_models, bank, effects)
    predicted = _predicted(bank, cells, known, fit.spec.dims)
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


@dataclasses.dataclass(frozen=True, eq=False)
class _Known:
    """Answers of each model by group: how many, and how many right; items of each group."""

    count: np.ndarray
    right: np.ndarray
    n_items: np.ndarray

    @classmethod
    def of(
        cls, cells: Cells, n_models: int, bank: ItemBank, effects: EffectPrior | None
    ) -> "_Known":
        n_groups = 1 if effects is None else len(effects.names)
        group = np.asarray(bank.group)
        where = cells.model_index * np.int64(n_groups) + group[cells.item_index]
        size = n_models * n_groups
        count = np.bincount(where, minlength=size).reshape(n_models, n_groups)
        right = np.bincount(where, cells.response, size).reshape(n_models, n_groups)
        return cls(count, right, np.bincount(group, minlength=n_groups))


@dataclasses.dataclass(frozen=True, eq=False)
class _Predicted:
    """Shares right in each group and over all items (last column): mean, sd and interval ends."""

    mean: np.ndarray
    sd: np.ndarray
    lower: np.ndarray
    upper: np.ndarray


def _predicted(bank: ItemBank, cells: Cells, known: _Known, dims: int) -> _Predicted:
    """The posterior predictive of every model."""
    n_models, n_groups = known.count.shape
    own = _own_items(bank, dims)
    result = _Predicted(*(np.zeros((n_models, n_groups + 1)) for _ in range(4)))
    for rows, posterior in _posteriors(bank, cells, n_models, n_groups):
        part = _of_batch(own, bank, posterior, known, rows, dims)
        for name in ("mean", "sd", "lower", "upper"):
            getattr(result, name)[rows] = getattr(part, name)
    return result


def _posteriors(
    bank: ItemBank, cells: Cells, n_models: int, n_groups: int
) -> Iterator[tuple[slice, dict[str, np.ndarray]]]:
    """Posteriors of many models at a time: each time the sums over all items are tabled anew."""
    variance: Any = bank.effect_variance
    found: list[dict[str, np.ndarray]] = []
    start = 0
    for batch in batches(bank, cells, n_models):
        mode = find_mode(batch.answers, batch.items, variance, is_rough=True)
        posterior = node_posterior(batch.answers, batch.items, variance, mode, n_groups=n_groups)
        found.append(_host(posterior, batch.rows.stop - batch.rows.start))
        if batch.rows.stop - start >= _MODELS_AT_ONCE or batch.rows.stop == n_models:
            joined = {name: np.concatenate([part[name] for part in found]) for name in found[0]}
            yield slice(start, batch.rows.stop), joined
            found, start = [], batch.rows.stop


def _host(posterior: NodePosterior, n: int) -> dict[str, np.ndarray]:
    fields = dataclasses.fields(posterior)
    leaves = {field.name: getattr(posterior, field.name) for field in fields}
    return {
        name: np.asarray(leaf, np.float64)[:n] for name, leaf in leaves.items() if leaf is not None
    }


def _own_items(bank: ItemBank, dims: int) -> ItemBank:
    """The items without what is common to effects: a shift of the logit, like the effects."""
    return dataclasses.replace(without_effects(bank, dims), group=bank.group)


def _loading(bank: ItemBank, dims: int, n_groups: int) -> np.ndarray:
    """Of each group's effect on what effects have in common; 0 without such a coordinate."""
    loading = np.zeros(n_groups)
    if bank.n_latent > dims:
        loading[np.asarray(bank.group)] = np.asarray(bank.mean)[:, 0, dims]
    return loading


def _of_batch(
    own: ItemBank,
    bank: ItemBank,
    posterior: dict[str, np.ndarray],
    known: _Known,
    rows: slice,
    dims: int,
) -> _Predicted:
    """Moments of the unseen answers at every node, and the mixture over the nodes."""
    latent, weight = posterior["latent"], posterior["weight"]
    n, n_nodes, _ = latent.shape
    n_groups = known.count.shape[1]
    effect = posterior.get("effect", np.zeros((n, n_nodes, 1, n_groups)))
    spot_weight = posterior.get("effect_weight", np.ones_like(effect))
    shift = effect
    if bank.n_latent > dims:
        common = latent[:, :, dims, None, None] * _loading(bank, dims, n_groups)
        shift = effect + common
    n_spots = effect.shape[2]
    sums, squares = (
        part.reshape(n, n_nodes, n_spots, n_groups)
        for part in sums_at(
            own,
            n_groups,
            latent[:, :, :dims].reshape(-1, dims),
            shift.reshape(-1, n_spots, n_groups),
        )
    )
    sums = np.maximum(sums - posterior["expected"], 0)
    squares = squares - posterior["expected_square"]
    noise = np.maximum(sums - squares, 0)
    right, n_items = known.right[rows], known.n_items
    # Of single groups the mixture is over nodes and spots.
    both = weight[:, :, None, None] * spot_weight
    parts = [
        _mixture(
            both[..., g].reshape(n, -1),
            sums[..., g].reshape(n, -1),
            noise[..., g].reshape(n, -1),
            right[:, g],
            known.count[rows, g],
            n_items[g],
        )
        for g in range(n_groups)
    ]
    given = np.sum(spot_weight * sums, axis=2)
    spread = np.sum(spot_weight * (sums - given[:, :, None]) ** 2, axis=2)
    inside = spread + np.sum(spot_weight * noise, axis=2)
    parts.append(
        _mixture(
            weight,
            given.sum(axis=2),
            inside.sum(axis=2),
            right.sum(axis=1),
            known.count[rows].sum(axis=1),
            n_items.sum(),
        )
    )
    return _Predicted(*(np.stack(columns, axis=1) for columns in zip(*parts, strict=True)))


def _mixture(
    weight: np.ndarray,
    mean: np.ndarray,
    variance: np.ndarray,
    right: np.ndarray,
    count: np.ndarray,
    n_items: int,
) -> tuple[np.ndarray, ...]:
    """Share right in all: mean, sd and the 2.5% and 97.5% quantiles of a mixture of normals."""
    centre = np.sum(weight * mean, axis=1)
    spread = np.sum(weight * (variance + (mean - centre[:, None]) ** 2), axis=1)
    sd = np.sqrt(np.maximum(variance, 1e-12))
    ends = []
    for quantile in (0.025, 0.975):
        low, high = np.zeros(len(mean)), (n_items - count).astype(np.float64)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            below = np.sum(weight * ndtr((middle[:, None] - mean) / sd), axis=1) < quantile
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        ends.append((right + (low + high) / 2) / n_items)
    return (right + centre) / n_items, np.sqrt(spread) / n_items, ends[0], ends[1]


def _at_mode(bank: ItemBank, cells: Cells, known: _Known) -> np.ndarray:
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
    responses: ResponseMatrix, known: _Known, predicted: _Predicted, plain: np.ndarray
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

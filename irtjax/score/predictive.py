"""The posterior predictive of a new model's share right, over ability, effects and their scale.

A model may be unlike those that were fitted: its ability beyond theirs, its answers in other
groups of items than ability says. A normal prior then holds it where they are. So what is known of
it, abilities and effects together, has an unknown factor of its own for each model, integrated out
by what each makes of the answers: a mixture of normals with tails like a t distribution's (Lange,
Little & Taylor 1989, J. Amer. Statist. Assoc. 84). A model like the others is predicted as without.
"""

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.special import ndtr, softmax

from irtjax.data.cells import Cells
from irtjax.fit.packed import pair_index
from irtjax.score.bank import ItemBank, without_effects
from irtjax.score.cells import Batch, batches
from irtjax.score.group_sums import sums_at
from irtjax.score.mode import find_mode
from irtjax.score.posterior import NodePosterior, node_posterior

__all__ = ["Known", "Predicted", "posterior_predictive"]

# How many times as far out as the fitted models a new one may lie, and how likely. A t with 4
# degrees of freedom for the effects did the same (ChemBench, 100 random items: .0325 and .0325).
_SCALES = {1.0: 0.8, 2.0: 0.15, 4.0: 0.05}
# Halvings of [0, 1] for the ends of an interval: to 1e-6.
_HALVINGS = 20
_MODELS_AT_ONCE = 300
# Nodes of less weight than this are left out: more than half of them.
_LEAST_WEIGHT = 1e-6


@dataclasses.dataclass(frozen=True, eq=False)
class Known:
    """Answers of each model by group: how many, and how many right; items of each group."""

    count: np.ndarray
    right: np.ndarray
    n_items: np.ndarray

    @classmethod
    def of(cls, cells: Cells, n_models: int, bank: ItemBank, n_groups: int) -> "Known":
        """Count the answers of each model."""
        group = np.asarray(bank.group)
        where = cells.model_index * np.int64(n_groups) + group[cells.item_index]
        size = n_models * n_groups
        count = np.bincount(where, minlength=size).reshape(n_models, n_groups)
        right = np.bincount(where, cells.response, size).reshape(n_models, n_groups)
        return cls(count, right, np.bincount(group, minlength=n_groups))


@dataclasses.dataclass(frozen=True, eq=False)
class Predicted:
    """Shares right in each group and over all items (last column): mean, sd and interval ends."""

    mean: np.ndarray
    sd: np.ndarray
    lower: np.ndarray
    upper: np.ndarray


@dataclasses.dataclass(frozen=True, eq=False)
class _Nodes:
    """Posteriors of some models: abilities at nodes, and shifts of the logit at spots by group.

    `expected` and `expected_square` are sums of P and P^2 over what each model answered.
    """

    ability: np.ndarray
    weight: np.ndarray
    shift: np.ndarray
    spot_weight: np.ndarray
    expected: np.ndarray
    expected_square: np.ndarray


def posterior_predictive(
    bank: ItemBank, cells: Cells, known: Known, dims: int, *, is_by_group: bool = True
) -> Predicted:
    """Shares right of new models: what was answered is known, the rest predicted.

    Args:
        bank: all items, with the effects' spread where there is one.
        cells: the answers.
        known: their sums.
        dims: latent coordinates that are abilities; the rest is what effects have in common.
        is_by_group: whether single groups are wanted; NaN without.
    """
    n_models, n_groups = known.count.shape
    # The items without what is common to effects: a shift of the logit, like the effects.
    own = dataclasses.replace(without_effects(bank, dims), group=bank.group)
    result = Predicted(*(np.zeros((n_models, n_groups + 1)) for _ in range(4)))
    for rows, nodes in _posteriors(bank, cells, n_models, n_groups, dims):
        part = _of_batch(own, nodes, known, rows, is_by_group)
        for name in ("mean", "sd", "lower", "upper"):
            getattr(result, name)[rows] = getattr(part, name)
    return result


def _posteriors(
    bank: ItemBank, cells: Cells, n_models: int, n_groups: int, dims: int
) -> Iterator[tuple[slice, _Nodes]]:
    """Posteriors of many models at a time: each time the sums over all items are tabled anew."""
    scales = _SCALES if bank.effect_variance is not None else {1.0: 1.0}
    banks = [_scaled(bank, scale) for scale in scales]
    found: list[_Nodes] = []
    start = 0
    for same in zip(*(batches(each, cells, n_models) for each in banks), strict=True):
        stop = same[0].rows.stop
        parts = [
            _nodes(batch, each, scale, n_groups, dims)
            for batch, each, scale in zip(same, banks, scales, strict=True)
        ]
        # The prior's shares, and how well each scale explains the answers.
        evidence = np.stack([part[0] for part in parts], axis=1) + np.log([*scales.values()])
        chance = softmax(evidence, axis=1)
        weighted = [
            dataclasses.replace(nodes, weight=nodes.weight * chance[:, k, None])
            for k, (_, nodes) in enumerate(parts)
        ]
        found.append(_joined(weighted, axis=1))
        if stop - start >= _MODELS_AT_ONCE or stop == n_models:
            yield slice(start, stop), _heaviest(_joined(found, axis=0))
            found, start = [], stop


def _scaled(bank: ItemBank, scale: float) -> ItemBank:
    """The same items for a model that lies so many times as far out, in abilities and effects."""
    if bank.effect_variance is None or scale == 1:
        return bank
    size = bank.n_latent + 1
    unit = np.append(np.full(size - 1, scale), 1.0)
    rows, columns = pair_index(size)
    given: Any = {
        "mean": np.asarray(bank.mean) * unit.astype(bank.mean.dtype),
        "covariance": np.asarray(bank.covariance)
        * (unit[rows] * unit[columns]).astype(bank.mean.dtype),
        "effect_variance": np.asarray(bank.effect_variance) * bank.mean.dtype.type(scale**2),
    }
    return dataclasses.replace(bank, **given)


def _nodes(
    batch: Batch, bank: ItemBank, scale: float, n_groups: int, dims: int
) -> tuple[np.ndarray, _Nodes]:
    """Log-evidence of each model of a batch, and its posterior."""
    variance: Any = bank.effect_variance
    mode = find_mode(batch.answers, batch.items, variance, is_rough=True)
    posterior = node_posterior(batch.answers, batch.items, variance, mode, n_groups=n_groups)
    host = _host(posterior, batch.rows.stop - batch.rows.start)
    latent = host["latent"]
    shift = host.get("effect", np.zeros((*latent.shape[:2], 1, n_groups)))
    spot_weight = host.get("effect_weight", np.ones_like(shift))
    shift = shift + (latent[..., dims:] @ _loading(bank, dims, n_groups))[:, :, None]
    return host["log_evidence"], _Nodes(
        scale * latent[..., :dims],
        host["weight"],
        shift,
        spot_weight,
        host["expected"],
        host["expected_square"],
    )


def _host(posterior: NodePosterior, n: int) -> dict[str, np.ndarray]:
    fields = dataclasses.fields(posterior)
    leaves = {field.name: getattr(posterior, field.name) for field in fields}
    return {
        name: np.asarray(leaf, np.float64)[:n] for name, leaf in leaves.items() if leaf is not None
    }


def _loading(bank: ItemBank, dims: int, n_groups: int) -> np.ndarray:
    """Of each group's effect (columns) on what the effects have in common (rows)."""
    loading = np.zeros((bank.n_latent - dims, n_groups))
    loading[:, np.asarray(bank.group)] = np.asarray(bank.mean)[:, 0, dims:-1].T
    return loading


def _joined(parts: list[_Nodes], axis: int) -> _Nodes:
    names = [field.name for field in dataclasses.fields(_Nodes)]
    return _Nodes(
        *(np.concatenate([getattr(each, name) for each in parts], axis) for name in names)
    )


def _heaviest(nodes: _Nodes) -> _Nodes:
    """Without the nodes that hardly any model has a use for.

    In place of its own ones each model has its heaviest again, without weight: the range of what is
    left is then that of what counts.
    """
    order = np.argsort(-nodes.weight, axis=1, kind="stable")
    ranked = np.take_along_axis(nodes.weight, order, axis=1)
    is_light = ranked < _LEAST_WEIGHT
    order = np.where(is_light, order[:, :1], order)[:, ~is_light.all(axis=0)]
    kept = {
        field.name: getattr(nodes, field.name)[np.arange(len(order))[:, None], order]
        for field in dataclasses.fields(_Nodes)
    }
    weight = np.where(is_light, 0, ranked)[:, : order.shape[1]]
    kept["weight"] = weight / weight.sum(axis=1, keepdims=True)
    return _Nodes(**kept)


def _of_batch(
    own: ItemBank, nodes: _Nodes, known: Known, rows: slice, is_by_group: bool
) -> Predicted:
    """Moments of the unseen answers at every node, and the mixture over the nodes."""
    weight, spot_weight = nodes.weight, nodes.spot_weight
    n, n_nodes, dims = nodes.ability.shape
    n_spots, n_groups = nodes.shift.shape[2:]
    sums, squares = (
        part.reshape(n, n_nodes, n_spots, n_groups)
        for part in sums_at(
            own,
            n_groups,
            nodes.ability.reshape(-1, dims),
            nodes.shift.reshape(-1, n_spots, n_groups),
        )
    )
    sums = np.maximum(sums - nodes.expected, 0)
    squares = squares - nodes.expected_square
    noise = np.maximum(sums - squares, 0)
    right, n_items = known.right[rows], known.n_items
    parts: list[tuple[np.ndarray, ...]] = [(np.full(n, np.nan),) * 4] * n_groups
    if is_by_group:
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
    return Predicted(*(np.stack(columns, axis=1) for columns in zip(*parts, strict=True)))


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

"""Sums of P over all items of each group, at any latent vectors and effects.

With one or two abilities such a sum is a smooth function of them and of the effect: it is computed
at Chebyshev points (Trefethen 2013, Approximation Theory and Approximation Practice, chapters 3 and
4) once, and every model's nodes are interpolated. With more abilities, or with fewer nodes than
points, each node meets each item.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.polynomial.chebyshev import chebvander

from irtjax.fit.smooth_score import chebyshev_angles, to_coefficients
from irtjax.score.bank import ItemBank
from irtjax.score.curves import CurveItems, curve
from irtjax.score.mode import group_sums, in_groups, shifts

__all__ = ["item_blocks", "sums_at"]

_ITEMS_AT_ONCE, _POINTS_AT_ONCE = 1024, 64
# Chebyshev points along an ability and an effect: as many as `fit.smooth_score` takes. With two
# abilities from -4 to 4 a share right is off by 2e-6 (root mean square; slopes of median 1).
_ABILITY, _EFFECT = 32, 16
_MOST_ABILITIES = 2
_PLACES_AT_ONCE = 4096
_LEAST_RANGE = 1e-3


def sums_at(
    bank: ItemBank,
    n_groups: int,
    latent: Float[np.ndarray, "points latent"],
    effect: Float[np.ndarray, "points spots groups"],
) -> tuple[Float[np.ndarray, "points spots groups"], Float[np.ndarray, "points spots groups"]]:
    """Sums of P and of P^2 over the items of each group.

    Args:
        bank: the items.
        n_groups: of them.
        latent: latent vectors.
        effect: some effects of each group for each of them.

    Returns:
        float64.
    """
    n_points, n_spots, _ = effect.shape
    dims = latent.shape[1]
    n_effects = _EFFECT if np.any(np.ptp(effect, axis=(0, 1))) else 1
    n_grid = _ABILITY**dims * n_effects
    if dims > _MOST_ABILITIES or n_points * n_spots <= n_grid:
        flat = _direct(bank, n_groups, np.repeat(latent, n_spots, 0), effect.reshape(-1, n_groups))
        first, second = (part.reshape(n_points, n_spots, n_groups) for part in flat)
        return first, second
    on_ability, ability = _axis(latent, _ABILITY)
    on_effect, place = _axis(effect.reshape(-1, n_groups), n_effects)
    corners = np.stack(np.meshgrid(*on_ability.T, indexing="ij"), axis=-1).reshape(-1, dims)
    tables = _direct(
        bank, n_groups, np.repeat(corners, n_effects, 0), np.tile(on_effect, (len(corners), 1))
    )
    place = place.reshape(n_points, n_spots, n_groups)
    sizes = [_ABILITY] * dims + [n_effects]
    # Single precision leaves 1e-6 of a share.
    dtype = np.asarray(bank.mean).dtype
    ability, place = ability.astype(dtype), place.astype(dtype)
    coefficients = [_transformed(table.reshape(*sizes, n_groups)).astype(dtype) for table in tables]
    total = np.empty((2, *effect.shape))
    for start in range(0, n_points, _PLACES_AT_ONCE):
        rows = slice(start, start + _PLACES_AT_ONCE)
        total[:, rows] = _interpolated(coefficients, ability[rows], place[rows])
    return total[0], total[1]


def _transformed(
    values: Float[np.ndarray, "*axes groups"],
) -> Float[np.ndarray, "*axes groups"]:
    """Coefficients along every axis but the last."""
    for axis, n in enumerate(values.shape[:-1]):
        values = np.moveaxis(np.tensordot(to_coefficients(n), values, (1, axis)), 0, axis)
    return values


def _interpolated(
    coefficients: list[np.ndarray],
    ability: Float[np.ndarray, "points dims"],
    place: Float[np.ndarray, "points spots groups"],
) -> Float[np.ndarray, "tables points spots groups"]:
    """Values of several tables at places of the abilities and of the effects."""
    n_effects = coefficients[0].shape[-2]
    bases = np.moveaxis(chebvander(ability, _ABILITY - 1), 1, 0)
    basis = functools.reduce(_outer, bases)
    by_effect = chebvander(place, n_effects - 1)
    found = []
    for coefficient in coefficients:
        along = basis @ coefficient.reshape(basis.shape[1], -1)
        along = along.reshape(len(basis), n_effects, -1)
        found.append(np.einsum("peg,psge->psg", along, by_effect, optimize=True))
    return np.stack(found)


def _outer(
    one: Float[np.ndarray, "points n"], two: Float[np.ndarray, "points m"]
) -> Float[np.ndarray, "points nm"]:
    return (one[:, :, None] * two[:, None]).reshape(len(one), -1)


def _direct(
    bank: ItemBank, n_groups: int, latent: np.ndarray, effect: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Every point meets every item."""
    n_points, dtype = len(latent), np.asarray(bank.mean).dtype
    total = np.zeros((2, n_points, n_groups))
    pad = -n_points % _POINTS_AT_ONCE
    points = np.pad(latent, ((0, pad), (0, 0))).astype(dtype)
    moved = np.pad(effect, ((0, pad), (0, 0))).astype(dtype)
    for items, is_item in item_blocks(bank):
        for start in range(0, n_points, _POINTS_AT_ONCE):
            stop = start + _POINTS_AT_ONCE
            n = min(stop, n_points) - start
            found = _sums(items, is_item, points[start:stop], moved[start:stop])
            total[:, start : start + n] += np.asarray(found, np.float64)[:, :n]
    return total[0], total[1]


@jax.jit
def _sums(
    items: CurveItems,
    is_item: Float[Array, " width"],
    latent: Float[Array, "points latent"],
    effect: Float[Array, "points groups"],
) -> Float[Array, "two points groups"]:
    p, _ = curve(items, latent, shifts(effect, items, len(latent)))
    member = in_groups(items, effect.shape[1], p.dtype) * is_item[:, None]
    return jnp.stack([group_sums(member, p), group_sums(member, p**2)])


def item_blocks(bank: ItemBank) -> list[tuple[CurveItems, Any]]:
    n_items = len(bank.group)
    blocks = []
    for start in range(0, n_items, _ITEMS_AT_ONCE):
        index = np.arange(start, start + _ITEMS_AT_ONCE)
        is_item: Any = (index < n_items).astype(np.asarray(bank.mean).dtype)
        taken = functools.partial(np.take, indices=np.minimum(index, n_items - 1), axis=0)
        leaves: Any = (
            *(
                np.moveaxis(taken(np.asarray(leaf)), 1, 0)[:, None]
                for leaf in (bank.mean, bank.covariance, bank.share)
            ),
            jax.tree.map(lambda leaf, t=taken: t(np.asarray(leaf))[None], bank.asymptotes),
            taken(np.asarray(bank.group))[None],
            bool(np.any(np.asarray(bank.covariance))),
        )
        blocks.append((CurveItems(*leaves), is_item))
    return blocks


def _axis(values: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Chebyshev points in the range of each column, and the places of the values in it."""
    low, high = values.min(axis=0), values.max(axis=0)
    centre, half = (low + high) / 2, np.maximum((high - low) / 2, _LEAST_RANGE)
    points = centre + half * np.cos(chebyshev_angles(n))[:, None]
    return points, np.clip((values - centre) / half, -1, 1)

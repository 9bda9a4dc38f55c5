"""The expected score as a smooth function of two numbers of a model: a Chebyshev interpolant.

The curves of items are analytic, with poles at an imaginary part of pi / slope, so that
coefficients fall geometrically: over abilities from -4 to 4 by 2.1 a point at slope 1, by 1.2 at
slope 4. How much is left out is read off the last coefficients of each interpolant.

Source: Trefethen (2013), Approximation Theory and Approximation Practice, chapters 3, 4 and 8.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from irtjax.model.pytree import pytree_dataclass, static_field

__all__ = [
    "Interpolant",
    "Points",
    "Seen",
    "chebyshev_angles",
    "interpolant",
    "points_for",
    "to_coefficients",
]

# Points along an ability that is the only number, along one that is not, and along an effect, whose
# range is smaller. At 10,000 models and 100,000 items with 50 responses each, 24 x 24 are as exact
# as 64 x 64 (two dims), 24 x 8 as 96 x 32 (effects): that little is known of an item blurs its
# curve.
_ONLY, _ABILITY, _EFFECT = 128, 32, 16
# With fewer models a point than this an interpolant gains too little.
_FEWEST = 4
# The share of an axis' coefficients that tells what is left out.
_LAST = 1 / 4
# Half a range is no less: where all models are the same there is nothing to divide by.
_LEAST = 1e-3


@pytree_dataclass
class Seen:
    """Models (or points) as they meet the items."""

    design: Float[Array, "models coordinates"]
    effect: Float[Array, "models groups"] | None


@pytree_dataclass
class Points:
    """Every point of a first axis with every one of a second.

    Attributes:
        seen: the points as if they were models, those of the second axis next to each other.
        first: the models' places along the first axis, an ability, from -1 to 1 in its range.
        second: likewise along the second: the other ability (one group), or the effect, with a
            range and points of its own in each group of items; 0 where there is neither.
        sizes: points of each axis.
    """

    seen: Seen
    first: Float[Array, " models"]
    second: Float[Array, "models groups"]
    sizes: tuple[int, int] = static_field()


@pytree_dataclass
class Interpolant:
    """Chebyshev coefficients, and the size of the last of them (root sum of squares)."""

    coefficient: Float[Array, "groups first second"]
    error: Float[Array, ""]

    def at_models(self, points: Points) -> Float[Array, " models"]:
        """Values at the models, summed over the groups."""
        n_first, n_second = points.sizes
        first = _basis(points.first, n_first)

        def add(total: Array, group: tuple[Array, Array]) -> tuple[Array, None]:
            coefficient, place = group
            return total + jnp.sum((first @ coefficient) * _basis(place, n_second), axis=1), None

        groups = (self.coefficient, points.second.T)
        return jax.lax.scan(add, jnp.zeros_like(points.first), groups)[0]


def points_for(models: Seen) -> Points | None:
    """Where to evaluate; None where the score has more coordinates, or models are few."""
    ability, effect = models.design[:, :-1], models.effect
    n_models, dims = ability.shape
    if dims == 1 and effect is not None:
        second, sizes = effect, (_ABILITY, _EFFECT)
    elif dims == 2 and effect is None:
        second, sizes = ability[:, 1:], (_ABILITY, _ABILITY)
    elif dims == 1:
        second, sizes = jnp.zeros_like(ability), (_ONLY, 1)
    else:
        return None
    if n_models < _FEWEST * sizes[0] * sizes[1]:
        return None
    on_first = jnp.repeat(_on_axis(ability[:, :1], sizes[0]), sizes[1], axis=0)
    on_second = jnp.tile(_on_axis(second, sizes[1]), (sizes[0], 1))
    abilities = [on_first, on_second] if dims == 2 else [on_first]
    design = jnp.concatenate([*abilities, jnp.ones_like(on_first)], axis=1)
    seen = Seen(design, None if effect is None else on_second)
    return Points(seen, _places(ability[:, :1])[:, 0], _places(second), sizes)


def interpolant(points: Points, values: Float[Array, "groups points"]) -> Interpolant:
    """Through the values at the points."""
    n_first, n_second = points.sizes
    values = values.reshape(len(values), n_first, n_second)
    first, second = (jnp.asarray(to_coefficients(n), values.dtype) for n in points.sizes)
    coefficient = jnp.einsum("ak,gkl,bl->gab", first, values, second)
    last = jnp.where(_is_last(n_first)[:, None] | _is_last(n_second), coefficient, 0)
    return Interpolant(coefficient, jnp.sum(jnp.sqrt(jnp.sum(last**2, axis=(1, 2)))))


def _range(values: Float[Array, "models groups"]) -> tuple[Array, Array]:
    """Centre of the range of each group, and half its width."""
    low, high = jnp.min(values, axis=0), jnp.max(values, axis=0)
    return (low + high) / 2, jnp.maximum((high - low) / 2, _LEAST)


def _places(values: Float[Array, "models groups"]) -> Float[Array, "models groups"]:
    centre, half = _range(values)
    return jnp.clip((values - centre) / half, -1, 1)


def _on_axis(values: Float[Array, "models groups"], n: int) -> Float[Array, "points groups"]:
    """Chebyshev points of the first kind in the range of each group."""
    centre, half = _range(values)
    return centre + half * jnp.asarray(np.cos(chebyshev_angles(n)), values.dtype)[:, None]


def chebyshev_angles(n: int) -> Float[np.ndarray, " points"]:
    """Whose cosines are the Chebyshev points of the first kind."""
    return np.pi * (np.arange(n) + 0.5) / n


def to_coefficients(n: int) -> Float[np.ndarray, "orders points"]:
    """Matrix that makes Chebyshev coefficients of values at the points."""
    matrix = 2 / n * np.cos(np.arange(n)[:, None] * chebyshev_angles(n))
    matrix[0] /= 2
    return matrix


def _basis(place: Float[Array, " models"], n: int) -> Float[Array, "models orders"]:
    """Chebyshev polynomials at places between -1 and 1."""
    return jnp.cos(jnp.arccos(place)[:, None] * jnp.arange(n, dtype=place.dtype))


def _is_last(n: int) -> Bool[np.ndarray, " orders"]:
    return np.arange(n) >= n - int(_LAST * n)

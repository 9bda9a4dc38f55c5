"""Curves of uncertain items: P averaged over each item's posterior, and its derivatives.

Given all that the fit knows of an item, a new model's answer to it is right with probability
`E[P(slope . u + intercept + effect)]`, the mean over the item's posterior: with these curves in
place of those at the posterior means, items are fixed and their uncertainty is propagated
exactly, since a new model answers each item once and the posteriors are independent.

A batch of models meets the same items (`rows` = 1, matrix products) or each its own.
"""

import jax
import jax.numpy as jnp
from jax.nn import sigmoid
from jaxtyping import Array, Float, Int

from irtjax.fit.packed import quadratic, unpack_index
from irtjax.model.pytree import pytree_dataclass, static_field
from irtjax.model.quadrature import gauss_hermite
from irtjax.model.response import Asymptotes

__all__ = ["CurveItems", "Slopes", "curve", "curve_slopes", "log_curve"]

# Past this many logits sigmoid is at its limit in float32 and its logarithm still finite.
_FARTHEST_LOGIT = 80.0
# Gauss-Hermite nodes over an item's logit: off by less than 1e-4 at a variance of 2.
_N_NODES = 7


@pytree_dataclass
class CurveItems:
    """Items as a batch of models meets them: components first, then rows (1 or models), width."""

    mean: Float[Array, "components rows width coordinates"]
    covariance: Float[Array, "components rows width pairs"]
    share: Float[Array, "components rows width"]
    asymptotes: Asymptotes | None
    group: Int[Array, "rows width"]
    is_uncertain: bool = static_field(default=True)

    def of_each(self, index: Int[Array, "models width"]) -> "CurveItems":
        """Items of each model's own, out of one row that all meet."""
        return CurveItems(
            self.mean[:, 0, index],
            self.covariance[:, 0, index],
            self.share[:, 0, index],
            jax.tree.map(lambda leaf: leaf[0, index], self.asymptotes),
            self.group[0, index],
            self.is_uncertain,
        )


@pytree_dataclass
class Slopes:
    """P and 1 - P of each cell; dP and d2P by a shift of the logit; the gradient in u."""

    p: Float[Array, "models width"]
    not_p: Float[Array, "models width"]
    by_shift: Float[Array, "models width"]
    by_shift_twice: Float[Array, "models width"]
    by_latent: Float[Array, "models width latent"]


def curve(
    items: CurveItems, latent: Float[Array, "models latent"], shift: Float[Array, "models width"]
) -> tuple[Float[Array, "models width"], Float[Array, "models width"]]:
    """P and 1 - P of every cell at latent vectors and effects."""
    nodes = _nodes(items)

    def add(total: tuple[Array, Array], component: tuple) -> tuple[tuple[Array, Array], None]:
        mean, covariance, share = component
        centre, sd = _logit(items, latent, shift, mean, covariance)
        for node, weight in nodes:
            rise = _sigmoids(centre + node * sd)
            part = weight * share
            total = (total[0] + part * rise[0], total[1] + part * rise[1])
        return total, None

    zero = jnp.zeros(shift.shape, items.mean.dtype)
    known, missed = jax.lax.scan(add, (zero, zero), (items.mean, items.covariance, items.share))[0]
    return _between(items, known, missed)


def log_curve(
    items: CurveItems, latent: Float[Array, "models latent"], shift: Float[Array, "models width"]
) -> tuple[Float[Array, "models width"], Float[Array, "models width"]]:
    """`log P` and `log(1 - P)`."""
    p, not_p = curve(items, latent, shift)
    return jnp.log(p), jnp.log(not_p)


def curve_slopes(
    items: CurveItems, latent: Float[Array, "models latent"], shift: Float[Array, "models width"]
) -> Slopes:
    """The curves with their derivatives; the sd of a logit moves by `V x / sd` with u."""
    nodes = _nodes(items)
    n_latent = latent.shape[1]

    def add(total: tuple, component: tuple) -> tuple[tuple, None]:
        mean, covariance, share = component
        centre, sd = _logit(items, latent, shift, mean, covariance)
        first = second = by_sd = p = not_p = jnp.zeros_like(centre)
        for node, weight in nodes:
            s, not_s = _sigmoids(centre + node * sd)
            density = weight * s * not_s
            p, not_p = p + weight * s, not_p + weight * not_s
            first, by_sd = first + density, by_sd + node * density
            second = second + density * (not_s - s)
        gradient = first[..., None] * mean[..., :n_latent]
        if items.is_uncertain:
            position = unpack_index(n_latent + 1)[:n_latent]
            x = jnp.concatenate([latent, jnp.ones_like(latent[:, :1])], axis=1)
            along = _applied_rows(covariance[..., position], x)
            safe = jnp.where(sd > 0, sd, jnp.ones_like(sd))
            gradient = gradient + jnp.where(sd > 0, by_sd / safe, 0)[..., None] * along
        found = (p, not_p, first, second)
        total = tuple(a + share * b for a, b in zip(total[:4], found, strict=True)) + (
            total[4] + share[..., None] * gradient,
        )
        return total, None

    zero = jnp.zeros(shift.shape, items.mean.dtype)
    wide = jnp.zeros((*shift.shape, n_latent), zero.dtype)
    sums = jax.lax.scan(
        add, (zero, zero, zero, zero, wide), (items.mean, items.covariance, items.share)
    )[0]
    p, not_p = _between(items, sums[0], sums[1])
    rise = _rise(items)
    wide_rise = rise[..., None] if isinstance(rise, jax.Array) else rise
    return Slopes(p, not_p, rise * sums[2], rise * sums[3], wide_rise * sums[4])


def _nodes(items: CurveItems) -> list[tuple[float, float]]:
    node, weight = gauss_hermite(_N_NODES if items.is_uncertain else 1)
    return [(float(a), float(b)) for a, b in zip(node, weight, strict=True)]


def _logit(
    items: CurveItems, latent: Array, shift: Array, mean: Array, covariance: Array
) -> tuple[Array, Array]:
    """Mean and sd of each cell's logit under one component."""
    x = jnp.concatenate([latent, jnp.ones_like(latent[:, :1])], axis=1)
    centre = _applied(mean, x) + shift
    if not items.is_uncertain:
        return centre, jnp.zeros_like(centre)
    return centre, jnp.sqrt(jnp.maximum(_applied(covariance, quadratic(x)), 0))


def _applied(table: Float[Array, "rows width k"], x: Float[Array, "models k"]) -> Array:
    if table.shape[0] == 1:
        return x @ table[0].T
    return jnp.einsum("mnk,mk->mn", table, x)


def _applied_rows(table: Float[Array, "rows width k l"], x: Float[Array, "models l"]) -> Array:
    if table.shape[0] == 1:
        return jnp.einsum("nkl,ml->mnk", table[0], x)
    return jnp.einsum("mnkl,ml->mnk", table, x)


def _sigmoids(logit: Array) -> tuple[Array, Array]:
    """sigmoid(z) and sigmoid(-z), each to full relative precision, by one exponential."""
    odds = jnp.exp(-jnp.clip(logit, -_FARTHEST_LOGIT, _FARTHEST_LOGIT))
    s = 1 / (1 + odds)
    return s, odds * s


def _rise(items: CurveItems) -> Array | float:
    """Feasibility minus guessing."""
    if items.asymptotes is None:
        return 1.0
    return sigmoid(-items.asymptotes.lower) * sigmoid(items.asymptotes.upper)


def _between(items: CurveItems, known: Array, missed: Array) -> tuple[Array, Array]:
    if items.asymptotes is None:
        return known, missed
    lower, upper = items.asymptotes.lower, items.asymptotes.upper
    rise = _rise(items)
    return sigmoid(lower) + rise * known, sigmoid(-lower) * sigmoid(-upper) + rise * missed

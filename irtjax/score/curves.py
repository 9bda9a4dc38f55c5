"""Curves of uncertain items: P averaged over each item's posterior, and its derivatives.

Given all that the fit knows of an item, a new model's answer to it is right with probability
`E[P(slope . u + intercept + effect)]`, the mean over the item's posterior: with these curves in
place of those at the posterior means, items are fixed and their uncertainty is propagated
exactly, since a new model answers each item once and the posteriors are independent.

A batch of models meets the same items (`rows` = 1, matrix products) or each its own.

The mean over an item's logit is by nodes one sd apart, in pairs: a pair's sigmoids sum to a ratio
of polynomials in `exp(-|z|)` and `cosh(k sd)`, and the next cosh comes from the last two, so that a
cell costs as many exponentials however many nodes there are.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.nn import sigmoid
from jaxtyping import Array, Bool, Float, Int

from irtjax.fit.packed import quadratic, unpack_index
from irtjax.model.pytree import pytree_dataclass, static_field
from irtjax.model.response import Asymptotes

__all__ = ["CurveItems", "Slopes", "Tails", "bends", "curve", "curve_slopes", "tails"]

# Past this many logits sigmoid is at its limit in float32 and its logarithm still finite.
_FARTHEST_LOGIT = 80.0
# Nodes at 0 and so many pairs, an sd apart: off by 3e-6 at a variance of 1, 4e-5 at 2, 4e-4 at 4
# (seven Gauss-Hermite nodes: 9e-6, 1.5e-4, 1.3e-3).
_N_PAIRS = 4
# In logits: an item of which less is known tells nothing, and the product of four tails is finite.
_LARGEST_SD = 7.0


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
    by_latent: Float[Array, "latent models width"]


class Tails(NamedTuple):
    """The less likely of P and 1 - P as `exp(-distance) * tail`; `tail` is from .5 to e^20.

    `is_right_likely` says that it is 1 - P, `distance` is the mean logit's from 0.
    """

    distance: Float[Array, "models width"]
    tail: Float[Array, "models width"]
    is_right_likely: Bool[Array, "models width"]


class _Averages(NamedTuple):
    """Means over nodes n of a cell's logit z: 1 - sigmoid(|z|) over exp(-|z|), and of sigmoid's
    derivatives there times powers of n. Those not read are not computed.
    """

    exponential: Array
    tail: Array
    first: Array
    node_first: Array
    second: Array
    node_second: Array
    square_second: Array


def curve(
    items: CurveItems, latent: Float[Array, "models latent"], shift: Float[Array, "models width"]
) -> tuple[Float[Array, "models width"], Float[Array, "models width"]]:
    """P and 1 - P of every cell at latent vectors and effects, each to full relative precision."""

    def add(total: tuple[Array, Array], component: tuple) -> tuple[tuple[Array, Array], None]:
        mean, covariance, share = component
        centre, sd = _logit(items, latent, shift, mean, covariance)
        p, not_p = _sides(centre, _averages(items, centre, sd))
        return (total[0] + share * p, total[1] + share * not_p), None

    zero = jnp.zeros(shift.shape, items.mean.dtype)
    known, missed = jax.lax.scan(add, (zero, zero), (items.mean, items.covariance, items.share))[0]
    return _between(items, known, missed)


def tails(
    items: CurveItems, latent: Float[Array, "models latent"], shift: Float[Array, "models width"]
) -> Tails | None:
    """P as a product that cannot underflow; None for items that have no such form.

    Those have asymptotes, or are mixtures.
    """
    if items.asymptotes is not None or items.mean.shape[0] > 1:
        return None
    centre, sd = _logit(items, latent, shift, items.mean[0], items.covariance[0])
    distance = jnp.minimum(jnp.abs(centre), _FARTHEST_LOGIT)
    return Tails(distance, _averages(items, centre, sd).tail, centre > 0)


def curve_slopes(
    items: CurveItems, latent: Float[Array, "models latent"], shift: Float[Array, "models width"]
) -> Slopes:
    """The curves with their derivatives; the sd of a logit moves by `V x / sd` with u."""
    n_latent = latent.shape[1]

    def add(total: tuple, component: tuple) -> tuple[tuple, None]:
        mean, covariance, share = component
        centre, sd = _logit(items, latent, shift, mean, covariance)
        found = _averages(items, centre, sd)
        gradient = found.first * jnp.moveaxis(mean[..., :n_latent], 2, 0)
        if items.is_uncertain:
            along = _along(covariance, latent, n_latent)
            gradient = gradient + _over(found.node_first, sd) * along
        parts = (*_sides(centre, found), found.first, found.second, gradient)
        return tuple(a + share * b for a, b in zip(total, parts, strict=True)), None

    zero = jnp.zeros(shift.shape, items.mean.dtype)
    wide = jnp.zeros((n_latent, *shift.shape), zero.dtype)
    sums = jax.lax.scan(
        add, (zero, zero, zero, zero, wide), (items.mean, items.covariance, items.share)
    )[0]
    p, not_p = _between(items, sums[0], sums[1])
    rise = _rise(items)
    return Slopes(p, not_p, rise * sums[2], rise * sums[3], rise * sums[4])


def bends(
    items: CurveItems,
    latent: Float[Array, "models latent"],
    shift: Float[Array, "models width"],
    metric: Float[Array, "models some some"],
) -> Float[Array, "models width"]:
    """`tr(metric P'')` of every cell, derivatives in the first coordinates of u.

    The logit at node n is `z + n sd`: its gradient is `m + n V x / sd`, and its second derivative
    `n (V / sd - (V x)(V x)' / sd^3)`.
    """
    n_some = metric.shape[1]

    def metric_times(
        vector: Float[Array, "some models width"],
    ) -> Float[Array, "some models width"]:
        turn = jnp.moveaxis(metric, 0, 2)[..., None]
        return jnp.sum(turn * vector, axis=1)

    def add(total: Array, component: tuple) -> tuple[Array, None]:
        mean, covariance, share = component
        centre, sd = _logit(items, latent, shift, mean, covariance)
        found = _averages(items, centre, sd)
        slope = jnp.moveaxis(mean[..., :n_some], 2, 0)
        turned = metric_times(slope)
        bend = found.second * jnp.sum(turned * slope, axis=0)
        if items.is_uncertain:
            # Divided before they are multiplied: squares of small numbers are none in float32.
            away = _over(jnp.ones_like(sd), sd) * _along(covariance, latent, n_some)
            square = jnp.sum(metric_times(away) * away, axis=0)
            own = covariance[..., unpack_index(latent.shape[1] + 1)[:n_some, :n_some]]
            trace = _applied(own.reshape(*own.shape[:2], -1), metric.reshape(len(metric), -1))
            bend = bend + 2 * found.node_second * jnp.sum(turned * away, axis=0)
            bend = bend + found.square_second * square
            bend = bend + _over(found.node_first, sd) * (trace - square)
        return total + share * bend, None

    zero = jnp.zeros(shift.shape, items.mean.dtype)
    total, _ = jax.lax.scan(add, zero, (items.mean, items.covariance, items.share))
    return _rise(items) * total


@functools.cache
def _node_weights(n_pairs: int) -> tuple[float, ...]:
    """Weights of node 0 and of each of the nodes `+-1, +-2, ..`: a normal's even moments."""
    node = np.arange(n_pairs + 1.0)
    order = 2 * np.arange(n_pairs + 1)
    moment = [float(np.prod(np.arange(1, each, 2))) for each in order]
    twice = np.where(node > 0, 2, 1)
    return tuple(np.linalg.solve(twice * node ** order[:, None], moment).tolist())


def _averages(items: CurveItems, centre: Array, sd: Array) -> _Averages:
    """By pairs: with c and s twice the cosh and sinh of `k sd`, and D = 1 + c e + e^2, the pair's
    1 - sigmoid sum to `e (c + 2 e) / D`, the first derivatives to `e (c + 4 e + c e^2) / D^2`.

    c and s of the next pair come by recurrence: XLA makes powers of an exponential exponentials.
    """
    e = jnp.exp(-jnp.minimum(jnp.abs(centre), _FARTHEST_LOGIT))
    side = jnp.where(centre > 0, 1.0, -1.0).astype(e.dtype)
    weight, *pairs = _node_weights(_N_PAIRS if items.is_uncertain else 0)
    part, square = 1 / (1 + e), e * e
    tail, first = weight * part, weight * e * part * part
    second = -first * (1 - e) * part
    node_first = node_second = square_second = jnp.zeros_like(e)
    sd = jnp.minimum(sd, _LARGEST_SD)
    c_once, s = jnp.exp(sd) + jnp.exp(-sd), jnp.exp(sd) - jnp.exp(-sd)
    c, c_before, s_before = c_once, jnp.full_like(e, 2), jnp.zeros_like(e)
    for node, weight in enumerate(pairs, 1):
        part = 1 / (1 + e * (c + e))
        # No third power of what may be 1e-14, nor a square of c beside it.
        small, plain = weight * e * part, (c * (1 + square) + (8 - c * c) * e) * part
        tail = tail + weight * part * (c + 2 * e)
        first = first + small * (part * (c * (1 + square) + 4 * e))
        bent = -small * (1 - square) * part * plain
        second = second + bent
        node_first = node_first - node * small * (1 - square) * (part * s)
        even = 1 - 6 * square + square * square - e * c * (1 + square)
        node_second = node_second + node * small * (part * s) * (part * even)
        square_second = square_second + node**2 * bent
        c, c_before = c_once * c - c_before, c
        s, s_before = c_once * s - s_before, s
    return _Averages(
        e, tail, first, side * node_first, side * second, node_second, side * square_second
    )


def _sides(centre: Array, found: _Averages) -> tuple[Array, Array]:
    """Means of sigmoid and of its complement."""
    small = found.exponential * found.tail
    return jnp.where(centre > 0, 1 - small, small), jnp.where(centre > 0, small, 1 - small)


def _over(numerator: Array, sd: Array) -> Array:
    """The quotient, 0 where nothing is uncertain."""
    return jnp.where(sd > 0, numerator / jnp.where(sd > 0, sd, jnp.ones_like(sd)), 0)


def _along(
    covariance: Float[Array, "rows width pairs"], latent: Array, n_some: int
) -> Float[Array, "some models width"]:
    """The first coordinates of `V x`."""
    position = unpack_index(latent.shape[1] + 1)[:n_some]
    x = jnp.concatenate([latent, jnp.ones_like(latent[:, :1])], axis=1)
    return jnp.stack([_applied(covariance[..., row], x) for row in position])


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

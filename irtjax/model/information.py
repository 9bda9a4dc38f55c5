"""Fisher information and slope of item response curves (DESIGN 4.6).

With `z` the logit, `s = sigmoid(z)`, guessing c and feasibility d, a response tells
`g = [(d - c) s (1 - s)]^2 / (P (1 - P))` about z, and the curve rises by `(d - c) s (1 - s)` a
logit. About the abilities an item of slope a tells the matrix `g a a'`, and `g (a . u)^2` about
their place along a direction u.
"""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from irtjax.model.curves import ItemCurves, padded_curves
from irtjax.model.response import cell_derivatives

__all__ = [
    "cell_information",
    "cell_slope",
    "information_matrices",
    "item_information",
    "item_slope",
    "logit_information",
    "logit_slope",
    "mean_information",
    "mean_slope",
    "observed_information",
    "observed_information_matrices",
    "total_information",
]

# Past this many logits a response tells nothing in float32, and powers of the odds would overflow.
_FARTHEST_LOGIT = 40.0
# Sums and means take as many items at a time, so that cells are never all in memory.
_ITEMS_AT_A_TIME = 65_536


def logit_slope(
    logit: Float[Array, "..."],
    guessing: Float[Array, "..."] | float = 0.0,
    feasibility: Float[Array, "..."] | float = 1.0,
) -> Float[Array, "..."]:
    """`dP/dz`: probability a logit; times the slope it is `dP/dtheta`."""
    return (feasibility - guessing) * jax.nn.sigmoid(logit) * jax.nn.sigmoid(-logit)


def logit_information(
    logit: Float[Array, "..."],
    guessing: Float[Array, "..."] | float = 0.0,
    feasibility: Float[Array, "..."] | float = 1.0,
) -> Float[Array, "..."]:
    """Fisher information of a response about its logit, per squared logit.

    Times the squared slope it is the information about an ability. `1 - P` is
    `1 - d + (d - c) sigmoid(-z)`, which cancels nowhere.
    """
    # One exponential and two divisions, the cost of looking through a bank.
    odds = jnp.exp(-jnp.clip(logit, -_FARTHEST_LOGIT, _FARTHEST_LOGIT))
    s = 1 / (1 + odds)
    not_s, span = odds * s, feasibility - guessing
    rise = span * s * not_s
    return rise * (rise / ((guessing + span * s) * (1 - feasibility + span * not_s)))


def cell_information(
    curves: ItemCurves, ability: Float[Array, "points dims"]
) -> Float[Array, "points items"]:
    """`g` of every item at every ability: its information matrix there is `g slope slope'`."""
    return logit_information(curves.logit(ability), curves.guessing, curves.feasibility)


def cell_slope(
    curves: ItemCurves, ability: Float[Array, "points dims"]
) -> Float[Array, "points items"]:
    """`dP/dz` of every item at every ability."""
    return logit_slope(curves.logit(ability), curves.guessing, curves.feasibility)


@jax.jit
def item_information(
    curves: ItemCurves,
    ability: Float[Array, "points dims"],
    direction: Float[Array, " dims"] | None = None,
) -> Float[Array, "points items"]:
    """Expected Fisher information of every item at every ability, a number each.

    Args:
        curves: the items.
        ability: where; in latent standard deviations.
        direction: along which the ability is measured, of length 1. Without, each item is taken
            along its own slopes (the most that it can tell): `g |slope|^2`, the matrix' trace.

    Returns:
        Per squared latent standard deviation.

    >>> from irtjax.model.curves import item_curves
    >>> steep = item_curves(2 * jnp.ones((1, 1)), jnp.zeros(1))
    >>> float(item_information(steep, jnp.zeros((1, 1)))[0, 0])
    1.0
    """
    return cell_information(curves, ability) * _squared_steepness(curves, direction)


@jax.jit
def item_slope(
    curves: ItemCurves,
    ability: Float[Array, "points dims"],
    direction: Float[Array, " dims"] | None = None,
) -> Float[Array, "points items"]:
    """`dP/dtheta` of every item at every ability: local efficiency headroom (LEH).

    Source: Zhou et al. (2026), arXiv 2505.15055, who take it at the highest ability.

    Args:
        curves: the items.
        ability: where.
        direction: as in `item_information`; signed (an item that falls along it has less than 0).
            Without, one dim's own sign, and at more dims along the item's own slopes, positive.
    """
    return cell_slope(curves, ability) * _steepness(curves, direction)


@jax.jit
def information_matrices(
    curves: ItemCurves, ability: Float[Array, "points dims"]
) -> Float[Array, "points items dims dims"]:
    """Expected Fisher information matrix `g slope slope'` of every item at every ability."""
    return _matrices(curves, cell_information(curves, ability))


@jax.jit
def observed_information(
    curves: ItemCurves,
    ability: Float[Array, "points dims"],
    response: Float[Array, "points items"],
    direction: Float[Array, " dims"] | None = None,
) -> Float[Array, "points items"]:
    """Observed information: minus the second derivative of a response's log-likelihood.

    With asymptotes it can be negative; its mean over the responses is `item_information`.

    Args:
        curves: the items.
        ability: where.
        response: 0, 1 or between.
        direction: as in `item_information`.
    """
    return _observed(curves, ability, response) * _squared_steepness(curves, direction)


@jax.jit
def observed_information_matrices(
    curves: ItemCurves,
    ability: Float[Array, "points dims"],
    response: Float[Array, "points items"],
) -> Float[Array, "points items dims dims"]:
    """Observed information matrix of every response; see `observed_information`."""
    return _matrices(curves, _observed(curves, ability, response))


def total_information(
    curves: ItemCurves, ability: Float[Array, "points dims"]
) -> Float[Array, "points dims dims"]:
    """Expected information of all items together at each ability: the test information curve.

    Its inverse is the least covariance of an unbiased estimate there; with a prior's precision
    added, the posterior's.
    """
    found = [_total(block, ability) for block in _blocks(curves)]
    return sum(found[1:], found[0])


def mean_information(
    curves: ItemCurves,
    ability: Float[Array, "points dims"],
    weight: Float[Array, " points"],
    direction: Float[Array, " dims"] | None = None,
) -> Float[Array, " items"]:
    """Each item's information averaged over a distribution of abilities.

    At one point, the highest ability say, nearly every item is saturated and the order of what is
    left is noise.

    Args:
        curves: the items.
        ability: the distribution's points.
        weight: their probabilities, which sum to 1.
        direction: as in `item_information`.
    """
    found = [_mean_information(block, ability, weight, direction) for block in _blocks(curves)]
    return jnp.concatenate(found)[: curves.n_items]


def mean_slope(
    curves: ItemCurves,
    ability: Float[Array, "points dims"],
    weight: Float[Array, " points"],
    direction: Float[Array, " dims"] | None = None,
) -> Float[Array, " items"]:
    """Each item's `dP/dtheta` (LEH) averaged over a distribution of abilities."""
    found = [_mean_slope(block, ability, weight, direction) for block in _blocks(curves)]
    return jnp.concatenate(found)[: curves.n_items]


@jax.jit
def _total(
    curves: ItemCurves, ability: Float[Array, "points dims"]
) -> Float[Array, "points dims dims"]:
    outer = curves.slope[:, :, None] * curves.slope[:, None]
    # One matrix product: a product of three would form `g slope` of every cell first.
    flat = cell_information(curves, ability) @ outer.reshape(curves.n_items, -1)
    return flat.reshape(-1, curves.dims, curves.dims)


@jax.jit
def _mean_information(
    curves: ItemCurves,
    ability: Float[Array, "points dims"],
    weight: Float[Array, " points"],
    direction: Float[Array, " dims"] | None,
) -> Float[Array, " items"]:
    return weight @ item_information(curves, ability, direction)


@jax.jit
def _mean_slope(
    curves: ItemCurves,
    ability: Float[Array, "points dims"],
    weight: Float[Array, " points"],
    direction: Float[Array, " dims"] | None,
) -> Float[Array, " items"]:
    return weight @ item_slope(curves, ability, direction)


def _steepness(
    curves: ItemCurves, direction: Float[Array, " dims"] | None
) -> Float[Array, " items"]:
    if direction is not None:
        return jnp.sum(curves.slope * direction, axis=1)
    if curves.dims == 1:
        return curves.slope[:, 0]
    return jnp.sqrt(_squared_steepness(curves, None))


def _squared_steepness(
    curves: ItemCurves, direction: Float[Array, " dims"] | None
) -> Float[Array, " items"]:
    if direction is None:
        return jnp.sum(curves.slope**2, axis=1)
    return _steepness(curves, direction) ** 2


def _observed(
    curves: ItemCurves, ability: Float[Array, "points dims"], response: Float[Array, "points items"]
) -> Float[Array, "points items"]:
    response = jnp.asarray(response, curves.slope.dtype)
    return cell_derivatives(curves.logit(ability), response, curves.asymptotes).negative_second


def _matrices(
    curves: ItemCurves, told: Float[Array, "points items"]
) -> Float[Array, "points items dims dims"]:
    return told[..., None, None] * (curves.slope[:, :, None] * curves.slope[:, None])


def _blocks(curves: ItemCurves) -> Iterator[ItemCurves]:
    """Items a block at a time; what is put at the end tells nothing.

    A loop of the host's: inside `lax.map` XLA computes these matrix products six times slower on
    CPU (jaxlib 0.10.1: 34,000 items x 100 abilities in 37 ms instead of 6).
    """
    if curves.n_items <= _ITEMS_AT_A_TIME:
        yield curves
        return
    padded = padded_curves(curves, -(-curves.n_items // _ITEMS_AT_A_TIME) * _ITEMS_AT_A_TIME)
    for start in range(0, padded.n_items, _ITEMS_AT_A_TIME):
        chosen = slice(start, start + _ITEMS_AT_A_TIME)
        yield jax.tree.map(lambda leaf, chosen=chosen: leaf[chosen], padded)

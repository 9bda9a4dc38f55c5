"""A model's posterior as weighted nodes: adaptive quadrature, benchmark effects integrated inside.

Nodes of the latent vector lie around the posterior's mode, in its own metric: Gauss-Hermite's for
one coordinate, on rings or shells for two or three, beyond a fixed low-discrepancy set, whose
weights the true density over the normal one corrects. Given a node, effects are independent of each
other, and each is integrated by Gauss-Hermite quadrature around where it then is likeliest.
"""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Float
from scipy.special import ndtri, roots_genlaguerre
from scipy.stats import qmc

from irtjax.model.pytree import pytree_dataclass
from irtjax.model.quadrature import gauss_hermite
from irtjax.score.cells import Answers
from irtjax.score.curves import CurveItems, curve
from irtjax.score.likelihood import likelihood_parts, log_likelihoods
from irtjax.score.mode import Mode, find_mode, group_sums, in_groups, shifts

__all__ = [
    "NodePosterior",
    "effect_log_ratio",
    "effect_spots",
    "expected_at",
    "expected_latent",
    "node_posterior",
    "nodes_around",
    "standard_nodes",
]

_LINE_NODES = 21
# Rings of two coordinates (of 9 nodes each), shells of three (of 26). On skewed posteriors these 45
# were twice as near as a grid's 81, these 104 five to ten times as near as 256 Sobol points.
_RADII = {2: 5, 3: 4}
_RING = 9
_POINTS = 256
_EFFECT_NODES = 5
# Nodes a little wider apart than the normal's: the tails of few answers are. One coordinate's can
# afford to be wide and many: with 15 at 1.15 the errors of 3PL's most skewed posteriors were off by
# 4%, with these by .8%.
_WIDER = {1: 1.3, 2: 1.15}


@pytree_dataclass
class NodePosterior:
    """Nodes of each model with weights that sum to 1.

    `effect` and `effect_weight` (over `spots`) are those of each effect given the node;
    `expected` the sums of P over the model's own answered items by group, at the node and spot.
    `log_evidence` is the log-probability of the answers, up to a constant of the bank's shape.
    """

    latent: Float[Array, "models nodes latent"]
    weight: Float[Array, "models nodes"]
    effect: Float[Array, "models nodes spots groups"] | None
    effect_weight: Float[Array, "models nodes spots groups"] | None
    expected: Float[Array, "models nodes spots groups"] | None
    expected_square: Float[Array, "models nodes spots groups"] | None
    log_evidence: Float[Array, " models"]


@functools.cache
def standard_nodes(n_latent: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes of the standard normal and log-weights, float64."""
    if n_latent == 1:
        node, weight = gauss_hermite(_LINE_NODES)
        return node[:, None], np.log(weight)
    if n_latent in _RADII:
        half_square, weight = roots_genlaguerre(_RADII[n_latent], n_latent / 2 - 1)
        spheres = [_ring(k) if n_latent == 2 else _shell() for k in range(len(weight))]
        radius, share = np.sqrt(2 * half_square), weight / weight.sum()
        nodes = [r * directions for r, (directions, _) in zip(radius, spheres, strict=True)]
        logs = [np.log(a * each) for a, (_, each) in zip(share, spheres, strict=True)]
        return np.concatenate(nodes), np.concatenate(logs)
    points = qmc.Sobol(n_latent, scramble=True, seed=0).random(_POINTS // 2)
    half = ndtri(np.clip(points, 1e-6, 1 - 1e-6))
    return np.concatenate([half, -half]), np.full(_POINTS, -np.log(_POINTS))


def _ring(number: int) -> tuple[np.ndarray, np.ndarray]:
    """Directions in the plane and their weights, every other ring turned by half a step."""
    angle = 2 * np.pi * (np.arange(_RING) + number % 2 / 2) / _RING
    return np.stack([np.cos(angle), np.sin(angle)], axis=1), np.full(_RING, 1 / _RING)


def _shell() -> tuple[np.ndarray, np.ndarray]:
    """Directions in space to a cube's faces, edges and corners, exact to degree 7.

    Source: Stroud (1971), Approximate Calculation of Multiple Integrals, U3 7-1.
    """
    cube = np.array([p for p in itertools.product((-1, 0, 1), repeat=3) if any(p)], float)
    n_axes = np.abs(cube).sum(axis=1).astype(int)
    weight = np.array([0, 1 / 21, 4 / 105, 9 / 280])[n_axes]
    return cube / np.sqrt(n_axes)[:, None], weight


@functools.partial(jax.jit, static_argnames=("n_groups",))
def node_posterior(
    answers: Answers,
    items: CurveItems,
    effect_variance: Float[Array, " groups"] | None,
    mode: Mode,
    *,
    n_groups: int = 0,
) -> NodePosterior:
    """The posterior around its mode.

    Args:
        answers: of a batch of models.
        items: that they answered.
        effect_variance: of each group's effects, None without.
        mode: of `find_mode`.
        n_groups: also sum up P over the answered items of each of so many groups.
    """
    n_models = len(mode.latent)
    factor = jnp.linalg.cholesky(mode.information)
    spread, log_ratio = nodes_around(mode, factor)
    latent = mode.latent[:, None] + spread
    likelihoods = likelihood_parts if effect_variance is None else log_likelihoods
    at_mode = likelihoods(answers, items, mode.latent, shifts(mode.effect, items, n_models))

    def visit(_: None, given: tuple) -> tuple[None, tuple]:
        at, away = given
        if effect_variance is None:
            gained = likelihoods(answers, items, at, shifts(None, items, n_models)) - at_mode
            found: tuple = (jnp.sum(gained, axis=1), None, None, None, None)
            if n_groups:
                expected = expected_at(answers, items, at, n_groups=n_groups)
                found = (found[0], None, None, *(part[:, None] for part in expected))
            return None, found
        return None, _effects_at(
            answers, items, effect_variance, mode, at, away, at_mode, n_groups > 0
        )

    _, (gain, effect, effect_weight, expected, square) = jax.lax.scan(
        visit, None, (latent.transpose(1, 0, 2), spread.transpose(1, 0, 2))
    )
    joint = gain.T + log_ratio
    log_evidence = (
        jax.nn.logsumexp(joint, axis=1)
        + jnp.sum(at_mode, axis=1)
        - jnp.sum(jnp.log(jnp.diagonal(factor, axis1=1, axis2=2)), axis=1)
    )

    def models_first(leaf: Array) -> Array:
        return jnp.moveaxis(leaf, 0, 1)

    by_node = jax.tree.map(models_first, (effect, effect_weight, expected, square))
    return NodePosterior(*(latent, jax.nn.softmax(joint, axis=1), *by_node, log_evidence))


def nodes_around(
    mode: Mode, factor: Float[Array, "models latent latent"]
) -> tuple[Float[Array, "models nodes latent"], Float[Array, "models nodes"]]:
    """Nodes less the mode, and their log prior less log proposal, up to a constant.

    Args:
        mode: of `find_mode`.
        factor: Cholesky factor of its information.
    """
    n_models, n_latent = mode.latent.shape
    z, log_weight = (jnp.asarray(part, mode.latent.dtype) for part in standard_nodes(n_latent))
    # A Cholesky factor of the inverse: its transpose solves.
    spread = _WIDER.get(n_latent, _WIDER[2]) * solve_triangular(
        factor, jnp.broadcast_to(z.T, (n_models, *z.T.shape)), lower=True, trans=1
    ).transpose(0, 2, 1)
    latent = mode.latent[:, None] + spread
    return spread, 0.5 * jnp.sum(z**2, axis=1) - 0.5 * jnp.sum(latent**2, axis=2) + log_weight


def effect_spots(dtype: jnp.dtype) -> tuple[Float[Array, " spots"], Float[Array, " spots"]]:
    """Spots of an effect given the node, in its own standard deviations, and their weights."""
    z, weight = gauss_hermite(_EFFECT_NODES)
    return jnp.asarray(z, dtype), jnp.asarray(weight, dtype)


def effect_log_ratio(effect: Array, effect_variance: Array, z: Array, sd: Array) -> Array:
    """An effect's log prior less log proposal at a spot, up to a constant."""
    log_prior = -0.5 * effect**2 / effect_variance - 0.5 * jnp.log(effect_variance)
    return log_prior + 0.5 * z**2 + jnp.log(sd)


def _effects_at(
    answers: Answers,
    items: CurveItems,
    effect_variance: Array,
    mode: Mode,
    at: Float[Array, "models latent"],
    away: Float[Array, "models latent"],
    at_mode: Float[Array, "models width"],
    is_predicting: bool,
) -> tuple:
    """Integrate each effect at one node: log-likelihood, spots and their weights."""
    assert mode.effect is not None
    assert mode.precision is not None
    assert mode.coupling is not None
    dtype = at.dtype
    n_models, n_groups = mode.effect.shape
    member = in_groups(items, n_groups, dtype)
    centre = mode.effect - jnp.einsum("mgk,mk->mg", mode.coupling, away)
    sd = 1 / jnp.sqrt(mode.precision)
    z, weight = effect_spots(dtype)

    def spot(_: None, z: Array) -> tuple[None, tuple]:
        effect = centre + z * sd
        shift = shifts(effect, items, n_models)
        gain = group_sums(member, log_likelihoods(answers, items, at, shift) - at_mode)
        log_density = gain + effect_log_ratio(effect, effect_variance, z, sd)
        expected: tuple = (None, None)
        if is_predicting:
            expected = expected_at(answers, items, at, effect, n_groups=n_groups)
        return None, (effect, log_density, *expected)

    _, (effect, log_density, *expected) = jax.lax.scan(spot, None, z)
    joint = log_density + jnp.log(weight)[:, None, None]
    total = jax.nn.logsumexp(joint, axis=0)

    def models_first(leaf: Array) -> Array:
        return jnp.moveaxis(leaf, 0, 1)

    spots = (effect, jnp.exp(joint - total), *expected)
    return (jnp.sum(total, axis=1), *jax.tree.map(models_first, spots))


@jax.jit
def expected_latent(
    answers: Answers, items: CurveItems, effect_variance: Float[Array, " groups"] | None
) -> tuple[Float[Array, "models latent"], Float[Array, "models latent latent"]]:
    """Posterior mean and covariance of each model's latent vector (EAP)."""
    mode = find_mode(answers, items, effect_variance, is_rough=True)
    posterior = node_posterior(answers, items, effect_variance, mode)
    mean = jnp.einsum("mq,mqk->mk", posterior.weight, posterior.latent)
    away = posterior.latent - mean[:, None]
    return mean, jnp.einsum("mq,mqk,mql->mkl", posterior.weight, away, away)


@functools.partial(jax.jit, static_argnames=("n_groups",))
def expected_at(
    answers: Answers,
    items: CurveItems,
    latent: Float[Array, "models latent"],
    effect: Float[Array, "models groups"] | None = None,
    *,
    n_groups: int,
) -> tuple[Float[Array, "models groups"], Float[Array, "models groups"]]:
    """Sums of P and P^2 over the answered items of each group."""
    p, _ = curve(items, latent, shifts(effect, items, len(latent)))
    p = jnp.where(answers.weight > 0, p, 0)
    member = in_groups(items, n_groups, p.dtype)
    return group_sums(member, p), group_sums(member, p**2)

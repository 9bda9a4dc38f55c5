"""The frame of abilities inside the loop: mean 0, covariance I, effects that are residuals.

Every change moves abilities, effects, posteriors and priors together: no logit changes.
"""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from irtjax.fit.hyperparameters import ItemDistribution
from irtjax.fit.item_pass import ItemPosteriors, prior_group
from irtjax.fit.packed import pair_index, solve_positive_definite, unpack_index
from irtjax.model.pytree import pytree_dataclass

__all__ = ["FrameChange", "rescale", "residual_effects", "standardise"]

# Variances below these have vanished: as shares of the mean variance and of the squared mean, and
# by themselves (abilities have sd 1, or in `finish` not much less; their rounding is 1e-6).
_VANISHED_SHARE = 1e-6
_VANISHED_MEAN = 1e-9
_VANISHED = 1e-8


@pytree_dataclass
class FrameChange:
    """`z -> matrix z + shift_g` of every item `z = (slope, intercept)` of group g (or of all)."""

    matrix: Float[Array, "coordinates coordinates"]
    shift: Float[Array, "groups coordinates"]

    def identity(self) -> "FrameChange":
        """The change that changes nothing."""
        unit = jnp.eye(self.matrix.shape[0], dtype=self.matrix.dtype)
        return FrameChange(unit, jnp.zeros_like(self.shift))

    def after(self, first: "FrameChange") -> "FrameChange":
        """This change after another one, as one."""
        return FrameChange(self.matrix @ first.matrix, first.shift @ self.matrix.T + self.shift)

    def apply_to_nodes(
        self, node: Float[Array, "nodes coordinates"]
    ) -> Float[Array, "groups nodes coordinates"]:
        """Nodes of each group in the new frame."""
        return node @ self.matrix.T + self.shift[:, None]

    def apply_to_distribution(self, distribution: ItemDistribution) -> ItemDistribution:
        """Item distributions in the new frame."""
        return ItemDistribution(
            distribution.mean @ self.matrix.T + self.shift[:, None],
            jnp.einsum("ab,gcbd,ed->gcae", self.matrix, distribution.covariance, self.matrix),
            distribution.log_weight,
        )

    def apply_to_covariance(
        self, covariance: Float[Array, "models dims dims"]
    ) -> Float[Array, "models dims dims"]:
        """Covariances of abilities in the new frame: with slopes `T a` they are `T'^-1 theta`."""
        dims = covariance.shape[-1]
        back = jnp.linalg.inv(self.matrix[:dims, :dims])
        return jnp.einsum("ka,ikl,lb->iab", back, covariance, back)

    def apply_to_items(
        self, items: ItemPosteriors, group: Int[Array, "blocks items"]
    ) -> ItemPosteriors:
        """Posteriors in the new frame."""
        size = self.matrix.shape[0]
        rows, columns = pair_index(size)
        mean = jnp.einsum("ab,ncbj->ncaj", self.matrix, items.mean)
        shift = self.shift[prior_group(group, self.shift.T)]
        mean = mean + shift.transpose(0, 2, 1)[:, None]
        # Row (a, b) of `moved` gives M_ap M_bq for each packed pair (p, q), both ways round.
        outer = jnp.einsum("ap,bq->abpq", self.matrix, self.matrix)[rows, columns]
        position = unpack_index(size)
        moved = jnp.zeros((len(rows), len(rows)), outer.dtype)
        moved = moved.at[:, position.ravel()].add(outer.reshape(len(rows), -1))
        covariance = jnp.einsum("tu,ncuj->nctj", moved, items.covariance)
        return ItemPosteriors(mean, covariance, items.share)


def standardise(
    ability: Float[Array, "models dims"],
    is_scored: Bool[Array, " models"],
    reference: Float[Array, "models dims"] | None = None,
    spread: Float[Array, "dims dims"] | None = None,
) -> tuple[Float[Array, "models dims"], Float[Array, "coordinates coordinates"]]:
    """Abilities with mean 0 and covariance I over the models with responses.

    With `spread`, the mean covariance of their posteriors, it is their second moment that is I: of
    all frames the one where the bound is highest, since neither likelihood nor items see it.

    With `theta = mean + theta' T` the slopes become `T slope` and the intercepts gain
    `mean . slope`. Of all such frames the one nearest to the reference is taken (Procrustes):
    otherwise the frame turns a little at every step (by .007 standard deviations on W1 with a
    Cholesky factor, .0007 with the symmetric root) and abilities never settle.

    Returns:
        The new abilities (0 for models without responses) and the matrix that acts on
        `(slope, intercept)`.
    """
    dims = ability.shape[1]
    weight = is_scored.astype(ability.dtype)[:, None]
    count = jnp.maximum(jnp.sum(weight), 1)
    mean = jnp.sum(weight * ability, axis=0) / count
    centred = weight * (ability - mean)
    # Once more, for the rounding of the mean: it would be blown up where the abilities are equal.
    centred = weight * (centred - jnp.sum(centred, axis=0) / count)
    covariance = centred.T @ centred / count
    if spread is not None:
        covariance = covariance + spread
    values, vectors = jnp.linalg.eigh(covariance)
    sd = _scales(values, _VANISHED_MEAN * jnp.sum(mean**2))
    whitened = centred @ (vectors / sd)
    turn = vectors.T
    if reference is not None:
        left, _, right = jnp.linalg.svd(whitened.T @ reference)
        turn = left @ right
    matrix = jnp.eye(dims + 1, dtype=ability.dtype)
    matrix = matrix.at[:dims, :dims].set(turn.T @ (sd[:, None] * vectors.T))
    return whitened @ turn, matrix.at[dims, :dims].set(mean)


def rescale(
    ability: Float[Array, "models dims"],
    is_scored: Bool[Array, " models"],
    has_general: bool,
    spread: Float[Array, "dims dims"] | None = None,
) -> tuple[Float[Array, "models dims"], Float[Array, "coordinates coordinates"]]:
    """`standardise` where items may not load on every dim: mean 0 and sd 1, but no rotation.

    Only changes that keep zeros of slopes are allowed. With a general factor (the first dim, on
    which all items load) the others are made its residuals: `theta_k - c_k theta_1` with the slopes
    on the first raised by `c_k slope_k`, which no logit sees.
    """
    dims = ability.shape[1]
    weight = is_scored.astype(ability.dtype)[:, None]
    count = jnp.maximum(jnp.sum(weight), 1)
    mean = jnp.sum(weight * ability, axis=0) / count
    centred = weight * (ability - mean)
    covariance = centred.T @ centred / count
    if spread is not None:
        covariance = covariance + spread
    mixing = jnp.eye(dims, dtype=ability.dtype)
    if has_general:
        share = covariance[0] / jnp.maximum(covariance[0, 0], jnp.finfo(ability.dtype).tiny)
        mixing = mixing.at[0].set(share.at[0].set(1))
        centred = centred - (centred[:, :1] * share).at[:, 0].set(0)
        residual = jnp.diagonal(covariance) - share * covariance[0]
        variance = residual.at[0].set(covariance[0, 0])
    else:
        variance = jnp.diagonal(covariance)
    sd = _scales(variance)
    matrix = jnp.eye(dims + 1, dtype=ability.dtype)
    matrix = matrix.at[:dims, :dims].set(sd[:, None] * mixing)
    return centred / sd, matrix.at[dims, :dims].set(mean)


def _scales(
    variance: Float[Array, " dims"], rounding: Float[Array, ""] | float = 0.0
) -> Float[Array, " dims"]:
    """Standard deviations to divide by.

    A direction that vanishes (more dims than the data support, or models that all answered alike)
    is left as it is, 1, not blown up: what is left of it may be rounding, by which models with the
    same responses would be told apart.
    """
    floor = _VANISHED_SHARE * jnp.mean(variance) + _VANISHED + rounding
    has_vanished = variance <= floor
    return jnp.sqrt(jnp.where(has_vanished, jnp.ones_like(variance), variance))


def residual_effects(
    design: Float[Array, "models coordinates"],
    effect: Float[Array, "models groups"],
    is_scored: Bool[Array, " models"],
) -> tuple[Float[Array, "models groups"], Float[Array, "groups coordinates"]]:
    """Each group's effects minus their regression on the design, and the coefficients.

    The fitted part belongs to the group's items: it moves into their slopes and intercepts.
    """
    weight = is_scored.astype(effect.dtype)[:, None]
    design = design * weight
    gram = design.T @ design
    # A coordinate left out of the design (pinned slopes) has a zero row: its coefficient is 0.
    ridge = 1e-6 * jnp.trace(gram) * jnp.eye(gram.shape[0], dtype=gram.dtype)
    coefficients = solve_positive_definite(gram + ridge, design.T @ (weight * effect))
    return weight * effect - design @ coefficients, coefficients.T

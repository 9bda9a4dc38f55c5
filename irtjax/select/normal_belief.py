"""What is believed of several abilities: a normal distribution at their most probable values."""

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from irtjax.fit.packed import products, quadratic
from irtjax.model.information import logit_information
from irtjax.model.pytree import pytree_dataclass
from irtjax.model.quadrature import normal_expectation
from irtjax.select.adaptive_items import AdaptiveItems, answer_entropy

__all__ = ["NormalBelief", "NormalItems"]

_STEPS = 8
_SHARES = (1.0, 0.5, 0.2, 0.05, 0.0)
_QUADRATURE_NODES = 5


@pytree_dataclass
class NormalBelief:
    """Mean and covariance of each model's abilities."""

    mean: Float[Array, "models dims"]
    covariance: Float[Array, "models dims dims"]


@pytree_dataclass
class NormalItems:
    """Items of two and more dims.

    A logit of mean m and variance v (of the item's parameters) is taken as `m / sqrt(1 + pi v /
    8)`: the logistic curve nearest to the mean curve (MacKay 1992).
    """

    items: AdaptiveItems

    @property
    def n_items(self) -> int:
        """Number of items, padding included."""
        return self.items.n_items

    def start(self, n_models: int) -> NormalBelief:
        """The prior, of each model."""
        dims = self.items.dims
        return NormalBelief(
            jnp.broadcast_to(self.items.prior_mean, (n_models, dims)),
            jnp.broadcast_to(self.items.prior_covariance, (n_models, dims, dims)),
        )

    def after(
        self,
        belief: NormalBelief,
        item: Int[Array, "models length"],
        response: Float[Array, "models length"],
        weight: Float[Array, "models length"],
        place: Int[Array, " models"],
    ) -> NormalBelief:
        """With the answers up to `place`: their most probable abilities, from the last ones."""
        given = jnp.where(jnp.arange(item.shape[1]) <= place[:, None], weight, 0)
        mean, covariance = jax.vmap(self._placed)(belief.mean, item, response, given)
        return NormalBelief(mean, covariance)

    def place(
        self, belief: NormalBelief
    ) -> tuple[Float[Array, "models dims"], Float[Array, "models dims"]]:
        """Mean and standard deviations."""
        return belief.mean, jnp.sqrt(jnp.diagonal(belief.covariance, axis1=1, axis2=2))

    def gain(self, belief: NormalBelief, criterion: str) -> Float[Array, "models items"]:
        """Generalised variance before over after an item's answer, minus 1: `g a' V a`.

        Args:
            belief: of each model.
            criterion: `kl`, the mutual information of answer and abilities; any other is Bayesian
                D-optimality at the mean.
        """
        slope = self.items.mean[:, :-1]
        logit = belief.mean @ slope.T + self.items.mean[:, -1]
        shrink = self._shrink(belief.mean)
        packed = jax.vmap(_packed_covariance)(belief.covariance)
        spread = jnp.maximum(packed @ products(slope).T, 0)
        if criterion != "kl":
            told = logit_information(shrink * logit, self.items.guessing, self.items.feasibility)
            return told * shrink**2 * spread
        expected, entropy = normal_expectation(
            lambda z: self._right_and_entropy(shrink * z), logit, spread, _QUADRATURE_NODES
        )
        return jnp.expm1(2 * jnp.maximum(answer_entropy(expected) - entropy, 0))

    def _shrink(self, ability: Float[Array, "models dims"]) -> Float[Array, "models items"]:
        design = jnp.concatenate([ability, jnp.ones_like(ability[:, :1])], axis=1)
        variance = quadratic(design) @ self.items.covariance.T + self.items.offset_variance
        return 1 / jnp.sqrt(1 + math.pi / 8 * jnp.maximum(variance, 0))

    def _right_and_entropy(
        self, logit: Float[Array, "models items"]
    ) -> tuple[Float[Array, "models items"], Float[Array, "models items"]]:
        span = self.items.feasibility - self.items.guessing
        right = self.items.guessing + span * jax.nn.sigmoid(logit)
        return right, answer_entropy(right)

    def _placed(
        self,
        start: Float[Array, " dims"],
        item: Int[Array, " length"],
        response: Float[Array, " length"],
        given: Float[Array, " length"],
    ) -> tuple[Float[Array, " dims"], Float[Array, "dims dims"]]:
        """One model's most probable abilities by scoring steps, and the inverse information."""
        chosen = jax.tree.map(lambda leaf: leaf[item], (self.items.mean, self.items.covariance))
        lower, upper = self.items.guessing[item], self.items.feasibility[item]
        precision = jnp.linalg.inv(self.items.prior_covariance)
        mean, covariance = chosen
        # The flattening of the curves is that at the last abilities: it changes slowly.
        design = jnp.append(start, 1.0)
        variance = covariance @ quadratic(design[None])[0] + self.items.offset_variance
        shrink = 1 / jnp.sqrt(1 + math.pi / 8 * jnp.maximum(variance, 0))
        slope, intercept = mean[:, :-1] * shrink[:, None], mean[:, -1] * shrink

        def log_posterior(ability: Float[Array, " dims"]) -> Float[Array, ""]:
            s = jax.nn.sigmoid(slope @ ability + intercept)
            not_s = jax.nn.sigmoid(-slope @ ability - intercept)
            tiny = jnp.finfo(s.dtype).tiny
            right = jnp.maximum(lower + (upper - lower) * s, tiny)
            wrong = jnp.maximum(1 - upper + (upper - lower) * not_s, tiny)
            told = response * jnp.log(right) + (1 - response) * jnp.log(wrong)
            away = ability - self.items.prior_mean
            return given @ told - away @ precision @ away / 2

        def information(ability: Float[Array, " dims"]) -> Float[Array, "dims dims"]:
            told = logit_information(slope @ ability + intercept, lower, upper)
            return precision + (slope.T * (given * told)) @ slope

        def step(_: int, ability: Float[Array, " dims"]) -> Float[Array, " dims"]:
            move = jnp.linalg.solve(information(ability), jax.grad(log_posterior)(ability))
            tries = ability + jnp.asarray(_SHARES, move.dtype)[:, None] * move
            return tries[jnp.argmax(jax.vmap(log_posterior)(tries))]

        ability = jax.lax.fori_loop(0, _STEPS, step, start)
        return ability, jnp.linalg.inv(information(ability))


def _packed_covariance(covariance: Float[Array, "dims dims"]) -> Float[Array, " pairs"]:
    """Coefficients c with `c . products(a) = a' V a`."""
    twice = covariance * (2 - jnp.eye(len(covariance), dtype=covariance.dtype))
    rows, columns = jnp.tril_indices(len(covariance))
    return twice[rows, columns]

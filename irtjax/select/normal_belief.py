"""What is believed of several abilities, or of one beside benchmark effects: mean and covariance.

They are those of `score_models` for the same answers: nodes around the posterior's mode, benchmark
effects integrated out with the distribution that the fitted models' have. Which item to ask next is
judged as if the belief were normal.
"""

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from irtjax.fit.packed import products, quadratic
from irtjax.model.information import logit_information
from irtjax.model.pytree import pytree_dataclass
from irtjax.model.quadrature import normal_expectation
from irtjax.score.cells import Answers
from irtjax.score.curves import CurveItems
from irtjax.score.running import (
    RunningPosterior,
    moments,
    prior_posterior,
    settled,
    with_answer,
)
from irtjax.select.entropy import answer_entropy

__all__ = ["NormalItems"]

_QUADRATURE_NODES = 5
# After the first few answers an ability is known well enough for fewer, the cost of a step.
_AVERAGE_NODES = 3


@pytree_dataclass
class NormalItems:
    """Items as scoring has them, and one normal each by which the next is chosen.

    `mean` and `covariance` (packed) are of slopes and intercept, abilities being standard normal,
    items last, so that what is computed of a cell stays in registers;
    `offset_variance` is added to every logit's: that of the benchmark effects of a model that
    nobody has seen. A logit of mean m and variance v is taken as `m / sqrt(1 + pi v / 8)`: the
    logistic curve nearest to the mean curve (MacKay 1992). `frame` takes `(ability, 1)` of the
    population's metric to the fit's scale.
    """

    curves: CurveItems
    effect_variance: Float[Array, " groups"] | None
    mean: Float[Array, "coordinates items"]
    covariance: Float[Array, "pairs items"]
    offset_variance: Float[Array, " items"]
    guessing: Float[Array, " items"]
    feasibility: Float[Array, " items"]
    frame: Float[Array, "dims coordinates"]

    @property
    def n_items(self) -> int:
        """Number of items, padding included."""
        return self.mean.shape[1]

    @property
    def dims(self) -> int:
        """Number of abilities."""
        return self.frame.shape[0]

    def start(self, n_models: int) -> RunningPosterior:
        """The prior, of each model."""
        n_latent = self.curves.mean.shape[-1] - 1
        return prior_posterior(n_models, n_latent, self.effect_variance, self.mean.dtype)

    def after(
        self,
        belief: RunningPosterior,
        item: Int[Array, " models"],
        response: Float[Array, " models"],
        weight: Float[Array, " models"],
    ) -> RunningPosterior:
        """With one more answer of each model; weight 0 changes nothing."""
        return with_answer(belief, self.curves.of_each(item[:, None]), response, weight)

    def settled(
        self,
        belief: RunningPosterior,
        item: Int[Array, "models length"],
        response: Float[Array, "models length"],
        weight: Float[Array, "models length"],
        is_wanted: Bool[Array, " models"],
    ) -> RunningPosterior:
        """As scoring has it where that is wanted, or the answers have moved it far."""
        answers = Answers(response, weight)
        return settled(belief, answers, self.curves, item, self.effect_variance, is_wanted)

    def place(
        self, belief: RunningPosterior
    ) -> tuple[Float[Array, "models dims"], Float[Array, "models dims"]]:
        """Mean and standard deviations."""
        mean, covariance = self._abilities(belief)
        turn = self.frame[:, :-1]
        variance = jnp.einsum("ka,mab,kb->mk", turn, covariance, turn)
        return mean @ turn.T + self.frame[:, -1], jnp.sqrt(variance)

    def gain(self, belief: RunningPosterior, criterion: str) -> Float[Array, "models items"]:
        """Generalised variance before over after an item's answer, minus 1: `g a' V a`.

        Args:
            belief: of each model.
            criterion: `kl`, the mutual information of answer and abilities; any other is Bayesian
                D-optimality at the mean. With one ability `posterior` averages g over where it
                may be.
        """
        ability, covariance = self._abilities(belief)
        design = jnp.concatenate([ability, jnp.ones_like(ability[:, :1])], axis=1)
        logit = _sums(design, self.mean)
        shrink = self._shrink(design)
        packed = jax.vmap(_packed_covariance)(covariance)
        spread = jnp.maximum(_sums(packed, products(self.mean[:-1].T).T), 0)
        if criterion != "kl":
            is_averaged = criterion == "posterior" and self.dims == 1
            told = normal_expectation(
                lambda z: logit_information(shrink * z, self.guessing, self.feasibility),
                logit,
                spread,
                _AVERAGE_NODES if is_averaged else 1,
            )
            return told * shrink**2 * spread
        expected, entropy = normal_expectation(
            lambda z: self._right_and_entropy(shrink * z), logit, spread, _QUADRATURE_NODES
        )
        return jnp.expm1(2 * jnp.maximum(answer_entropy(expected) - entropy, 0))

    def _abilities(
        self, belief: RunningPosterior
    ) -> tuple[Float[Array, "models dims"], Float[Array, "models dims dims"]]:
        """Mean and covariance in the population's own metric."""
        mean, covariance = moments(belief)
        return mean[:, : self.dims], covariance[:, : self.dims, : self.dims]

    def _shrink(self, design: Float[Array, "models coordinates"]) -> Float[Array, "models items"]:
        variance = _sums(quadratic(design), self.covariance) + self.offset_variance
        return jax.lax.rsqrt(1 + math.pi / 8 * jnp.maximum(variance, 0))

    def _right_and_entropy(
        self, logit: Float[Array, "models items"]
    ) -> tuple[Float[Array, "models items"], Float[Array, "models items"]]:
        span = self.feasibility - self.guessing
        right = self.guessing + span * jax.nn.sigmoid(logit)
        return right, answer_entropy(right)


def _sums(
    weight: Float[Array, "models terms"], table: Float[Array, "terms items"]
) -> Float[Array, "models items"]:
    """A matrix product written out, which the compiler fuses into what follows.

    Of 100 models and 34,000 items a product is 14 MB, and memory is what a step waits for.
    """
    terms = [weight[:, k, None] * row for k, row in enumerate(table)]
    return sum(terms[1:], terms[0])


def _packed_covariance(covariance: Float[Array, "dims dims"]) -> Float[Array, " pairs"]:
    """Coefficients c with `c . products(a) = a' V a`."""
    twice = covariance * (2 - jnp.eye(len(covariance), dtype=covariance.dtype))
    rows, columns = jnp.tril_indices(len(covariance))
    return twice[rows, columns]

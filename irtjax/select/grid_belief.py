"""What is believed of one ability: probabilities on a grid, exact to its spacing."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from irtjax.model.pytree import pytree_dataclass
from irtjax.score.curves import CurveItems, curve_slopes
from irtjax.select.entropy import answer_entropy

__all__ = ["GridBelief", "GridItems", "grid_items"]

# The grid reaches this many standard deviations of the prior to both sides.
_REACH = 5.0
_N_NODES = 81


@pytree_dataclass
class GridBelief:
    """Log posterior of each model's ability at the nodes, up to a constant."""

    log_posterior: Float[Array, "models nodes"]


@pytree_dataclass
class GridItems:
    """Every item's mean curve at the nodes: `P` averaged over what its parameters may be.

    An item whose slope is uncertain has a flatter mean curve, and so less information: what the
    highest estimates of slopes promise, noise for the most part, is not believed. Nodes and
    information are in standard deviations of the population, whose `centre` and `scale` are on the
    fit's scale.
    """

    node: Float[Array, " nodes"]
    log_prior: Float[Array, " nodes"]
    log_right: Float[Array, "items nodes"]
    log_wrong: Float[Array, "items nodes"]
    right: Float[Array, "nodes items"]
    entropy: Float[Array, "nodes items"]
    information: Float[Array, "nodes items"]
    centre: Float[Array, ""]
    scale: Float[Array, ""]

    @property
    def n_items(self) -> int:
        """Number of items, padding included."""
        return self.right.shape[1]

    def start(self, n_models: int) -> GridBelief:
        """The prior, of each model."""
        return GridBelief(jnp.broadcast_to(self.log_prior, (n_models, len(self.log_prior))))

    def after(
        self,
        belief: GridBelief,
        item: Int[Array, " models"],
        response: Float[Array, " models"],
        weight: Float[Array, " models"],
    ) -> GridBelief:
        """With one more answer of each model; weight 0 changes nothing."""
        answer = response[:, None]
        told = answer * self.log_right[item] + (1 - answer) * self.log_wrong[item]
        return GridBelief(belief.log_posterior + weight[:, None] * told)

    def settled(
        self,
        belief: GridBelief,
        item: Int[Array, "models length"],
        response: Float[Array, "models length"],
        weight: Float[Array, "models length"],
        is_wanted: Bool[Array, " models"],
    ) -> GridBelief:
        """The same: nothing was left out."""
        del item, response, weight, is_wanted
        return belief

    def place(
        self, belief: GridBelief
    ) -> tuple[Float[Array, "models 1"], Float[Array, "models 1"]]:
        """Posterior mean and standard deviation."""
        mean, sd = self._standard(belief)
        return self.centre + self.scale * mean, self.scale * sd

    def gain(self, belief: GridBelief, criterion: str) -> Float[Array, "models items"]:
        """How far each item is expected to narrow the belief: variance before over after, minus 1.

        Args:
            belief: of each model.
            criterion: `information` at the posterior mean, `posterior` (its mean over the
                posterior), or `kl`, the mutual information of answer and ability: the mean
                Kullback-Leibler divergence of the answer at an ability from that expected.
        """
        weight = jax.nn.softmax(belief.log_posterior, axis=1)
        mean, sd = self._standard(belief)
        if criterion == "kl":
            expected = weight @ self.right
            told = answer_entropy(expected) - weight @ self.entropy
            return jnp.expm1(2 * jnp.maximum(told, 0))
        if criterion == "information":
            weight = self._between_nodes(mean[:, 0])
        return sd**2 * (weight @ self.information)

    def _standard(
        self, belief: GridBelief
    ) -> tuple[Float[Array, "models 1"], Float[Array, "models 1"]]:
        weight = jax.nn.softmax(belief.log_posterior, axis=1)
        mean = weight @ self.node
        away = self.node - mean[:, None]
        return mean[:, None], jnp.sqrt(jnp.sum(weight * away**2, axis=1))[:, None]

    def _between_nodes(self, ability: Float[Array, " models"]) -> Float[Array, "models nodes"]:
        """Weights of the two nodes around each ability."""
        step = self.node[1] - self.node[0]
        return jnp.maximum(0, 1 - jnp.abs(self.node - ability[:, None]) / step)


@jax.jit
def grid_items(items: CurveItems, centre: Float[Array, ""], scale: Float[Array, ""]) -> GridItems:
    """Tables of the mean curves of items of one dim.

    Args:
        items: in one row, as all models meet them.
        centre: mean of the abilities.
        scale: their standard deviation.
    """
    standard = np.linspace(-_REACH, _REACH, _N_NODES)
    node = jnp.asarray(standard, items.mean.dtype)
    no_shift = jnp.zeros((_N_NODES, items.group.shape[1]), node.dtype)
    slopes = curve_slopes(items, node[:, None], no_shift)
    tiny = jnp.finfo(node.dtype).tiny
    right, wrong = jnp.maximum(slopes.p, tiny), jnp.maximum(slopes.not_p, tiny)
    rise = slopes.by_latent[0]
    return GridItems(
        node,
        jnp.asarray(-(standard**2) / 2, node.dtype),
        jnp.log(right).T,
        jnp.log(wrong).T,
        right,
        answer_entropy(right),
        (rise / right) * (rise / wrong),
        centre,
        scale,
    )

"""Items of `marginal-models` that stay as another fit has them, while all else is estimated."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from irtjax.fit.item_step import ItemModel, ItemParameters
from irtjax.model.pytree import pytree_dataclass

__all__ = ["HeldParameters"]


@pytree_dataclass
class HeldParameters:
    """Parameters and their covariance (of the coordinates) where `is_held`; others are arbitrary.

    Asymptotes are taken for known: their rows of the covariance are 0.
    """

    items: ItemParameters
    covariance: Float[Array, "items coordinates coordinates"]
    is_held: Bool[Array, " items"]

    def within(self, items: ItemParameters) -> ItemParameters:
        """Items with those that are held in their place."""

        def one(own: Array, new: Array) -> Array:
            return jnp.where(self.is_held[:, None] if own.ndim == 2 else self.is_held, own, new)

        return jax.tree.map(one, self.items, items)

    def within_covariance(
        self, covariance: Float[Array, "items coordinates coordinates"]
    ) -> Float[Array, "items coordinates coordinates"]:
        """Covariances of the items with those of the items held in their place."""
        return jnp.where(self.is_held[:, None, None], self.covariance, covariance)

    def may_move(self, model: ItemModel) -> Float[Array, "items coordinates"]:
        """1 where a coordinate is estimated: none of an item held, and no slope that all share."""
        free = 1 - self.is_held[:, None].astype(self.items.slope.dtype)
        free = jnp.broadcast_to(free, (len(free), model.n_coordinates))
        if model.spec.has_common_slope:
            free = free.at[:, : model.spec.dims].set(0)
        return free

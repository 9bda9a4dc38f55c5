"""Item response curves as arrays: what selection, scoring and adaptive tests know of the items."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from irtjax.model.pytree import pytree_dataclass
from irtjax.model.response import Asymptotes

__all__ = ["ItemCurves", "item_curves", "padded_curves"]


@pytree_dataclass
class ItemCurves:
    """Curves `P = guessing + (feasibility - guessing) sigmoid(slope . theta + intercept)`.

    Every family in any number of dims: smaller ones have guessing 0 and feasibility 1.
    """

    slope: Float[Array, "items dims"]
    intercept: Float[Array, " items"]
    guessing: Float[Array, " items"]
    feasibility: Float[Array, " items"]

    @property
    def n_items(self) -> int:
        """Number of items."""
        return self.slope.shape[0]

    @property
    def dims(self) -> int:
        """Number of abilities."""
        return self.slope.shape[1]

    @property
    def asymptotes(self) -> Asymptotes:
        """Guessing and feasibility on the scale of the likelihood."""
        return Asymptotes.from_natural(self.guessing, self.feasibility)

    def logit(self, ability: Float[Array, "points dims"]) -> Float[Array, "points items"]:
        """`slope . theta + intercept` of every item at every ability.

        Written as a sum of broadcast products, which the compiler fuses into what follows: a
        matrix product would write all logits to memory first.
        """
        terms = [ability[:, k, None] * self.slope[:, k] for k in range(self.dims)]
        return sum(terms, self.intercept)

    def taken(self, index: Int[Array, " chosen"]) -> "ItemCurves":
        """Some of the items, in the order of the index."""
        return jax.tree.map(lambda leaf: leaf[index], self)


def item_curves(
    slope: Float[Array, "items dims"],
    intercept: Float[Array, " items"],
    guessing: Float[Array, " items"] | float = 0.0,
    feasibility: Float[Array, " items"] | float = 1.0,
) -> ItemCurves:
    """Curves from parameters, asymptotes one number or one an item.

    >>> item_curves(jnp.ones((3, 2)), jnp.zeros(3), guessing=0.25).dims
    2
    """
    slope = jnp.asarray(slope, float)
    parts = [jnp.asarray(part, slope.dtype) for part in (intercept, guessing, feasibility)]
    return ItemCurves(slope, *(jnp.broadcast_to(part, slope.shape[:1]) for part in parts))


def padded_curves(curves: ItemCurves, n_items: int) -> ItemCurves:
    """Curves with flat ones at the end, which tell nothing, so that shapes are few.

    On the host: `jnp.pad` would compile a program for each number of items.
    """
    more = n_items - curves.n_items

    def padded(leaf: Array, value: float = 0.0) -> Array:
        sides = [(0, more)] + [(0, 0)] * (leaf.ndim - 1)
        return jnp.asarray(np.pad(np.asarray(leaf), sides, constant_values=value))

    return ItemCurves(
        padded(curves.slope),
        padded(curves.intercept),
        padded(curves.guessing),
        padded(curves.feasibility, 1.0),
    )

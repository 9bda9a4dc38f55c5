"""Towers of a pseudo-Siamese network: from an id, and features, to the parameters of one side.

PSN-IRT (Zhou et al. 2026) puts a one-hot id through a linear layer: a row lookup. Both towers are
alike in shape and share no weights; what they put out goes through the one response function.
"""

import dataclasses
import functools
import itertools

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float

from irtjax.fit.item_step import ItemParameters
from irtjax.model.response import Asymptotes
from irtjax.model.spec import ModelSpec
from irtjax.nets.settings import Start

__all__ = ["Tower", "TowerShape", "item_parameters", "item_width", "run_tower", "tower"]

# Scales of the asymptotes start where guessing is .1 and feasibility .95: half of each leaves
# little slope to learn from.
_FIRST = {"apart": (-2.2, 2.8), "near_zero": (0.0, 0.0)}


@dataclasses.dataclass(frozen=True)
class TowerShape:
    """Numbers that make a tower (static): ids, features, and what it puts out.

    `has_rows` says whether ids are looked up; without, features are all that it knows.
    """

    n_ids: int
    n_features: int
    n_out: int
    embedding: int
    hidden: int
    layers: int
    has_rows: bool = True


class Tower(nnx.Module):
    """Embedding of the id and linear map of the features, then hidden layers with ReLU."""

    def __init__(self, shape: TowerShape, rngs: nnx.Rngs) -> None:
        linear = functools.partial(nnx.Linear, param_dtype=jnp.float32, rngs=rngs)
        self.has_rows = shape.has_rows
        if shape.n_features:
            self.features = linear(shape.n_features, shape.embedding)
        else:
            self.bias = nnx.Param(jnp.zeros(shape.embedding, jnp.float32))
        widths = [shape.embedding] + [shape.hidden] * shape.layers
        self.hidden = nnx.List([linear(a, b) for a, b in itertools.pairwise(widths)])
        self.out = linear(widths[-1], shape.n_out)

    def __call__(
        self, row: Float[Array, "batch embedding"], features: Float[Array, "batch features"] | None
    ) -> Float[Array, "batch out"]:
        """What the tower puts out for looked-up rows and their features."""
        known = self.bias.get_value() if features is None else self.features(features)
        state = jax.nn.relu(row + known if self.has_rows else known)
        for layer in self.hidden:
            state = jax.nn.relu(layer(state))
        return self.out(state)


def tower(shape: TowerShape, key: jax.Array, scale: float) -> tuple[dict, Array]:
    """A new tower: its weights (dictionaries of arrays), and its table of rows, of this scale."""
    table_key, key = jax.random.split(key)
    weights = nnx.to_pure_dict(nnx.state(Tower(shape, nnx.Rngs(params=key))))
    size = (shape.n_ids, shape.embedding)
    table = scale * jax.random.normal(table_key, size, jnp.float32)
    # Drawn in float32, so that it is the same start in float64.
    dtype = jnp.zeros(()).dtype
    return jax.tree.map(lambda leaf: leaf.astype(dtype), (weights, table))


def run_tower(
    shape: TowerShape,
    weights: dict,
    row: Float[Array, "batch embedding"],
    features: Float[Array, "batch features"] | None,
) -> Float[Array, "batch out"]:
    """What a tower of these weights puts out for looked-up rows and their features."""
    graph, state = nnx.split(nnx.eval_shape(lambda: Tower(shape, nnx.Rngs(params=0))))
    nnx.replace_by_pure_dict(state, weights)
    return nnx.merge(graph, state)(row, features)


def item_width(spec: ModelSpec) -> int:
    """How many numbers an item's tower puts out."""
    slopes = 0 if spec.has_common_slope else spec.dims
    return slopes + 1 + spec.has_guessing + spec.has_feasibility


def item_parameters(
    spec: ModelSpec, out: Float[Array, "items out"], start: Start = "apart"
) -> ItemParameters:
    """Parameters from what the items' tower puts out; feasibility is above guessing."""
    columns = iter(out.T)
    if spec.has_common_slope:
        slope = jnp.ones((len(out), spec.dims), out.dtype)
    else:
        # Around 1: in 1-D slopes that start at 0 would leave the abilities without a sign.
        first = 1.0 if spec.dims == 1 else 0.0
        slope = jnp.stack([first + next(columns) for _ in range(spec.dims)], axis=1)
    intercept = next(columns)
    if not spec.has_asymptotes:
        return ItemParameters(slope, intercept, None)
    infinite = jnp.full_like(intercept, jnp.inf)
    first_lower, first_upper = _FIRST[start]
    lower = first_lower + next(columns) if spec.has_guessing else -infinite
    upper = first_upper + next(columns) if spec.has_feasibility else infinite
    return ItemParameters(slope, intercept, Asymptotes(lower, upper))

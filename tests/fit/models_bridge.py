"""From the arrays of `models_reference` to the blocks of `marginal-models` and back."""

import jax
import jax.numpy as jnp
import numpy as np

from irtjax.data.blocks import make_blocks
from irtjax.data.responses import ResponseMatrix
from irtjax.fit.item_step import ItemModel, ItemParameters
from irtjax.fit.populations import Grid, Populations
from irtjax.model.priors import Priors
from irtjax.model.response import Asymptotes
from irtjax.model.spec import ModelSpec
from irtjax.parallel import BLOCKED, items_mesh, place

MODELS_PER_BLOCK = 16


def item_parameters(family, items, dims):
    """Coordinates x items as `ItemParameters`."""
    rest = [jnp.asarray(row) for row in items[dims + 1 :]]
    asymptotes = None
    if family in ("3pl", "4pl"):
        upper = rest[1] if family == "4pl" else jnp.full_like(rest[0], np.inf)
        asymptotes = Asymptotes(rest[0], upper)
    return ItemParameters(jnp.asarray(items[:dims].T), jnp.asarray(items[dims]), asymptotes)


def coordinates(family, items):
    """`ItemParameters` as coordinates x items, float64."""
    rows = [*np.asarray(items.slope).T, np.asarray(items.intercept)]
    if family in ("3pl", "4pl"):
        rows.append(np.asarray(items.asymptotes.lower))
    if family == "4pl":
        rows.append(np.asarray(items.asymptotes.upper))
    return np.array(rows, np.float64)


class PlacedModels:
    """A problem of `models_reference` on the devices; blocks of models."""

    def __init__(self, problem, n_nodes, priors=None, models_per_block=MODELS_PER_BLOCK):
        self.problem, self.mesh = problem, items_mesh(None)
        self.spec = ModelSpec(problem.family, problem.dims)
        self.model = ItemModel(self.spec, priors or Priors())
        self.grid = Grid(problem.dims, n_nodes)
        is_weighted = bool(np.any(problem.weight != 1))
        weight = problem.weight.astype(np.float32) if is_weighted else None
        data = ResponseMatrix.from_dense(problem.response.astype(np.float32), weight=weight)
        blocks, self.layout = make_blocks(
            data.transposed(),
            problem.population,
            n_shards=self.mesh.size,
            items_per_block=models_per_block,
        )
        self.blocks = place(blocks, self.mesh, BLOCKED)
        self.items = item_parameters(problem.family, problem.items, problem.dims)
        dtype = self.items.slope.dtype
        self.count = place(
            jnp.asarray(self.layout.to_blocks(problem.count), dtype), self.mesh, BLOCKED
        )
        n_populations = len(problem.mean)
        log_weight = jnp.asarray(self.grid.log_weight, dtype)
        self.populations = Populations(
            jnp.asarray(problem.mean),
            jnp.asarray(problem.factor),
            jnp.broadcast_to(log_weight, (n_populations, len(log_weight))),
        )

    def run(self, function, *arguments):
        """`function(blocks, count, *arguments)`, compiled, on the mesh."""
        with jax.set_mesh(self.mesh):
            return jax.jit(function)(self.blocks, self.count, *arguments)

    def models_first(self, blocked):
        """Leaves with blocks first, as arrays in the order of the problem's models."""
        return jax.tree.map(lambda leaf: self.layout.from_blocks(np.asarray(leaf)), blocked)

"""From the oracle's arrays to the estimator's blocks and back."""

import jax
import jax.numpy as jnp
import numpy as np

from irtjax.data.blocks import make_blocks
from irtjax.data.responses import ResponseMatrix
from irtjax.fit.hyperparameters import ItemDistribution
from irtjax.fit.item_pass import ItemPosteriors, pass_context, renew_items
from irtjax.model.response import Asymptotes
from irtjax.parallel import BLOCKED, items_mesh, place


def packed(full):
    """Lower triangles of the last two axes."""
    rows, columns = np.tril_indices(full.shape[-1])
    return full[..., rows, columns]


def unpacked(triangles):
    """Symmetric matrices from their lower triangles (the last axis)."""
    triangles = np.asarray(triangles)
    size = int((np.sqrt(8 * triangles.shape[-1] + 1) - 1) / 2)
    rows, columns = np.tril_indices(size)
    full = np.empty((*triangles.shape[:-1], size, size), triangles.dtype)
    full[..., rows, columns] = full[..., columns, rows] = triangles
    return full


def matrix(problem):
    """The problem's responses as a `ResponseMatrix`."""
    is_weighted = bool(np.any(problem.weight != 1))
    weight = problem.weight.astype(np.float32) if is_weighted else None
    return ResponseMatrix.from_dense(problem.response.astype(np.float32), weight=weight)


class Placed:
    """A problem on the devices: blocks, layout, mesh, posteriors, distribution, context.

    Below `sparse_below` observed blocks hold the observed cells only.
    """

    def __init__(self, problem, items_per_block, devices=None, *, sparse_below=0.0):
        self.problem = problem
        self.mesh = items_mesh(devices)
        blocks, self.layout = make_blocks(
            matrix(problem),
            problem.group,
            items_per_block=items_per_block,
            n_shards=self.mesh.size,
            sparse_below=sparse_below,
        )
        self.blocks = place(blocks, self.mesh, BLOCKED)
        self.posteriors = place(
            ItemPosteriors(
                self._to_blocks(problem.mean),
                self._to_blocks(packed(problem.covariance)),
                self._to_blocks(problem.share),
            ),
            self.mesh,
            BLOCKED,
        )
        self.distribution = ItemDistribution(
            *(jnp.asarray(v) for v in (problem.mu, problem.sigma, problem.log_weight))
        )
        self.ability = jnp.asarray(problem.ability)
        self.effect = None if problem.effect is None else jnp.asarray(problem.effect)
        self.asymptotes = None
        if np.any(problem.guessing > 0) or np.any(problem.feasibility < 1):
            self.asymptotes = Asymptotes.from_natural(
                jnp.asarray(problem.guessing), jnp.asarray(problem.feasibility)
            )

    @property
    def context(self):
        """The parameters held fixed in a pass."""
        return pass_context(
            self.ability,
            self.effect,
            self.distribution,
            self.asymptotes,
            self.problem.is_free,
            self.problem.n_nodes,
            *(
                None if value is None else jnp.asarray(value)
                for value in (self.problem.ability_covariance, self.problem.effect_spread)
            ),
        )

    def run(self, function, *arguments):
        """`function(blocks, *arguments)`, compiled, on the mesh."""
        with jax.set_mesh(self.mesh):
            return jax.jit(function)(self.blocks, *arguments)

    def renew(self):
        """One pass: `PassResult` and the renewed posteriors."""
        return self.run(
            lambda blocks, items, context: renew_items(blocks, items, context),
            self.posteriors,
            self.context,
        )

    def items_first(self, posteriors):
        """Posterior means, full covariances and shares in the order of the matrix."""
        first = [self._from_blocks(leaf) for leaf in (posteriors.mean, posteriors.covariance)]
        return first[0], unpacked(first[1]), self._from_blocks(posteriors.share)

    def _to_blocks(self, items_first):
        # Padding gets the numbers of the last item, as a valid posterior.
        last = len(items_first) - 1
        blocked = items_first[self.layout.to_blocks(np.arange(last + 1), last)]
        return jnp.asarray(np.moveaxis(blocked, 1, -1))

    def _from_blocks(self, blocked):
        return self.layout.from_blocks(np.moveaxis(np.asarray(blocked), -1, 1))

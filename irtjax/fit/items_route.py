"""`marginal-items` around the loop: blocks of items, grouped by benchmark."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from irtjax.data.blocks import Blocks, make_blocks
from irtjax.data.responses import ResponseMatrix
from irtjax.fit.anchored_start import anchored_start
from irtjax.fit.anchors import Anchors
from irtjax.fit.assemble import fitted_parameters, with_own_correlations, with_zeros
from irtjax.fit.checkpoints import fingerprint
from irtjax.fit.grid_items import GridItems
from irtjax.fit.grid_pass import items_per_block
from irtjax.fit.item_grid import ItemGrid, default_slopes
from irtjax.fit.items_estimates import Estimates
from irtjax.fit.items_state import HeldItems
from irtjax.fit.marginal_items import MarginalItems
from irtjax.fit.result import FittedParameters
from irtjax.fit.settings import FitSettings
from irtjax.model.priors import Priors
from irtjax.model.spec import ModelSpec
from irtjax.parallel import BLOCKED, place

__all__ = ["FEWEST_ITEMS", "ItemsRoute", "cluster_column", "sparse_below"]

# With fewer items their distribution is hardly estimated, and errors rest on it: with 20 models
# 95% intervals of slopes cover .37 with 2 items and .60 with 10, those of marginal-models .93.
FEWEST_ITEMS = 10

# Posteriors of items answered by few models are wide, and the expectations over them need more
# nodes: at 12 models (W1, one dim) 5 nodes move an ability by .012, 7 by .005, 9 by .003; at 100
# models (W2) 5 nodes move none by more than 6e-6.
_NODES = ((50, 9), (10**9, 5))
# Mean share of an item's posterior at its likeliest intercept from which on a grid is too coarse:
# .37 to .57 on W1 (12 models), where it predicts better than the normal, and .80 on W2 (100
# models), where it predicts worse.
_NARROW = 0.7


# Up to so many cells the steps of a fit take less time than their program to compile: 60 x 400 at
# one to five dims compiles in 19 instead of 40 CPU seconds, and its steps stay below a millisecond.
_FEW_CELLS = 50_000

# Below these shares of observed cells, at 1, 2, .. dims, blocks hold the observed cells only. CPU
# seconds a step over those of dense blocks (medians of interleaved runs, 200 x 20,000 and 1,000 x
# 10,000; 2,000 x 2,000 lies between), five nodes, at 5, 10, 20, 35, 50 and 70% observed:
#   1 dim    .17 .11   .25 .18   .39 .33   .61 .67    .81 .73    1.18 1.03
#   2 dims   .27 .15   .37 .28   .60 .50   .91 .86   1.25 1.21   1.80 1.66
#   3 dims   .39 .23   .55 .43   .88 .88  1.39 1.28  1.89 1.97   2.76 2.75
#   5 dims   .76 .40  1.01 .73  1.60 1.30
# with effects (8 groups)
#   1 dim    .20 .14   .29 .24   .47 .46   .71 .74    .99 .99    1.52 1.41
# A dense block has matrix products where a sparse one gathers and scatters every statistic. Where
# both take as long, dense ones are smaller (1 byte a cell; sparse ones 5 an observed cell).
_SPARSE_BELOW = (0.4, 0.3, 0.2, 0.12, 0.08)


class ItemsRoute:
    """Items are integrated out."""

    integrated = "items"

    def __init__(
        self, data: ResponseMatrix, spec: ModelSpec, priors: Priors, settings: FitSettings
    ) -> None:
        self.data, self.spec, self.priors = data, spec, priors
        clusters = settings.group or cluster_column(data)
        self.codes = None if clusters is None else data.groups(clusters)[0]
        self.loadings, self.patterns = settings.loadings, None
        if settings.loadings is not None:
            self.codes, self.patterns = settings.loadings.patterns()
        n_nodes = next(nodes for most, nodes in _NODES if data.n_models < most)
        has_effects = settings.group is not None
        self.estimator: MarginalItems | GridItems
        self.grid: ItemGrid | None = None
        self.anchors = settings.anchors
        if settings.item_distribution == "empirical":
            n_slopes = settings.nodes or default_slopes(spec.dims)
            self.estimator = GridItems(n_slopes, has_effects, n_nodes)
            self.grid = self.estimator.grid(spec)
        else:
            self.estimator = MarginalItems(
                has_effects=has_effects,
                has_loadings=settings.loadings is not None,
                has_general=settings.loadings is not None and settings.loadings.has_general,
                n_components=settings.components if settings.item_distribution == "mixture" else 1,
                n_nodes=settings.nodes or n_nodes,
                compiles_soon=data.n_models * data.n_items <= _FEW_CELLS,
            )

    def lay_out(self, mesh: Mesh) -> Blocks:
        """Blocks of items on the devices."""
        size = None
        if self.grid is not None:
            size = items_per_block(self.grid.n_nodes, self.data.n_items, mesh.size)
        blocks, self.layout = make_blocks(
            self.data,
            self.codes,
            n_shards=mesh.size,
            items_per_block=size,
            sparse_below=0.0 if self.grid is not None else sparse_below(self.spec.dims),
        )
        return place(blocks, mesh, BLOCKED)

    def held_items(self, anchors: Anchors, blocks: Blocks) -> HeldItems:
        """Items of another fit, blocked and spread over the devices as the data are."""
        assert isinstance(self.estimator, MarginalItems)
        group = np.zeros(self.data.n_items, np.int32)
        if self.codes is not None and self.estimator.has_distributions:
            group = self.codes
        n_components = self.estimator.n_components
        held = anchors.held_items(self.layout, group, self.spec, n_components)
        items, scale = jax.device_put((held.items, held.scale), blocks.is_item.sharding)
        return dataclasses.replace(held, items=items, scale=scale)

    def init(self, blocks: Blocks, key: jax.Array) -> Any:
        """The first state."""
        if self.anchors is not None:
            held = self.held_items(self.anchors, blocks)
            return anchored_start(self.estimator, blocks, self.spec, self.priors, held)
        if isinstance(self.estimator, GridItems) or self.patterns is None:
            return self.estimator.init(blocks, self.spec, self.priors, key)
        is_loading = jnp.asarray(self.patterns, jnp.zeros(()).dtype)
        return self.estimator.init(blocks, self.spec, self.priors, key, is_loading)

    def collect(self, blocks: Blocks, estimates: Estimates) -> FittedParameters:
        """Host arrays in the order of the data."""
        fitted = fitted_parameters(estimates, self.layout, self.codes)
        if self.anchors is not None:
            return self.anchors.within(fitted)
        if self.loadings is None:
            return fitted
        return with_own_correlations(with_zeros(fitted, self.loadings.mask))

    def fingerprint(self, mark: dict[str, Any]) -> dict[str, Any]:
        """What must agree for a checkpoint to be continued."""
        return fingerprint(self.data, mark, self.codes)

    def notes(self, estimates: Estimates) -> dict[str, Any]:
        """Names of dims; of a grid its size and how narrow posteriors are on it; warnings."""
        notes: dict[str, Any] = {"warnings": [*self._few_items(), *self._coarse_grid(estimates)]}
        if self.loadings is not None:
            notes["dim_names"] = list(self.loadings.names)
        if self.grid is not None:
            notes["grid_nodes"] = self.grid.n_nodes
            notes["grid_narrowness"] = self._narrowness(estimates)
        return notes

    def _few_items(self) -> list[str]:
        n_items = int(np.count_nonzero(self.data.totals("items")[0]))
        if n_items >= FEWEST_ITEMS or self.anchors is not None:
            return []
        return [
            f"errors of marginal-items rest on the distribution of the items, here estimated from "
            f"{n_items}: they are too small; use estimator marginal-models"
        ]

    def _narrowness(self, estimates: Estimates) -> float:
        """Mean share of an item's posterior at its likeliest intercept."""
        largest = self.layout.from_blocks(np.asarray(estimates.items.share).max(axis=1))
        return float(np.mean(largest))

    def _coarse_grid(self, estimates: Estimates) -> list[str]:
        narrowness = 0.0 if self.grid is None else self._narrowness(estimates)
        if self.grid is None or narrowness <= _NARROW:
            return []
        return [
            f"the grid of the item distribution is too coarse: {narrowness:.0%} of an item's "
            f"posterior is at one of its {self.grid.n_intercepts} intercepts, so much do "
            f"{self.data.n_models:,} models say of an item; use item distribution normal, or more "
            "nodes"
        ]


def sparse_below(dims: int) -> float:
    """Share of observed cells below which sparse blocks are faster."""
    return _SPARSE_BELOW[min(dims, len(_SPARSE_BELOW)) - 1]


def cluster_column(data: ResponseMatrix) -> str | None:
    """Without `group`, items are clustered by their benchmark if every item has one."""
    column = data.item_metadata.get("benchmark")
    return None if column is None or column.isna().any() else "benchmark"

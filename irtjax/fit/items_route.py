"""`marginal-items` around the loop: blocks of items, grouped by benchmark."""

from typing import Any

import jax
from jax.sharding import Mesh

from irtjax.data.blocks import Blocks, make_blocks
from irtjax.data.responses import ResponseMatrix
from irtjax.fit.assemble import fitted_parameters
from irtjax.fit.checkpoints import fingerprint
from irtjax.fit.marginal_items import Estimates, MarginalItems
from irtjax.fit.result import FittedParameters
from irtjax.fit.settings import FitSettings
from irtjax.model.priors import Priors
from irtjax.model.spec import ModelSpec
from irtjax.parallel import BLOCKED, place

__all__ = ["ItemsRoute", "cluster_column"]

# Posteriors of items answered by few models are wide, and the expectations over them need more
# nodes: at 12 models (W1, one dim) 5 nodes move an ability by .012, 7 by .005, 9 by .003; at 100
# models (W2) 5 nodes move none by more than 6e-6.
_NODES = ((50, 9), (10**9, 5))


class ItemsRoute:
    """Items are integrated out."""

    integrated = "items"

    def __init__(
        self, data: ResponseMatrix, spec: ModelSpec, priors: Priors, settings: FitSettings
    ) -> None:
        self.data, self.spec, self.priors = data, spec, priors
        clusters = settings.group or cluster_column(data)
        self.codes = None if clusters is None else data.groups(clusters)[0]
        n_nodes = next(nodes for most, nodes in _NODES if data.n_models < most)
        self.estimator = MarginalItems(
            has_effects=settings.group is not None,
            n_components=settings.components if settings.item_distribution == "mixture" else 1,
            n_nodes=settings.nodes or n_nodes,
        )

    def lay_out(self, mesh: Mesh) -> Blocks:
        """Blocks of items on the devices."""
        blocks, self.layout = make_blocks(
            self.data, self.codes, n_shards=mesh.size, may_be_sparse=True
        )
        return place(blocks, mesh, BLOCKED)

    def init(self, blocks: Blocks, key: jax.Array) -> Any:
        """The first state."""
        return self.estimator.init(blocks, self.spec, self.priors, key)

    def collect(self, blocks: Blocks, estimates: Estimates) -> FittedParameters:
        """Host arrays in the order of the data."""
        return fitted_parameters(estimates, self.layout, self.codes)

    def fingerprint(self, mark: dict[str, Any]) -> dict[str, Any]:
        """What must agree for a checkpoint to be continued."""
        return fingerprint(self.data, mark, self.codes)

    def notes(self, estimates: Estimates) -> dict[str, Any]:
        """Nothing more."""
        return {}


def cluster_column(data: ResponseMatrix) -> str | None:
    """Without `group`, items are clustered by their benchmark if every item has one."""
    column = data.item_metadata.get("benchmark")
    return None if column is None or column.isna().any() else "benchmark"

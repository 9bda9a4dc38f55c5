"""`joint-map` around the loop: blocks of items, as for `marginal-items`."""

from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh

from irtjax.data.blocks import BlockLayout, Blocks, make_blocks
from irtjax.data.responses import ResponseMatrix
from irtjax.errors import InputError
from irtjax.fit.assemble import Abilities, estimated_parameters
from irtjax.fit.checkpoints import fingerprint
from irtjax.fit.joint_map import JointEstimates, JointMap, joint_priors
from irtjax.fit.result import FittedParameters
from irtjax.fit.settings import FitSettings
from irtjax.model.priors import LogNormal, Priors
from irtjax.model.spec import ModelSpec
from irtjax.parallel import BLOCKED, place

__all__ = ["JointRoute", "joint_parameters"]


class JointRoute:
    """Nothing is integrated out."""

    integrated = "none"

    def __init__(
        self, data: ResponseMatrix, spec: ModelSpec, priors: Priors, settings: FitSettings
    ) -> None:
        if spec.dims > 1 and isinstance(priors.slope, LogNormal):
            raise InputError(
                f"prior slope={priors.slope} keeps the signs of slopes, but joint-map turns "
                f"{spec.dims} dims; use a normal one"
            )
        self.data, self.spec, self.priors = data, spec, joint_priors(priors, spec)
        self.estimator = JointMap()

    def lay_out(self, mesh: Mesh) -> Blocks:
        """Blocks of items on the devices."""
        blocks, self.layout = make_blocks(self.data, n_shards=mesh.size)
        return place(blocks, mesh, BLOCKED)

    def init(self, blocks: Blocks, key: jax.Array) -> Any:
        """The first state."""
        return self.estimator.init(blocks, self.spec, self.priors, key)

    def collect(self, blocks: Blocks, estimates: JointEstimates) -> FittedParameters:
        """Host arrays in the order of the data, in the canonical frame."""
        return joint_parameters(self.data, self.spec, self.layout, estimates)

    def fingerprint(self, mark: dict[str, Any]) -> dict[str, Any]:
        """What must agree for a checkpoint to be continued."""
        return fingerprint(self.data, mark)

    def notes(self, estimates: JointEstimates) -> dict[str, Any]:
        """What the errors are."""
        return {"item_errors": "conditional"}


def joint_parameters(
    data: ResponseMatrix, spec: ModelSpec, layout: BlockLayout, estimates: JointEstimates
) -> FittedParameters:
    """Host arrays in the order of the data, in the canonical frame, where nothing is random."""
    host: Any = jax.tree.map(np.asarray, estimates)
    items = jax.tree.map(layout.from_blocks, host.items)
    dims, dtype = spec.dims, host.ability.dtype
    return estimated_parameters(
        data,
        spec,
        items,
        layout.from_blocks(host.item_covariance),
        Abilities(host.ability, host.ability_covariance, host.expected_score),
        (np.zeros((1, dims), dtype), np.eye(dims, dtype=dtype)[None]),
    )

"""`psn` and `deep-irt` around the loop: cells to train on, blocks for the errors."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jaxtyping import Array, Float

from irtjax.data.blocks import make_blocks
from irtjax.data.cells import Cells
from irtjax.data.responses import ResponseMatrix
from irtjax.errors import InputError
from irtjax.fit.checkpoints import fingerprint
from irtjax.fit.features import Features
from irtjax.fit.joint_map import joint_priors
from irtjax.fit.joint_route import joint_parameters
from irtjax.fit.result import FittedParameters
from irtjax.fit.settings import FitSettings
from irtjax.model.priors import Priors
from irtjax.model.spec import ModelSpec
from irtjax.nets.cells import NetBlocks, cell_table, is_training_cell
from irtjax.nets.psn import Psn, PsnEstimates, PsnState
from irtjax.nets.settings import Network
from irtjax.nets.unseen import packed_tower
from irtjax.parallel import BLOCKED, REPLICATED, place

__all__ = ["DeepIrtRoute", "PsnRoute"]


class PsnRoute:
    """Towers of any family and number of dims."""

    name = "psn"
    integrated = "none"

    def __init__(
        self, data: ResponseMatrix, spec: ModelSpec, priors: Priors, settings: FitSettings
    ) -> None:
        if data.n_responses < 2:
            raise InputError("networks need at least 2 responses: one to train on, one to stop by")
        self.data, self.spec, self.priors = data, spec, joint_priors(priors, spec)
        self.seed = settings.seed
        self.model_features = _table(settings.model_features)
        self.item_features = _table(settings.item_features)
        self.features = {
            side: None if features is None else _described(features)
            for side, features in (
                ("item", settings.item_features),
                ("model", settings.model_features),
            )
        }
        self.estimator = Psn(self.network_of(settings), self.name)
        for side, features in (("items", self.item_features), ("models", self.model_features)):
            if features is None and not self.estimator.network.looks_up(side):
                lookup = self.estimator.network.lookup
                raise InputError(
                    f"network lookup={lookup} leaves {side} without ids, and they have no "
                    f"features; pass {side[:-1]} features, or another lookup"
                )

    def network_of(self, settings: FitSettings) -> Network:
        """The network asked for."""
        return _checked(settings.network) or Network()

    def lay_out(self, mesh: Mesh) -> NetBlocks:
        """Training and validation cells, and blocks of all items, on the devices."""
        blocks, self.layout = make_blocks(self.data, n_shards=mesh.size)
        cells = self.data.cells()
        share = self.estimator.network.validation
        is_training = is_training_cell(len(cells), share, self.seed)
        carried = [self._share(cells.taken(is_training)), self._share(cells)]
        order = self.layout.to_blocks(np.arange(self.data.n_items, dtype=np.int32))
        dtype = jnp.zeros(()).dtype
        tables = (
            cell_table(cells),
            jnp.asarray(np.append(is_training, False), dtype),
            self.model_features,
            self.item_features,
            jnp.asarray(np.stack(carried), dtype),
        )
        return NetBlocks(
            *place(tables, mesh, REPLICATED),
            place(blocks, mesh, BLOCKED),
            place(jnp.asarray(order), mesh, BLOCKED),
        )

    def _share(self, cells: Cells) -> np.ndarray:
        count = np.bincount(cells.item_index, weights=cells.weight, minlength=self.data.n_items)
        return np.where(count > 0, 1 / np.maximum(count, 1e-9), 0)

    def init(self, blocks: NetBlocks, key: jax.Array) -> PsnState:
        """New towers."""
        return self.estimator.init(blocks, self.spec, self.priors, key)

    def collect(self, blocks: NetBlocks, estimates: PsnEstimates) -> FittedParameters:
        """Host arrays in the order of the data, in the canonical frame."""
        found = joint_parameters(self.data, self.spec, self.layout, estimates.joint)
        host: Any = jax.tree.map(np.asarray, (estimates.towers, estimates.raw))
        (model_tower, item_tower), (abilities, items) = host
        packed: dict[str, Any] = {}
        if self.item_features is not None:
            packed["item_tower"] = packed_tower(item_tower, items, np.asarray(found.mean)[:, 0])
        if self.model_features is not None:
            published = np.asarray(found.ability)
            packed["model_tower"] = packed_tower(model_tower, abilities, published)
        return dataclasses.replace(found, **packed)

    def fingerprint(self, mark: dict[str, Any]) -> dict[str, Any]:
        """What must agree for a checkpoint to be continued."""
        return fingerprint(self.data, mark)

    def notes(self, estimates: PsnEstimates) -> dict[str, Any]:
        """What the errors are, network and training."""
        curves = np.asarray(estimates.curves, np.float64)
        n_epochs, n_refit = int(estimates.n_epochs), int(estimates.n_refit)
        return {
            "ended": self._ended(n_epochs, int(estimates.n_best), n_refit),
            "item_errors": "conditional",
            "network": dataclasses.asdict(self.estimator.network),
            "features": self.features,
            "loss_curves": {
                "training": curves[0, :n_epochs].tolist(),
                "validation": curves[1, :n_epochs].tolist(),
                "refit": curves[2, :n_refit].tolist(),
            },
        }

    def _ended(self, n_epochs: int, n_best: int, n_refit: int) -> str | None:
        """What ended the training; None where it did not end by itself."""
        network = self.estimator.network
        score = {"log_loss": "log-loss", "f1": "F1", "auc": "AUC"}[network.stop_by]
        if n_epochs - n_best >= network.patience:
            ended = f"no better in the {network.patience} since (patience)"
        elif n_epochs >= network.epochs:
            ended = f"and {network.epochs} are the most; raise network epochs for more"
        else:
            return None
        if network.refit and n_refit < n_best:
            return None
        then = "its towers are kept"
        if network.refit:
            then = f"trained again on all responses for {n_best}"
        return f"The validation {score} was best after epoch {n_best}, {ended}; {then}."


def _described(features: Features) -> dict[str, Any]:
    """Names of features and how they are standardised, for the report."""
    return {
        "names": list(features.names),
        "mean": features.mean.tolist(),
        "scale": features.scale.tolist(),
    }


def _table(features: Features | None) -> Float[Array, "rows features"] | None:
    return None if features is None else jnp.asarray(features.values, jnp.zeros(()).dtype)


class DeepIrtRoute(PsnRoute):
    """Deep-IRT (Yeung 2019): the 1PL with deeper towers."""

    name = "deep-irt"

    def __init__(
        self, data: ResponseMatrix, spec: ModelSpec, priors: Priors, settings: FitSettings
    ) -> None:
        if spec != ModelSpec("1pl"):
            raise InputError(
                f"deep-irt is a 1pl with one dim, not a {spec.family} with {spec.dims}; ask for "
                "that, or take estimator psn"
            )
        super().__init__(data, spec, priors, settings)

    def network_of(self, settings: FitSettings) -> Network:
        """The network asked for; two more layers without."""
        return _checked(settings.network) or Network(layers=3)


def _checked(network: Any) -> Network | None:
    if not isinstance(network, Network | None):
        raise InputError(
            f"network must be an irtjax.Network, not a {type(network).__name__}; write "
            "Network(hidden=64)"
        )
    return network

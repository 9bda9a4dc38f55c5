"""`psn` and `deep-irt` around the loop: cells to train on, blocks for the errors."""

import dataclasses
import functools
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
from irtjax.fit.feature_range import constant_note
from irtjax.fit.features import Features, Side
from irtjax.fit.joint_map import joint_priors
from irtjax.fit.joint_route import joint_parameters
from irtjax.fit.result import FittedParameters
from irtjax.fit.settings import FitSettings
from irtjax.model.priors import Priors
from irtjax.model.spec import ModelSpec
from irtjax.nets.cells import NetBlocks, cell_table, is_training_cell, n_validation
from irtjax.nets.ending import MEANS, Training, ended
from irtjax.nets.psn import Psn, PsnEstimates, PsnState
from irtjax.nets.settings import Network
from irtjax.nets.size import check_size
from irtjax.nets.unseen import packed_tower
from irtjax.nets.whole import whole
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
        network = self.network_of(settings)
        n_training = data.n_responses - n_validation(data.n_responses, network.validation)
        self.estimator = Psn(network.for_responses(n_training), self.name)
        given = (settings.model_features, settings.item_features)
        of_models, of_items = (0 if each is None else len(each.names) for each in given)
        n_ids = (data.n_models, data.n_items)
        shapes = self.estimator.shapes(spec, n_ids, (of_models, of_items))
        check_size(self.estimator.network, *shapes)
        self.model_features = _table(settings.model_features)
        self.item_features = _table(settings.item_features)
        sides: tuple[tuple[Side, Features | None], ...] = (
            ("item", settings.item_features),
            ("model", settings.model_features),
        )
        self.features = {side: each and each.described() for side, each in sides}
        self.warnings = [
            note for side, each in sides if each is not None for note in _notes(each, side)
        ]
        for name, features in (("items", self.item_features), ("models", self.model_features)):
            if features is None and not self.estimator.network.looks_up(name):
                lookup = self.estimator.network.lookup
                raise InputError(
                    f"network lookup={lookup} leaves {name} without ids, and they have no "
                    f"features; pass {name[:-1]} features, or another lookup"
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
        training = self._training(estimates)
        return {
            "ending": functools.partial(ended, training),
            "item_errors": "conditional",
            "network": dataclasses.asdict(self.estimator.network),
            "features": self.features,
            "warnings": self.warnings,
            "log_likelihood": training.whole.log_likelihood,
            "log_likelihood_is": "responses",
            "mean_prediction": training.whole.predicted,
            "stopping": {
                "by": self.estimator.network.stop_by,
                "epoch": training.n_best,
                "scores": training.scores,
                "score_of_means": dict(zip(MEANS, (one for one, _ in training.means), strict=True)),
            },
            "loss_curves": {
                "training": training.training,
                "validation": training.validation,
                "refit": training.refit,
            },
        }

    def _training(self, estimates: PsnEstimates) -> Training:
        """How it went, on the host."""
        n_epochs, n_refit = int(estimates.n_epochs), int(estimates.n_refit)
        curves = np.asarray(estimates.curves, np.float64)
        first, *means = np.asarray(estimates.baselines, np.float64).tolist()
        return Training(
            self.estimator.network,
            int(estimates.n_best),
            curves[0, :n_epochs].tolist(),
            curves[1, :n_epochs].tolist(),
            curves[2, :n_refit].tolist(),
            curves[3, :n_epochs].tolist(),
            tuple(first),
            tuple(map(tuple, means)),
            n_validation(self.data.n_responses, self.estimator.network.validation),
            whole(*(np.asarray(each, np.float64) for each in estimates.sums)),
        )


def _notes(features: Features, side: Side) -> list[str]:
    """Sentences about features that say little."""
    notes = [constant_note(features.names, features.scale, side), features.far, features.unused]
    return [note for note in notes if note]


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

"""`marginal-models` around the loop: blocks of models, equal response patterns put together."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from irtjax.data.blocks import Blocks, make_blocks
from irtjax.data.responses import ResponseMatrix
from irtjax.errors import InputError
from irtjax.fit.adaptive_models import AdaptiveModels
from irtjax.fit.assemble import Abilities, estimated_parameters, with_zeros
from irtjax.fit.checkpoints import fingerprint
from irtjax.fit.held_parameters import HeldParameters
from irtjax.fit.marginal_models import MarginalModels, ModelsEstimates
from irtjax.fit.patterns import Patterns, find_patterns
from irtjax.fit.populations import default_nodes
from irtjax.fit.result import FittedParameters
from irtjax.fit.settings import FitSettings
from irtjax.fit.variational_models import VariationalModels
from irtjax.model.priors import LogNormal, Normal, Priors
from irtjax.model.spec import ModelSpec
from irtjax.parallel import BLOCKED, place

__all__ = ["MOST_ANSWERS", "MOST_DIMS", "ModelsRoute", "most_responses"]

# Posteriors of abilities from more answers than this are narrower than the fixed nodes, by dims:
# 61 nodes lie .2 apart, 21 a dim .6.
MOST_ANSWERS = {1: 400, 2: 50}
# Sums over nodes say nothing of a posterior whose sd is below this share of their distance: at a
# half its variance is still right within a seventh, wherever it lies between the nodes.
_NARROW = 0.4
# Below this many models the default prior of slopes is an informative one.
_FEW_MODELS = 100
# Up to this many cells a device has one block, which compiles in half the time of a loop over more.
_ONE_BLOCK = 250_000
# More dims than this have too many nodes.
MOST_DIMS = 2
_VARIATIONAL_NODES = 7
_ADAPTIVE_NODES = {1: 15, 2: 7}


class ModelsRoute:
    """Models are integrated out."""

    integrated = "models"

    def __init__(
        self, data: ResponseMatrix, spec: ModelSpec, priors: Priors, settings: FitSettings
    ) -> None:
        self.data, self.spec = data, spec
        self.priors = _priors_for(data, spec, priors)
        self.codes, self.names = None, [""]
        if settings.model_group is not None:
            self.codes, self.names = data.populations(settings.model_group)
        self.loadings, self.is_correlated = settings.loadings, settings.is_correlated
        self.anchors = settings.anchors
        if spec.has_common_slope and spec.dims > 1:
            raise InputError("1pl with more than one dim needs estimator marginal-items")
        self.estimator = self._chosen(settings)

    def _chosen(self, settings: FitSettings) -> MarginalModels | AdaptiveModels | VariationalModels:
        """By the posteriors: fixed nodes, nodes of each model's own, or in many dims normals."""
        n_populations, dims = len(self.names), self.spec.dims
        is_empirical = settings.ability_distribution == "empirical"
        quadrature = settings.quadrature
        if quadrature == "auto":
            is_narrow = _most_answers(self.data) > MOST_ANSWERS.get(dims, 0) and not is_empirical
            quadrature = "adaptive" if is_narrow else "fixed"
            quadrature = "variational" if dims > MOST_DIMS else quadrature
        if dims > MOST_DIMS and quadrature != "variational":
            raise InputError(
                f"quadrature {quadrature} takes at most {MOST_DIMS} dims, not {dims}; use "
                "variational (normal posteriors)"
            )
        if is_empirical and quadrature != "fixed":
            raise InputError(
                f"an empirical ability distribution takes at most {MOST_DIMS} dims, not {dims}"
            )
        if quadrature == "variational":
            n_nodes = settings.nodes or _VARIATIONAL_NODES
            return VariationalModels(
                n_nodes,
                self.is_correlated,
                n_populations=n_populations,
                is_anchored=self.anchors is not None,
            )
        if quadrature == "adaptive":
            n_nodes = settings.nodes or _ADAPTIVE_NODES[dims]
            return AdaptiveModels(
                n_nodes,
                self.is_correlated,
                n_populations=n_populations,
                is_anchored=self.anchors is not None,
            )
        n_nodes = settings.nodes or default_nodes(dims)
        n_cells = self.data.n_models * self.data.n_items
        return MarginalModels(
            n_nodes,
            is_empirical,
            self.is_correlated,
            n_populations=n_populations,
            is_complete=self.data.n_responses == n_cells and not self.data.is_weighted,
            is_anchored=self.anchors is not None,
        )

    def lay_out(self, mesh: Mesh) -> Blocks:
        """Blocks of response patterns on the devices."""
        self.patterns: Patterns = find_patterns(self.data, self.codes)
        transposed = self.patterns.data.transposed()
        n_models, size = transposed.n_items, None
        if n_models * transposed.n_models <= _ONE_BLOCK * mesh.size:
            size = max(8, 1 << (max(-(-n_models // mesh.size), 1) - 1).bit_length())
        blocks, self.layout = make_blocks(
            transposed, self.patterns.codes, n_shards=mesh.size, items_per_block=size
        )
        count = self.layout.to_blocks(self.patterns.count.astype(jnp.zeros(()).dtype))
        self.multiplicity = place(jnp.asarray(count), mesh, BLOCKED)
        return place(blocks, mesh, BLOCKED)

    def init(self, blocks: Blocks, key: jax.Array) -> Any:
        """The first state."""
        held = None if self.anchors is None else self.anchors.held_parameters(self.spec)
        return self.init_beside(blocks, key, held)

    def init_beside(self, blocks: Blocks, key: jax.Array, held: HeldParameters | None) -> Any:
        """The first state, beside items that are held."""
        is_loading = None
        if self.loadings is not None:
            is_loading = jnp.asarray(self.loadings.mask, jnp.zeros(()).dtype)
        return self.estimator.init(
            blocks, self.spec, self.priors, key, self.multiplicity, is_loading, held
        )

    def collect(self, blocks: Blocks, estimates: ModelsEstimates) -> FittedParameters:
        """Host arrays in the order of the data, in the canonical frame."""
        host: Any = jax.tree.map(np.asarray, estimates)
        models = jax.tree.map(
            lambda leaf: self.layout.from_blocks(leaf)[self.patterns.index], host.models
        )
        spread = host.populations.factor @ host.populations.factor.swapaxes(1, 2)
        fitted = estimated_parameters(
            self.data,
            self.spec,
            host.items,
            host.item_covariance,
            Abilities(models.mean, models.covariance, models.expected_score),
            (host.populations.mean, spread),
            keeps_frame=self.loadings is not None or self.anchors is not None,
        )
        if self.anchors is not None:
            return self.anchors.within(fitted)
        return fitted if self.loadings is None else with_zeros(fitted, self.loadings.mask)

    def fingerprint(self, mark: dict[str, Any]) -> dict[str, Any]:
        """What must agree for a checkpoint to be continued."""
        return fingerprint(self.data, mark, self.codes)

    def notes(self, estimates: ModelsEstimates) -> dict[str, Any]:
        """Log-likelihood without the priors, and what is compared by it."""
        log_likelihood = float(estimates.log_likelihood)
        more: dict[str, Any] = {}
        if self.spec.family == "rasch":
            slope = float(estimates.items.slope[0, 0])
            error = float(estimates.item_covariance[0, 0, 0]) ** 0.5
            more = {"latent_variance": slope**2, "latent_variance_se": 2 * abs(slope) * error}
        if self.loadings is not None:
            more |= {"dim_names": list(self.loadings.names)}
        more |= self._narrow_note(estimates)
        n_parameters = self._n_parameters()
        n_models = int(np.count_nonzero(self.data.totals("models")[0]))
        return {
            "log_likelihood": log_likelihood,
            "n_parameters": n_parameters,
            "aic": 2 * n_parameters - 2 * log_likelihood,
            "bic": n_parameters * float(np.log(n_models)) - 2 * log_likelihood,
            "populations": self.names,
            "item_errors": estimates.error_method,
            "n_patterns": len(self.patterns.count),
            **more,
        }

    def _narrow_note(self, estimates: ModelsEstimates) -> dict[str, Any]:
        """A warning where posteriors are too narrow for the fixed nodes."""
        if not isinstance(self.estimator, MarginalModels):
            return {}
        distance = self.estimator.grid(self.spec).distance
        variance = np.asarray(estimates.models.posterior_only)
        variance = self.layout.from_blocks(np.diagonal(variance, axis1=2, axis2=3))
        scale = np.sum(np.asarray(estimates.populations.factor) ** 2, axis=2)
        codes = self.patterns.codes
        scale = scale[0] if codes is None else scale[codes]
        is_narrow = np.any(variance < (_NARROW * distance) ** 2 * scale, axis=1)
        is_narrow = is_narrow[self.patterns.index]
        if not is_narrow.any():
            return {}
        way_out = "more nodes" if self.estimator.is_empirical else "quadrature adaptive"
        return {
            "warnings": [
                f"{np.count_nonzero(is_narrow):,} of {self.data.n_models:,} models are known more "
                f"closely than the {self.estimator.n_nodes} nodes of a dim tell apart (one every "
                f"{distance:.2g} sd): their abilities lie at nodes, and estimates and errors are "
                f"rough; use {way_out}"
            ]
        }

    def _n_parameters(self) -> int:
        """Free parameters of the items and the populations."""
        spec, n_items = self.spec, self.data.n_items
        dims, asymptotes = spec.dims, spec.has_guessing + spec.has_feasibility
        if self.anchors is not None:
            n_new = n_items - self.anchors.n_anchors
            each = 1 + asymptotes + (0 if spec.has_common_slope else dims)
            return n_new * each + len(self.names) * (dims + dims * (dims + 1) // 2)
        slopes = 1 if spec.has_common_slope else dims * n_items - dims * (dims - 1) // 2
        if self.loadings is not None:
            slopes = int(self.loadings.mask.sum()) + self.is_correlated * dims * (dims - 1) // 2
        more = (len(self.names) - 1) * (dims + dims * (dims + 1) // 2)
        if self.estimator.is_empirical:
            more = len(self.names) * (self.estimator.n_nodes**dims - 1) - 2 * dims
        return slopes + n_items * (1 + asymptotes) + more


def _priors_for(data: ResponseMatrix, spec: ModelSpec, priors: Priors) -> Priors:
    """With few models the weak default says nothing about the scale of slopes, and it runs away.

    On W1 (12 models, 41,871 items) abilities reached -38 under normal(0, 10), and are those of a
    prior's scale under lognormal(0, .5): r with accuracy .999.
    """
    if priors.slope is not None or data.n_models >= _FEW_MODELS:
        return priors
    slope = LogNormal(0.0, 0.5) if spec.dims == 1 else Normal(0.0, 1.0)
    return dataclasses.replace(priors, slope=slope)


def most_responses(data: ResponseMatrix) -> int:
    """Cells of the model that has most."""
    return int(data.totals("models")[0].max(initial=0))


def _most_answers(data: ResponseMatrix) -> float:
    """Answers of the model that has most: a cell of weight w stands for w of them."""
    if data.sparse is None and data.dense_weight is None:
        return float(most_responses(data))
    cells = data.cells()
    return float(np.bincount(cells.model_index, cells.weight, minlength=1).max())

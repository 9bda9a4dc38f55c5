"""Predictions of each fold's scored cells by a fit that has not seen them."""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, Num

from irtjax.data.blocks import BlockLayout, Blocks, make_blocks
from irtjax.data.checks import MISSING
from irtjax.evaluate.fold_scores import FoldPrediction
from irtjax.evaluate.folds import Folds
from irtjax.fit.driver import Look, drive
from irtjax.fit.item_pass import ItemPosteriors
from irtjax.fit.items_state import State
from irtjax.fit.marginal_items import MarginalItems
from irtjax.fit.outer import OuterParameters
from irtjax.fit.placing import place_items, place_models
from irtjax.fit.prediction import PredictionParameters, cell_probabilities
from irtjax.fit.start import free_coordinates
from irtjax.fit.warm_start import refit
from irtjax.model.priors import Priors
from irtjax.model.spec import ModelSpec
from irtjax.parallel import BLOCKED, items_mesh, place

__all__ = ["FoldFits", "block_folds"]


@dataclasses.dataclass(frozen=True, eq=False)
class FoldFits:
    """The folds on the devices: responses and codes in equal blocks, made once for all fits.

    A fold is cut out by a mask on the blocks, so every fit of a kind runs the same programs.
    """

    folds: Folds
    group: np.ndarray
    layout: BlockLayout
    mesh: jax.sharding.Mesh
    blocks: Blocks
    code: Num[Array, "blocks rows columns"]

    def predictions(
        self, estimator: MarginalItems, spec: ModelSpec, priors: Priors, seed: int, max_steps: int
    ) -> Iterator[FoldPrediction]:
        """Fit all responses, then each fold from there; predict the fold's scored cells.

        Args:
            estimator: settings of every fit.
            spec: family and dims.
            priors: hyperparameters of the priors.
            seed: of the first fit's start.
            max_steps: most steps of each fit.
        """
        full = self.fitted(estimator, spec, priors, seed, max_steps)
        for fold in range(self.folds.n_folds):
            yield self.predicted(estimator, full, fold, max_steps)

    def fitted(
        self, estimator: MarginalItems, spec: ModelSpec, priors: Priors, seed: int, max_steps: int
    ) -> State:
        """Last state of the fit of all responses; arguments as `predictions`."""
        with jax.set_mesh(self.mesh):
            start = estimator.init(self.blocks, spec, priors, jax.random.key(seed))
            return drive(estimator, self.blocks, start, look=Look(max_steps=max_steps))[0]

    def predicted(
        self, estimator: MarginalItems, full: State, fold: int, max_steps: int
    ) -> FoldPrediction:
        """Fit one fold from where the fit of all responses ended, and predict its scored cells.

        Given `full`, the predictions do not depend on the responses they are compared with.
        """
        with jax.set_mesh(self.mesh):
            return self._predicted(estimator, full, fold, max_steps)

    def _predicted(
        self, estimator: MarginalItems, full: State, fold: int, max_steps: int
    ) -> FoldPrediction:
        blocks = self._fitted_blocks(fold)
        state, status, n_steps = refit(estimator, blocks, full, max_steps=max_steps)
        settings = {"is_free": free_coordinates(state.spec), "n_nodes": estimator.n_nodes}
        outer, items = state.outer, _items_first(state.items, self.layout)
        left_out = np.flatnonzero(self.folds.fold_of == fold)
        if self.folds.over == "items":
            placing, layout = self._placing_items(fold, left_out)
            placed = _items_first(place_items(placing, outer, **settings), layout)
            for leaf, value in zip(items, placed, strict=True):
                leaf[left_out] = value
        if self.folds.over == "models":
            rows = self._placing_rows(fold, left_out)
            outer = _with_models(
                outer, place_models(rows, state.items, outer, **settings), left_out
            )
        cells = self.folds.scored(fold)
        group: Any = self.group if estimator.has_effects else np.zeros_like(self.group)
        asymptotes = jax.tree.map(lambda leaf: leaf[group], outer.asymptotes)
        known = PredictionParameters(outer.ability, outer.effect, group, *items, asymptotes)
        probability = cell_probabilities(known, cells.model_index, cells.item_index)
        return FoldPrediction(fold, probability, status.name, n_steps)

    def _fitted_blocks(self, fold: int) -> Blocks:
        """The responses without what the fold leaves out; items left out whole do not count."""
        blocks = _without(self.blocks, self.code, self._codes(2 * fold, 2 * fold + 1))
        if self.folds.over != "items":
            return blocks
        is_kept = self.layout.to_blocks(self.folds.fold_of != fold, False)
        return dataclasses.replace(blocks, is_item=place(is_kept, self.mesh, BLOCKED))

    def _placing_items(self, fold: int, left_out: np.ndarray) -> tuple[Blocks, BlockLayout]:
        """What places the fold's items, in blocks of their own."""
        blocks, layout = make_blocks(
            self.folds.placing(fold), self.group[left_out], n_shards=self.mesh.size
        )
        # Every group has a slot in every block: how many meet in one would be another program.
        groups = np.arange(self.blocks.n_groups, dtype=np.int32)
        slots: Any = np.broadcast_to(groups, (blocks.n_blocks, len(groups)))
        blocks = dataclasses.replace(
            blocks, slot=blocks.group, slot_group=slots, n_groups=len(groups)
        )
        return place(blocks, self.mesh, BLOCKED), layout

    def _placing_rows(self, fold: int, left_out: np.ndarray) -> Blocks:
        """What places the fold's models: their rows, as many as the largest fold has."""
        n_rows = -(-self.blocks.n_models // self.folds.n_folds)
        is_row = np.arange(n_rows) < len(left_out)
        code = np.asarray(2 * fold, self.code.dtype)
        return _rows(self.blocks, self.code, code, np.resize(left_out, n_rows), is_row)

    def _codes(self, *codes: int) -> np.ndarray:
        return np.asarray(codes, self.code.dtype)


def block_folds(
    folds: Folds, group: np.ndarray | None, devices: Sequence[jax.Device] | None
) -> FoldFits:
    """Cut the responses and the codes of the folds into blocks on the devices.

    Args:
        folds: the partition.
        group: group code of each item, None for one group.
        devices: spread the items over these; all local devices without.
    """
    mesh = items_mesh(devices)
    blocks, layout = make_blocks(folds.data, group, n_shards=mesh.size)
    code, _ = make_blocks(folds.code, group, n_shards=mesh.size)
    if group is None:
        group = np.zeros(folds.data.n_items, np.int32)
    placed = place(blocks, mesh, BLOCKED), place(code.response, mesh, BLOCKED)
    return FoldFits(folds, group, layout, mesh, *placed)


@jax.jit
def _without(
    blocks: Blocks, code: Num[Array, "blocks rows columns"], codes: Num[Array, " codes"]
) -> Blocks:
    """The responses with other codes."""
    is_out = jnp.any(code[..., None] == codes, axis=-1)
    return dataclasses.replace(blocks, response=_only(~is_out, blocks.response))


@jax.jit
def _rows(
    blocks: Blocks,
    code: Num[Array, "blocks models items"],
    wanted: Num[Array, ""],
    rows: Int[Array, " rows"],
    is_row: Bool[Array, " rows"],
) -> Blocks:
    """The responses of some models with one code; rows that only fill up are missing."""
    is_kept = (code[:, rows] == wanted) & is_row[:, None]
    weight = None if blocks.weight is None else blocks.weight[:, rows]
    response = _only(is_kept, blocks.response[:, rows])
    return dataclasses.replace(blocks, response=response, weight=weight, n_models=len(rows))


def _only(is_kept: Bool[Array, "..."], response: Num[Array, "..."]) -> Num[Array, "..."]:
    return jnp.where(is_kept, response, jnp.asarray(MISSING, response.dtype))


def _items_first(items: ItemPosteriors, layout: BlockLayout) -> tuple[Any, Any, Any]:
    """Means, covariances and shares on the host, items first in the matrix's order."""

    def moved(leaf: Array) -> np.ndarray:
        return layout.from_blocks(np.moveaxis(np.asarray(leaf), -1, 1))

    return moved(items.mean), moved(items.covariance), moved(items.share)


def _with_models(
    outer: OuterParameters, placed: OuterParameters, rows: np.ndarray
) -> OuterParameters:
    """The fit's models, with those of some rows placed anew."""
    effect = outer.effect
    if effect is not None and placed.effect is not None:
        effect = effect.at[rows].set(placed.effect[: len(rows)])
    ability = outer.ability.at[rows].set(placed.ability[: len(rows)])
    return dataclasses.replace(outer, ability=ability, effect=effect)

"""`ResponseMatrix`: which model answered which item how, with its ids and metadata."""

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from irtjax.checks import counted, shown
from irtjax.data.cells import Cells, checked_cells, observed_cells, read_only
from irtjax.data.checks import check_weight, checked_values, checked_weight, number_array
from irtjax.data.groups import group_codes
from irtjax.data.labels import checked_ids, checked_metadata, in_order_of, labels_of
from irtjax.data.layout import Layout, dense_matrix, layout_of_cells, layout_of_matrix
from irtjax.data.totals import Totals, totals_of_cells, totals_of_matrix
from irtjax.errors import InputError

__all__ = ["Provenance", "ResponseMatrix", "check_matrix"]


@dataclasses.dataclass(frozen=True)
class Provenance:
    """Where the responses came from: files as `(path, sha256)`, choices made, warnings given."""

    files: tuple[tuple[str, str], ...] = ()
    choices: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    warnings: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, eq=False)
class ResponseMatrix:
    """Responses of models (rows) to items (columns), each 0, 1, a fraction, or missing.

    Made by `from_dense`, `from_cells` or `irtjax.read_responses`; not by the constructor. Its
    arrays are read-only: copy one to change it.

    Attributes:
        model_ids: strings, in order of first appearance.
        item_ids: strings, in order of first appearance.
        dense: int8 (0, 1) or float32 (fractions), models x items, -1 where missing; None if sparse.
        dense_weight: float32 models x items, or None when every weight is 1.
        sparse: the observed cells when too few for a dense matrix, else None.
        item_metadata: one row an item, in item order.
        model_metadata: one row a model, in model order.
        provenance: files, choices and warnings of the reader.
    """

    model_ids: np.ndarray
    item_ids: np.ndarray
    dense: np.ndarray | None
    dense_weight: np.ndarray | None
    sparse: Cells | None
    item_metadata: pd.DataFrame
    model_metadata: pd.DataFrame
    provenance: Provenance = dataclasses.field(default_factory=Provenance)

    def __post_init__(self) -> None:
        """Nobody may write to what `totals` has counted."""
        for name in ("dense", "dense_weight"):
            if (matrix := getattr(self, name)) is not None:
                object.__setattr__(self, name, read_only(matrix))

    @classmethod
    def from_dense(
        cls,
        responses: Any,
        *,
        model_ids: Sequence[str] | None = None,
        item_ids: Sequence[str] | None = None,
        weight: Any = None,
        item_metadata: pd.DataFrame | None = None,
        model_metadata: pd.DataFrame | None = None,
        provenance: Provenance | None = None,
    ) -> "ResponseMatrix":
        """Build from a models x items array; missing is -1, NaN or a masked cell.

        Args:
            responses: models x items, values in [0, 1] or missing: an array, nested lists, or a
                data frame, whose index and columns are the ids where they do more than count.
            model_ids: one string a row; `model-0`, `model-1`, ... without.
            item_ids: one string a column; `item-0`, `item-1`, ... without.
            weight: models x items, positive where observed.
            item_metadata: one row an item: in the order of the items, or with their ids as index.
            model_metadata: one row a model, likewise.
            provenance: what the reader wants recorded.

        Raises:
            InputError: a value outside [0, 1], a repeated id, shapes that do not match.

        >>> ResponseMatrix.from_dense([[1, 0], [1, -1]]).n_responses
        3
        """
        if isinstance(responses, np.ma.MaskedArray):
            responses = np.ma.filled(responses.astype(np.float32), np.nan)
        if isinstance(responses, pd.DataFrame):
            model_ids = labels_of(responses.index) if model_ids is None else model_ids
            item_ids = labels_of(responses.columns) if item_ids is None else item_ids
        matrix = number_array("responses", responses)
        if matrix.ndim != 2:
            raise InputError(
                f"responses must be a models x items matrix, not {matrix.ndim}-dimensional"
            )
        models = checked_ids(model_ids, matrix.shape[0], "model")
        items = checked_ids(item_ids, matrix.shape[1], "item")
        matrix = checked_values(matrix, models, items)
        if weight is not None:
            weight = _weight_of(weight, models, items)
            if weight.shape != matrix.shape:
                raise InputError(f"weight has shape {weight.shape}, the responses {matrix.shape}")
            check_weight(weight[matrix >= 0])
        return cls(
            models,
            items,
            *layout_of_matrix(matrix, weight),
            checked_metadata(item_metadata, items, "item"),
            checked_metadata(model_metadata, models, "model"),
            provenance or Provenance(),
        )

    @classmethod
    def from_cells(
        cls,
        model_index: Any,
        item_index: Any,
        response: Any,
        *,
        model_ids: Sequence[str],
        item_ids: Sequence[str],
        weight: Any = None,
        item_metadata: pd.DataFrame | None = None,
        model_metadata: pd.DataFrame | None = None,
        provenance: Provenance | None = None,
    ) -> "ResponseMatrix":
        """Build from observed cells given by index; the layout is chosen by density.

        Args:
            model_index: row of each cell.
            item_index: column of each cell.
            response: value of each cell, in [0, 1]; NaN means missing and is left out.
            model_ids: one string a model.
            item_ids: one string an item.
            weight: positive, one a cell.
            item_metadata: one row an item: in the order of the items, or with their ids as index.
            model_metadata: one row a model, likewise.
            provenance: what the reader wants recorded.

        Raises:
            InputError: a value outside [0, 1], a repeated id, the same cell twice, an index
                without an id, columns of unequal lengths.
        """
        models = checked_ids(model_ids, None, "model")
        items = checked_ids(item_ids, None, "item")
        cells = checked_cells(model_index, item_index, response, weight, models, items)
        return cls(
            models,
            items,
            *layout_of_cells(cells, (len(models), len(items))),
            checked_metadata(item_metadata, items, "item"),
            checked_metadata(model_metadata, models, "model"),
            provenance or Provenance(),
        )

    @property
    def n_models(self) -> int:
        """Number of models (rows)."""
        return len(self.model_ids)

    @property
    def n_items(self) -> int:
        """Number of items (columns)."""
        return len(self.item_ids)

    @property
    def n_responses(self) -> int:
        """Number of observed cells, as a Python integer (safe past 2^31)."""
        if self.sparse is not None:
            return len(self.sparse)
        return int(np.sum(self._totals_of_models[0]))

    @property
    def sum_of_weights(self) -> float | None:
        """Over the observed cells: how many answers they stand for; None where each weight is 1."""
        if self.sparse is not None:
            weight = self.sparse.weight
            return None if np.all(weight == 1) else float(np.sum(weight, dtype=np.float64))
        if self.dense_weight is None:
            return None
        assert self.dense is not None
        return float(np.sum(self.dense_weight, where=self.dense >= 0, dtype=np.float64))

    @property
    def density(self) -> float:
        """Share of cells that are observed."""
        return self.n_responses / max(self.n_models * self.n_items, 1)

    @property
    def is_binary(self) -> bool:
        """Whether every observed response is 0 or 1."""
        if self.sparse is not None:
            return self.sparse.is_binary
        assert self.dense is not None
        return self.dense.dtype == np.int8

    @property
    def is_weighted(self) -> bool:
        """Whether any weight is not 1."""
        if self.sparse is not None:
            return bool(np.any(self.sparse.weight != 1))
        return self.dense_weight is not None

    def cells(self) -> Cells:
        """The observed cells, sorted by item and then by model."""
        if self.sparse is not None:
            return self.sparse
        assert self.dense is not None
        return observed_cells(self.dense, self.dense_weight)

    def to_dense(self) -> np.ndarray:
        """Models x items, int8 (or float32 with fractions), -1 where missing."""
        if self.dense is not None:
            return self.dense
        assert self.sparse is not None
        return dense_matrix(self.sparse, (self.n_models, self.n_items))

    def transposed(self) -> "ResponseMatrix":
        """Models as items and items as models, for what treats both sides alike."""
        return ResponseMatrix(
            self.item_ids,
            self.model_ids,
            *Layout(self.dense, self.dense_weight, self.sparse).transposed(),
            self.model_metadata,
            self.item_metadata,
            self.provenance,
        )

    def totals(self, axis: str) -> Totals:
        """Number of responses and mean response along an axis.

        Args:
            axis: `models` (one value a model) or `items` (one value an item).

        Returns:
            int64 counts and float64 weighted mean responses, NaN where nothing was observed; both
            read-only: they are counted once.
        """
        if axis not in ("models", "items"):
            raise InputError(f"axis is 'models' or 'items', not {shown(axis)}")
        return self._totals_of_models if axis == "models" else self._totals_of_items

    @functools.cached_property
    def _totals_of_models(self) -> Totals:
        if self.dense is not None and self.dense_weight is None:
            return totals_of_matrix(self.dense, 1)
        cells = self.cells()
        return totals_of_cells(cells, cells.model_index, self.n_models)

    @functools.cached_property
    def _totals_of_items(self) -> Totals:
        if self.dense is not None and self.dense_weight is None:
            return totals_of_matrix(self.dense, 0)
        cells = self.cells()
        return totals_of_cells(cells, cells.item_index, self.n_items)

    def groups(self, column: str) -> tuple[np.ndarray, list[str]]:
        """The group of each item: codes (int32) and names in order of first appearance.

        Raises:
            InputError: no such column of item metadata, or an item without a value.
        """
        return group_codes(column, self.item_metadata, self.model_metadata, self.item_ids, "item")

    def populations(self, column: str) -> tuple[np.ndarray, list[str]]:
        """The population of each model: codes (int32) and names in order of first appearance.

        Raises:
            InputError: no such column of model metadata, or a model without a value.
        """
        return group_codes(column, self.model_metadata, self.item_metadata, self.model_ids, "model")

    def replace(self, **changes: Any) -> "ResponseMatrix":
        """A copy with some fields changed."""
        return dataclasses.replace(self, **changes)

    def __repr__(self) -> str:
        layout = "sparse" if self.dense is None else "dense"
        return (
            f"ResponseMatrix({counted(self.n_models, 'model')} x {counted(self.n_items, 'item')}, "
            f"{counted(self.n_responses, 'response')}, {layout})"
        )


def check_matrix(data: Any, taker: str) -> None:
    """Refuse what is no response matrix.

    Args:
        data: as given.
        taker: the function that it was given to.

    Raises:
        InputError: one line says how to make one.
    """
    if not isinstance(data, ResponseMatrix):
        raise InputError(
            f"{taker} takes a ResponseMatrix, not {type(data).__name__}; make one with "
            "read_responses or ResponseMatrix.from_dense"
        )


def _weight_of(weight: Any, models: np.ndarray, items: np.ndarray) -> np.ndarray:
    """Weights as float32; those of a data frame by its labels, where it has some."""
    if isinstance(weight, pd.DataFrame) and weight.shape == (len(models), len(items)):
        rows = in_order_of(models, weight.index, "the weights' rows", "model")
        columns = in_order_of(items, weight.columns, "the weights' columns", "item")
        weight = weight.iloc[rows, columns]
    return checked_weight(weight)

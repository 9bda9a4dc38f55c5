"""`Truth`: the parameters that simulated responses were drawn from."""

import dataclasses
import zipfile
from collections.abc import Iterator
from os import PathLike
from typing import Any

import jax
import numpy as np

from irtjax.data.cells import Cells
from irtjax.errors import InputError
from irtjax.model.response import probability

__all__ = ["Truth"]

_CELLS_PER_BLOCK = 1 << 20  # 4 MiB of float32 probabilities at a time
_OPTIONAL = "effects"
_probability = jax.jit(probability)


@dataclasses.dataclass(frozen=True, eq=False)
class Truth:
    """True parameters of a simulation, in the internal form of the response function.

    `P = guessing + (feasibility - guessing) * sigmoid(slope . theta + intercept + effect)`.

    Attributes:
        theta: models x dims, abilities in latent standard deviations.
        slope: items x dims, signed, logits a unit of ability.
        intercept: items, logits.
        guessing: items, the lower asymptote.
        feasibility: items, the upper asymptote.
        effects: models x benchmarks, logits, or None when the benchmarks have no effects.
        item_benchmark: items, the index of each item's benchmark.
        benchmarks: names, one a benchmark.
        model_ids: strings, one a model.
        item_ids: strings, one an item.
    """

    theta: np.ndarray
    slope: np.ndarray
    intercept: np.ndarray
    guessing: np.ndarray
    feasibility: np.ndarray
    effects: np.ndarray | None
    item_benchmark: np.ndarray
    benchmarks: np.ndarray
    model_ids: np.ndarray
    item_ids: np.ndarray

    @property
    def n_models(self) -> int:
        """Number of models."""
        return self.theta.shape[0]

    @property
    def n_items(self) -> int:
        """Number of items."""
        return self.slope.shape[0]

    @property
    def dims(self) -> int:
        """Number of latent dimensions."""
        return self.theta.shape[1]

    def blocks(self) -> Iterator[tuple[slice, np.ndarray]]:
        """Probabilities of a right answer, a block of items at a time.

        Yields:
            The items of the block and their models x items probabilities (float32, at most about
            a million), from `irtjax.model.response.probability`.
        """
        width = max(_CELLS_PER_BLOCK // max(self.n_models, 1), 1)
        for start in range(0, self.n_items, width):
            block = slice(start, min(start + width, self.n_items))
            yield block, self._block_probability(block)

    def cell_probability(self, cells: Cells) -> np.ndarray:
        """True probability of a right answer in each cell: what the best possible model predicts.

        Args:
            cells: sorted by item, as `ResponseMatrix.cells` and `holdout` give them.

        Returns:
            float32, one a cell.
        """
        probability = np.empty(len(cells), np.float32)
        for block, matrix in self.blocks():
            low, high = np.searchsorted(cells.item_index, (block.start, block.stop))
            inside = slice(low, high)
            probability[inside] = matrix[
                cells.model_index[inside], cells.item_index[inside] - block.start
            ]
        return probability

    def save(self, path: str | PathLike[str]) -> None:
        """Write the truth to an NPZ file, one array a field, names as in the attributes."""
        arrays = {
            name: value.astype(str) if value.dtype == object else value
            for name, value in self._fields().items()
            if value is not None
        }
        with open(path, "wb") as file:
            np.savez_compressed(file, allow_pickle=False, **arrays)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> "Truth":
        """Read what `save` wrote.

        Raises:
            InputError: there is no such file, or it is not one of these.
        """
        try:
            file = np.load(path, allow_pickle=False)
        except FileNotFoundError:
            raise InputError(f"{path} does not exist") from None
        except (ValueError, EOFError, zipfile.BadZipFile):
            raise InputError(f"{path} is not an NPZ file") from None
        if not isinstance(file, np.lib.npyio.NpzFile):
            raise InputError(f"{path} is not an NPZ file")
        with file as arrays:
            names = [field.name for field in dataclasses.fields(cls)]
            absent = [name for name in names if name not in arrays and name != _OPTIONAL]
            if absent:
                raise InputError(
                    f"{path} is not a truth written by irtjax: it has no {', '.join(absent)}"
                )
            fields: dict[str, Any] = {name: arrays.get(name) for name in names}
            return cls(**fields)

    def _fields(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    def _block_probability(self, block: slice) -> np.ndarray:
        effect = (
            np.float32(0)
            if self.effects is None
            else self.effects[:, self.item_benchmark[block]].astype(np.float32)
        )
        arrays = (self.slope, self.intercept, self.guessing, self.feasibility)
        of_block = (values[block].astype(np.float32) for values in arrays)
        return np.asarray(_probability(self.theta.astype(np.float32), *of_block, effect))

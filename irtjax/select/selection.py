"""A selection of items: the table of them, and what other tools take."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from irtjax.checks import check_path, counted
from irtjax.errors import InputError
from irtjax.io.lm_eval_samples import samples_of, write_samples
from irtjax.io.write import atomic_path, write_table
from irtjax.select.precision import size_for

__all__ = ["SUFFIXES", "Selection"]

# What a selection is written as, by the file's name.
SUFFIXES = (".csv", ".json", ".txt")


@dataclasses.dataclass(frozen=True, eq=False)
class Selection:
    """Selected items, made by `irtjax.select_items`.

    Attributes:
        items: a row an item, in the order of selection: `order` (1, 2, ...), `item_id`, the item
            metadata, `gain` (of the criterion when it was taken), `weight` (its share in a score
            that stands for all items), `information` (mean Fisher information over the target),
            `*_se` and `*_reliability` (expected with the items so far), `flags`.
        report: criterion, target and all other settings, and what was left out.
    """

    items: pd.DataFrame
    report: dict[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def item_ids(self) -> np.ndarray:
        """Ids in the order of selection."""
        return self.items["item_id"].to_numpy(str)

    def curve(self) -> pd.DataFrame:
        """Expected standard errors and reliabilities against the number of items, from 1."""
        names = [name for name in self.items if str(name).endswith(("_se", "_reliability"))]
        return self.items[names].assign(n_items=self.items["order"])[["n_items", *names]]

    def size_for(self, reliability: float) -> int | None:
        """The smallest number of items of this order that reaches a reliability in every dim.

        None where none of them does.

        Raises:
            InputError: no number from 0 to 1.
        """
        return size_for(self.items, reliability)

    def samples(self) -> dict[str, list[int]]:
        """What lm-evaluation-harness takes as `--samples`: document numbers by task.

        Raises:
            InputError: ids that are not `task/number`.
        """
        benchmark = self.items.get("benchmark")
        tasks = None if benchmark is None else benchmark.tolist()
        return samples_of(self.item_ids.tolist(), tasks)

    def save(self, path: str | Path) -> None:
        """Write the table (.csv), the harness' samples (.json) or the ids, one a line (.txt).

        Raises:
            InputError: another suffix, or the file cannot be written.
        """
        path = check_path("the file to save to", path)
        if path.suffix == ".csv":
            write_table(self.items, path)
        elif path.suffix == ".json":
            write_samples(self.samples(), path)
        elif path.suffix == ".txt":
            with atomic_path(path) as temporary:
                temporary.write_text("".join(f"{name}\n" for name in self.item_ids), "utf-8")
        else:
            raise InputError(f"{path} must end with {', '.join(SUFFIXES)}")

    def __repr__(self) -> str:
        return f"Selection({counted(len(self.items), 'item')}, {self.report.get('criterion')})"

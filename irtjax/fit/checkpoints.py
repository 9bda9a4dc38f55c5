"""Checkpoints of a fit in progress, and the fingerprint that ties them to their data."""

import dataclasses
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from irtjax.checkpoint import (
    complete_steps,
    latest_step,
    read_metadata,
    restore_arrays,
    save_arrays,
)
from irtjax.checks import check_path, check_whole, shown
from irtjax.data.responses import ResponseMatrix
from irtjax.errors import InputError
from irtjax.fit.driver import Progress, Trace

__all__ = ["Checkpoints", "Saver", "fingerprint"]


@dataclasses.dataclass(frozen=True)
class Checkpoints:
    """Where and how often to save the state of a fit.

    Attributes:
        folder: holds a sub-folder a saved step.
        every: steps between saves, rounded up to the host's looks; 0 saves nothing.
        resume: start from the newest saved step (which must be of the same fit).
    """

    folder: Path
    every: int = 0
    resume: bool = False

    def __post_init__(self) -> None:
        folder = check_path("the folder of the checkpoints", self.folder)
        object.__setattr__(self, "folder", folder)
        check_whole("every", self.every, 0)

    def save_if_due(
        self, state: Any, progress: Progress, last_saved: int, fingerprint: dict[str, Any]
    ) -> int:
        """Save the state when due; returns the step of the newest save."""
        is_due = self.every > 0 and progress.n_steps - last_saved >= self.every
        if not is_due or progress.status is not None:
            return last_saved
        metadata = {"fingerprint": fingerprint, "trace": dataclasses.asdict(progress.trace)}
        save_arrays(self.folder, progress.n_steps, state, metadata)
        return progress.n_steps

    def restore(self, template: Any, fingerprint: dict[str, Any]) -> tuple[Any, Progress]:
        """The newest state and its progress.

        Raises:
            InputError: nothing saved, or saved by another fit; names what differs.
        """
        step = latest_step(self.folder)
        if step is None:
            raise InputError(
                f"nothing to resume in {self.folder}: no state was saved there to its end; fit "
                "with --checkpoint-every to have some, or start anew with --force"
            )
        remedy = "start anew with --force"
        earlier = complete_steps(self.folder)[:-1]
        if earlier:
            remedy = f"remove that folder to go on from step {earlier[-1]}, or {remedy}"
        metadata = read_metadata(self.folder, step, remedy=remedy)
        _check_same(metadata["fingerprint"], fingerprint, self.folder)
        trace = Trace(**{name: tuple(values) for name, values in metadata["trace"].items()})
        return restore_arrays(self.folder, step, template, remedy=remedy), Progress(trace)


class Saver:
    """Resumes from the checkpoints of a fit, and saves its state when due.

    Args:
        checkpoints: of the fit; None neither resumes nor saves.
        mark: what must agree for a checkpoint to be continued.
    """

    def __init__(self, checkpoints: Checkpoints | None, mark: dict[str, Any]) -> None:
        self.checkpoints = checkpoints
        self.mark = mark
        self.last_saved = 0

    def start(self, state: Any) -> tuple[Any, Progress]:
        """The state to go on from: the saved one when resuming, else the given one."""
        if self.checkpoints is None or not self.checkpoints.resume:
            return state, Progress()
        state, progress = self.checkpoints.restore(state, self.mark)
        self.last_saved = progress.n_steps
        return state, progress

    def look(
        self, on_look: Callable[[Progress], None] | None, state: Any, progress: Progress
    ) -> None:
        """After a look of the driver: save when due, and hand the progress on."""
        if self.checkpoints is not None:
            self.last_saved = self.checkpoints.save_if_due(
                state, progress, self.last_saved, self.mark
            )
        if on_look is not None:
            on_look(progress)


def _check_same(saved: dict[str, Any], now: dict[str, Any], folder: Path) -> None:
    for name, value in now.items():
        if saved.get(name) != value:
            raise InputError(
                f"checkpoint {folder} is of another fit: its {name}{_difference(saved, now, name)}"
                "; use the same data and settings, or --force to start anew"
            )


def _difference(saved: dict[str, Any], now: dict[str, Any], name: str) -> str:
    """What a part was and is; of a part that has parts itself, only of those that differ."""
    one, two = saved.get(name), now[name]
    if not (isinstance(one, dict) and isinstance(two, dict)):
        return f" is {shown(one)}, now {shown(two)}"
    return ": " + ", ".join(_differences(one, two))


def _differences(one: dict[str, Any], two: dict[str, Any]) -> list[str]:
    """Each of the innermost parts that differ, by its path: `network epochs is 25, now 24`."""
    found = []
    for key in (key for key in {**one, **two} if one.get(key) != two.get(key)):
        before, after = one.get(key), two.get(key)
        if isinstance(before, dict) and isinstance(after, dict):
            found += [f"{key} {each}" for each in _differences(before, after)]
        else:
            found.append(f"{key} is {shown(before)}, now {shown(after)}")
    return found


def fingerprint(
    data: ResponseMatrix, settings: dict[str, Any], group: np.ndarray | None = None
) -> dict[str, Any]:
    """What must agree for a checkpoint to be continued: the data (by hash) and the settings.

    The data are the ids, the responses with their weights, and the group of each item.
    """
    digest = hashlib.sha256()
    for ids in (data.model_ids, data.item_ids):
        digest.update("\x00".join(ids).encode())
        digest.update(b"\x01")
    cells = data.sparse
    arrays = [data.dense, data.dense_weight, group]
    if cells is not None:
        arrays += [cells.model_index, cells.item_index, cells.response, cells.weight]
    for array in arrays:
        if array is not None:
            digest.update(np.ascontiguousarray(array).data)
    return {"data": digest.hexdigest()[:16]} | settings

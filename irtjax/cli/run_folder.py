"""The folder of a run: refused, replaced or continued, and never left half-written."""

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from irtjax.errors import InputError

if TYPE_CHECKING:
    from irtjax.fit.checkpoints import Checkpoints

__all__ = ["RunFolder", "check_can_be_made", "files_of_run"]

# `FitResult.load` asks for the mark: it says that a run is finished, so it is removed first and
# written last.
_MARK = "fit.json"
_FILES = ("items.csv", "models.csv", "responses.npz")
# Of networks, of links, of updates.
_SOMETIMES = ("loss.png", "link.csv", "moved_models.csv", "moved_items.csv")
_CHECKPOINT = "checkpoint"
_CHECKPOINTS = ("steps", "result")


class RunFolder:
    """Where a fit goes.

    Args:
        path: the folder.
        force: an earlier run in it may be replaced.
        resume: an unfinished run in it is continued.

    Raises:
        InputError: it exists (without `force` or `resume`), it is not a run's, there is nothing
            to resume, it cannot be made. Nothing is written yet.
    """

    def __init__(self, path: Path, *, force: bool = False, resume: bool = False) -> None:
        self.path = path
        self._must_clear = force
        if force and resume:
            raise InputError("--force starts anew and --resume goes on; pass one of them")
        if os.path.lexists(path):
            _check_existing(path, force, resume)
        elif resume:
            raise InputError(f"{path} does not exist, so there is nothing to resume")
        else:
            check_can_be_made(path)

    @property
    def steps(self) -> Path:
        """Where the states of the fit in progress are saved."""
        return self.path / _CHECKPOINT / "steps"

    def checkpoints(self, every: int, *, resume: bool) -> "Checkpoints | None":
        """Where a fit saves its state every so many steps, and goes on from; None for neither."""
        from irtjax.fit.checkpoints import Checkpoints

        return Checkpoints(self.steps, every, resume) if every or resume else None

    def start_saving(self) -> None:
        """Make way for the checkpoints of the new fit: an earlier run that may go, goes."""
        if self._must_clear and self.path.is_dir():
            _clear(self.path)
        self._must_clear = False

    def write(self, save: Callable[[Path], None]) -> None:
        """Write a finished run: assembled in a folder of its own and then moved into place.

        Args:
            save: writes all files into the folder it is given (`FitResult.save`).

        Raises:
            InputError: it cannot be written.
        """
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # A folder that exists may be a mount point, and its parent another file system.
            home = self.path if self.path.is_dir() else self.path.parent
            for leftover in _leftovers(self.path):
                shutil.rmtree(leftover)
            with tempfile.TemporaryDirectory(prefix=".run.", suffix=".tmp", dir=home) as temporary:
                new = Path(temporary) / "new"  # with the usual rights, unlike its parent
                save(new)
                if home is self.path:
                    self.start_saving()
                    _move_files(new, self.path)
                else:
                    new.rename(self.path)
        except OSError as error:
            raise InputError(f"cannot write {self.path}: {error.strerror or error}") from None


def files_of_run(path: Path) -> list[Path]:
    """The files by which a run is read again, beside its checkpoint."""
    return [path / name for name in (_MARK, *_FILES)]


def _check_existing(path: Path, force: bool, resume: bool) -> None:
    if not path.is_dir():
        raise InputError(f"{path} is not a folder; choose another --out")
    if not os.access(path, os.W_OK | os.X_OK):
        raise InputError(f"{path} cannot be written to; choose another --out")
    has_steps = _has_steps(path)
    if resume and not has_steps:
        raise InputError(
            f"nothing to resume in {path}: no state was saved there; fit with --checkpoint-every "
            "to have some, or start anew with --force"
        )
    if force and any(path.iterdir()) and not _is_run(path):
        raise InputError(
            f"{path} is not empty and not the folder of a run, so --force leaves it alone; choose "
            "another --out"
        )
    if not force and not resume:
        go_on = ", --resume to go on from its last saved state" if has_steps else ""
        raise InputError(
            f"{path} exists; pass --force to start anew{go_on}, or choose another --out"
        )


def check_can_be_made(path: Path) -> None:
    """Refuse a folder whose parents are no folders, or cannot be written to."""
    home = next(parent for parent in path.absolute().parents if os.path.lexists(parent))
    if not home.is_dir():
        raise InputError(f"cannot make {path}: {home} is not a folder")
    if not os.access(home, os.W_OK | os.X_OK):
        raise InputError(f"cannot make {path}: {home} cannot be written to")


def _has_steps(path: Path) -> bool:
    steps = path / _CHECKPOINT / "steps"
    return steps.is_dir() and any(entry.name.isdecimal() for entry in steps.iterdir())


def _is_run(path: Path) -> bool:
    """Whether a folder holds a finished run, or nothing but the parts of an unfinished one."""
    try:
        return "irtjax" in json.loads((path / _MARK).read_text(encoding="utf-8"))["versions"]
    except (OSError, ValueError, KeyError, TypeError):
        names = {entry.name for entry in path.iterdir() if entry not in _leftovers(path)}
        checkpoint = path / _CHECKPOINT
        inner = set(os.listdir(checkpoint)) if checkpoint.is_dir() else set()
        return names <= {_CHECKPOINT, *_FILES, *_SOMETIMES} and set() < inner <= set(_CHECKPOINTS)


def _leftovers(path: Path) -> list[Path]:
    """Folders that a run was assembled in when its process was killed."""
    return list(path.glob(".run.*.tmp"))


def _clear(path: Path) -> None:
    """Remove what a run writes, and nothing else."""
    for name in (_MARK, *_FILES, *_SOMETIMES):
        (path / name).unlink(missing_ok=True)
    for name in _CHECKPOINTS:
        shutil.rmtree(path / _CHECKPOINT / name, ignore_errors=True)
    with contextlib.suppress(OSError):  # not there, or something else lies in it
        (path / _CHECKPOINT).rmdir()


def _move_files(new: Path, path: Path) -> None:
    """Move a run's files over those of an earlier one, keeping its saved states."""
    (path / _MARK).unlink(missing_ok=True)
    result = path / _CHECKPOINT / "result"
    result.parent.mkdir(exist_ok=True)
    shutil.rmtree(result, ignore_errors=True)
    (new / _CHECKPOINT / "result").rename(result)
    for name in _FILES:
        (new / name).replace(path / name)
    for name in _SOMETIMES:
        (path / name).unlink(missing_ok=True)
        if (new / name).is_file():
            (new / name).replace(path / name)
    (new / _MARK).replace(path / _MARK)

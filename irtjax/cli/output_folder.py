"""The folder a command writes: checked before the work, and never left half-written."""

import json
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from irtjax.cli.run_folder import check_can_be_made
from irtjax.errors import InputError

__all__ = ["OutputFolder"]


class OutputFolder:
    """Where a command puts several files at once.

    Args:
        path: the folder.
        mark: name of the JSON file that is written last; under `files` it lists all of them.
        force: an earlier output of the same command may be replaced.

    Raises:
        InputError: it exists (without `force`), holds something else, cannot be made. Nothing is
            written yet.
    """

    def __init__(self, path: Path, mark: str, *, force: bool) -> None:
        self.path, self._mark = path, mark
        if not os.path.lexists(path):
            check_can_be_made(path)
            return
        if not path.is_dir():
            raise InputError(f"{path} is not a folder; choose another --out")
        if not os.access(path, os.W_OK | os.X_OK):
            raise InputError(f"{path} cannot be written to; choose another --out")
        if not force:
            raise InputError(f"{path} exists; pass --force to replace it, or choose another --out")
        if any(each not in self._leftovers() for each in path.iterdir()) and not self._files():
            raise InputError(
                f"{path} is not empty and has no {mark}, so --force leaves it alone; choose "
                "another --out"
            )

    def write(self, save: Callable[[Path], None]) -> None:
        """Write all files: into a folder of their own, from which they are moved into place.

        Args:
            save: writes the files, the mark among them, into the folder it is given.

        Raises:
            InputError: they cannot be written.
        """
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # A folder that exists may be a mount point, and its parent another file system.
            home = self.path if self.path.is_dir() else self.path.parent
            for leftover in self._leftovers():
                shutil.rmtree(leftover)
            with tempfile.TemporaryDirectory(prefix=".out.", suffix=".tmp", dir=home) as temporary:
                new = Path(temporary) / "new"  # with the usual rights, unlike its parent
                save(new)
                if home is self.path:
                    self._replace(new)
                else:
                    new.rename(self.path)
        except OSError as error:
            raise InputError(f"cannot write {self.path}: {error.strerror or error}") from None

    def _replace(self, new: Path) -> None:
        """Files of an earlier output go, and others stay; the mark goes first and comes last."""
        earlier = self._files()
        (self.path / self._mark).unlink(missing_ok=True)
        for name in earlier:
            (self.path / name).unlink(missing_ok=True)
        names = sorted(each.name for each in new.iterdir() if each.name != self._mark)
        for name in [*names, self._mark]:
            (new / name).replace(self.path / name)

    def _files(self) -> list[str]:
        """The files of the output that is there; none where it is not one."""
        try:
            told = json.loads((self.path / self._mark).read_text(encoding="utf-8"))["files"]
            names = [str(name) for name in told]
        except (OSError, ValueError, KeyError, TypeError):
            return []
        return [name for name in names if Path(name).name == name and name not in ("", "..")]

    def _leftovers(self) -> list[Path]:
        """Folders that an output was assembled in when its process was killed."""
        return list(self.path.glob(".out.*.tmp"))

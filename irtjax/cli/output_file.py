"""The file a command writes: checked before the work, so that nothing is done in vain."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from irtjax.errors import InputError

__all__ = ["beside", "check_output_file"]


def beside(path: Path, ending: str) -> Path:
    """A CSV file in the same folder, with `-ending` after the name."""
    return path.with_name(f"{path.stem}-{ending.replace('/', '_')}.csv")


def check_output_file(
    path: Path,
    suffixes: Sequence[str],
    *,
    force: bool,
    inputs: Iterable[str | Path] = (),
    others: Iterable[Path] = (),
) -> None:
    """Refuse a file that cannot or must not be written.

    Args:
        path: the file.
        suffixes: what its name may end with.
        force: it may replace an existing file.
        inputs: files that the command reads, which are not replaced even so.
        others: files that the command writes too.

    Raises:
        InputError: another suffix, an existing file or folder, a folder that is not there, an
            input, a file that is written already.
    """
    if not path.name.endswith(tuple(suffixes)):
        raise InputError(f"{path} must end with {' or '.join(suffixes)}")
    if path.is_dir():
        raise InputError(f"{path} is a folder; name a file")
    if os.path.lexists(path) and not force:
        raise InputError(f"{path} exists; pass --force to replace it, or choose another name")
    if any(path.resolve() == Path(each).resolve() for each in inputs):
        raise InputError(f"{path} is read by this command; choose another name")
    if any(path.resolve() == each.resolve() for each in others):
        raise InputError(f"{path} is named for two outputs; choose another name for one of them")
    if not path.parent.is_dir():
        raise InputError(f"cannot write {path}: there is no folder {path.parent}")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise InputError(f"cannot write {path}: {path.parent} cannot be written to")

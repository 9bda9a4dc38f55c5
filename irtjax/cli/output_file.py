"""The file a command writes: checked before the work, so that nothing is done in vain."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from irtjax.errors import InputError

__all__ = ["check_output_file"]


def check_output_file(
    path: Path, suffixes: Sequence[str], *, force: bool, inputs: Iterable[str | Path] = ()
) -> None:
    """Refuse a file that cannot or must not be written.

    Args:
        path: the file.
        suffixes: what its name may end with.
        force: it may replace an existing file.
        inputs: files that the command reads, which are not replaced even so.

    Raises:
        InputError: another suffix, an existing file or folder, a folder that is not there, an
            input.
    """
    if not path.name.endswith(tuple(suffixes)):
        raise InputError(f"{path} must end with {' or '.join(suffixes)}")
    if path.is_dir():
        raise InputError(f"{path} is a folder; name a file")
    if os.path.lexists(path) and not force:
        raise InputError(f"{path} exists; pass --force to replace it, or choose another name")
    if any(path.resolve() == Path(each).resolve() for each in inputs):
        raise InputError(f"{path} is read by this command; choose another name")
    if not path.parent.is_dir():
        raise InputError(f"cannot write {path}: there is no folder {path.parent}")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise InputError(f"cannot write {path}: {path.parent} cannot be written to")

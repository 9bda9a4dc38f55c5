"""Files: which ones are meant, whether they can be read, their hash, and one-line reasons."""

import contextlib
import glob
import hashlib
import io
import os
import stat
import tokenize
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple, TextIO, cast

import pyarrow as pa

from irtjax.checks import shown
from irtjax.errors import InputError

__all__ = [
    "Place",
    "check_readable",
    "expand_paths",
    "joined_places",
    "one_line_errors",
    "open_bytes",
    "open_text",
    "plain_suffix",
    "quoted",
    "reason_of",
    "sha256_of",
]

PathLike = str | os.PathLike[str]

_COMPRESSED = (".gz", ".bz2", ".zst", ".lz4")
_LONGEST_QUOTE = 80
_LONGEST_REASON = 200
_LIBRARY_ERRORS = (
    pa.ArrowException,
    ValueError,
    TypeError,
    KeyError,
    EOFError,
    OverflowError,
    # zipfile, on an encrypted archive; NotImplementedError, on a compression it does not know;
    # RecursionError, of deeply nested JSON.
    RuntimeError,
    MemoryError,
    tokenize.TokenError,  # NumPy, on a damaged header
    zipfile.BadZipFile,
    zlib.error,
)


class Place(NamedTuple):
    """Where something stands in a file: `Place("line", 812, "r.csv")`."""

    unit: str
    number: int
    path: str

    def __str__(self) -> str:
        return f"{self.unit} {self.number} of {self.path}"


def joined_places(first: Place, second: Place) -> str:
    """Two places in words.

    >>> joined_places(Place("line", 812, "r.csv"), Place("line", 977, "r.csv"))
    'lines 812 and 977 of r.csv'
    """
    if first.path == second.path and first.unit == second.unit:
        return f"{first.unit}s {first.number} and {second.number} of {first.path}"
    return f"{first} and {second}"


def quoted(value: object) -> str:
    """A value as the user wrote it, in quotes, on one line and not too long."""
    text = str(value)
    return repr(text if len(text) <= _LONGEST_QUOTE else text[:_LONGEST_QUOTE] + "...")


def expand_paths(paths: PathLike | Iterable[PathLike]) -> list[Path]:
    """The files and folders meant by paths and globs, each once, in the order given.

    Raises:
        InputError: nothing given, a path that does not exist, a glob that matches nothing.
    """
    given = _listed(paths)
    if not given:
        raise InputError("no response files given; name at least one file, glob or folder")
    found: dict[str, Path] = {}
    for each in given:
        text = os.path.expanduser(os.fspath(each))
        for name in _matches(text):
            found.setdefault(os.path.realpath(name), Path(name))
    return list(found.values())


def _listed(paths: Any) -> list[Any]:
    if isinstance(paths, str | os.PathLike):
        return [paths]
    if not isinstance(paths, Iterable) or hasattr(paths, "columns") or hasattr(paths, "dtype"):
        raise InputError(
            f"responses are read from a path or several, not from {type(paths).__name__}; for data "
            "in memory there is ResponseMatrix.from_dense"
        )
    given = list(paths)
    wrong = [each for each in given if not isinstance(each, str | os.PathLike)]
    if wrong:
        raise InputError(f"each of the paths must be a path, not {shown(wrong[0])}")
    return given


def _matches(text: str) -> list[str]:
    if not text:
        raise InputError("an empty path was given; name a file, glob or folder")
    if os.path.lexists(text):
        return [text]
    if not glob.has_magic(text):
        raise InputError(f"{text} does not exist")
    names = sorted(glob.glob(text, recursive=True))
    if not names:
        raise InputError(f"no file matches {text}")
    return names


def check_readable(path: Path) -> None:
    """Refuse what is not a readable, non-empty, regular file."""
    with one_line_errors(path):
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            raise InputError(f"{path} is a folder, not a file; name the files or a glob in it")
        if not stat.S_ISREG(status.st_mode):
            raise InputError(
                f"{path} is not a regular file; write it to one first (it is read more than once)"
            )
        if status.st_size == 0:
            raise InputError(f"{path} is empty")
        with open(path, "rb"):
            pass


def sha256_of(path: PathLike) -> str:
    """SHA-256 of a file's bytes, in hexadecimal.

    >>> import tempfile
    >>> from pathlib import Path
    >>> file = Path(tempfile.mkdtemp()) / "abc.txt"
    >>> _ = file.write_bytes(b"abc")
    >>> sha256_of(file)[:16]
    'ba7816bf8f01cfea'
    """
    with one_line_errors(path), open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def plain_suffix(path: Path) -> str:
    """The suffix in lower case, without that of a compression: `.csv` of `R.CSV.gz`."""
    name = path.name.lower()
    for suffix in _COMPRESSED:
        name = name.removesuffix(suffix)
    return Path(name).suffix


def open_bytes(path: Path) -> IO[bytes]:
    """The bytes of a file, unpacked when its suffix says that it is compressed."""
    stream = pa.input_stream(str(path), compression="detect")
    return cast(IO[bytes], io.BufferedReader(cast(io.RawIOBase, stream), 1 << 20))


def open_text(path: Path) -> TextIO:
    """The UTF-8 text of a file, without byte-order mark and with its line ends untouched."""
    return io.TextIOWrapper(open_bytes(path), encoding="utf-8-sig", newline="")


@contextlib.contextmanager
def one_line_errors(path: PathLike, doing: str = "read") -> Iterator[None]:
    """Turn whatever a library raises on a file into one line of `InputError`."""
    try:
        yield
    except InputError:
        raise
    except UnicodeDecodeError:
        raise InputError(_not_utf8(Path(path))) from None
    except OSError as error:
        reason = error.strerror or reason_of(error)
        raise InputError(f"cannot {doing} {os.fspath(path)}: {reason}") from None
    except _LIBRARY_ERRORS as error:
        raise InputError(f"cannot {doing} {os.fspath(path)}: {reason_of(error)}") from None


def reason_of(error: BaseException) -> str:
    """A library's reason on one line."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= _LONGEST_REASON else text[:_LONGEST_REASON] + "..."


def _not_utf8(path: Path) -> str:
    """Say which line of a file is not UTF-8."""
    remedy = "save it as UTF-8"
    with open_bytes(path) as stream:
        head = stream.read(4)
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return f"{path} is UTF-16, not UTF-8; {remedy}"
    with open_bytes(path) as stream:
        for number, line in enumerate(stream, 1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as error:
                byte = f"0x{line[error.start]:02x}"
                return f"line {number} of {path} is not UTF-8 (byte {byte}); {remedy}"
    return f"{path} is not UTF-8; {remedy}"

"""What the terminal sees: results on stdout, one line a warning or error on stderr."""

import contextlib
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any, TextIO

from rich.console import Console
from rich.table import Table

from irtjax.errors import IrtjaxWarning

__all__ = [
    "console",
    "lines",
    "natural_width",
    "one_line",
    "print_error",
    "show_table",
    "shown_warnings",
]

_WIDTH = 100  # of output that goes to a file or another program
_LABEL_WIDTH = 10
_WIDEST = 1000


def console(*, quiet: bool = False) -> Console:
    """The console of results; prints nothing when quiet."""
    stdout: Any = _Lasting(sys.stdout)
    output = Console(file=stdout, highlight=False, markup=False, emoji=False, quiet=quiet)
    if not output.is_terminal:
        output.width = _WIDTH
    return output


class _Lasting:
    """Standard output that goes on when nobody reads it (`| head`) or its disk is full.

    What a command computes and writes to files must not be lost for the sake of what it prints.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._is_gone = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        self._attempt(lambda: self._stream.write(text))
        return len(text)

    def flush(self) -> None:
        self._attempt(self._stream.flush)

    def _attempt(self, action: Callable[[], Any]) -> None:
        if self._is_gone:
            return
        try:
            action()
        except OSError as error:
            self._is_gone = True
            if not isinstance(error, BrokenPipeError):
                sys.stderr.write(f"warning: cannot print the results: {error.strerror}\n")
            # What is still buffered would fail again when the interpreter ends.
            with contextlib.suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())


def lines(output: Console, label: str, *texts: str) -> None:
    """Print a label with one or more lines beside it; long ones are left to the terminal."""
    for k, text in enumerate(texts):
        output.print(f"{label if k == 0 else '':{_LABEL_WIDTH}}{text}", soft_wrap=True)


def show_table(output: Console, title: str, table: Table) -> None:
    """Print a table under its title, after an empty line."""
    output.print()
    output.print(title, style="bold", soft_wrap=True)
    # The terminal wraps what is too wide for it; rich would cut the numbers.
    output.width = max(output.width, natural_width(output, table))
    output.print(table, crop=False)


def natural_width(output: Console, table: Table) -> int:
    """The width of a table where nothing is cut."""
    return output.measure(table, options=output.options.update(max_width=_WIDEST)).maximum


def one_line(text: str) -> str:
    """A text on one line."""
    return " ".join(text.split())


def print_error(text: str) -> None:
    """The one line of an error."""
    sys.stderr.write(f"irtjax: error: {one_line(text)}\n")


@contextlib.contextmanager
def shown_warnings() -> Iterator[None]:
    """Show each warning once, as one line on stderr, in place of Python's two with the code."""
    seen: set[str] = set()

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        text = one_line(str(message))
        if text not in seen:
            seen.add(text)
            sys.stderr.write(f"warning: {text}\n")

    with warnings.catch_warnings():
        warnings.simplefilter("always", IrtjaxWarning)
        # Another process may be writing the entry: JAX then compiles anew, and says so.
        warnings.filterwarnings("ignore", ".*persistent compilation cache", UserWarning)
        warnings.showwarning = show
        yield

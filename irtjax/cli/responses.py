"""Reading what a fit learns from and what it is tested on, and saying what was read."""

import dataclasses
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.console import Console

from irtjax.checks import counted
from irtjax.cli.console import lines
from irtjax.cli.reader_options import ReaderOptions
from irtjax.errors import InputError

if TYPE_CHECKING:
    from irtjax.data.cells import Cells
    from irtjax.data.responses import ResponseMatrix
    from irtjax.fit.result import FitResult

__all__ = ["Parts", "read_parts", "tested"]

_SHOWN_FILES = 3


@dataclasses.dataclass(frozen=True)
class Parts:
    """What a fit learns from and what it is tested on.

    Attributes:
        train: the responses to fit.
        cells: the held-out ones, None without.
        chosen: how they were chosen: `holdout 0.1`, or the test file; empty without.
        test_files: path and SHA-256 of the test files.
    """

    train: "ResponseMatrix"
    cells: "Cells | None" = None
    chosen: str = ""
    test_files: tuple[tuple[str, str], ...] = ()


def read_parts(
    paths: Sequence[str],
    reader: ReaderOptions,
    *,
    holdout: float | None,
    test: str | None,
    seed: int,
    output: Console,
) -> Parts:
    """Read the responses, and hold some out or read the test file; say what was read.

    Args:
        paths: files, globs, folders.
        reader: how to read them.
        holdout: share of the responses to hold out.
        test: file of test responses, in place of it.
        seed: of the choice of what is held out.
        output: where to say it.

    Raises:
        InputError: files or settings that cannot be used.
    """
    from irtjax.data.splits import holdout as hold_out
    from irtjax.evaluate.cells import cells_of_test
    from irtjax.io import read_responses

    if holdout is not None and test is not None:
        raise InputError("--holdout and --test exclude each other; pass one of them")
    if holdout is not None and not 0 < holdout < 1:
        raise InputError(f"--holdout is a share between 0 and 1, not {holdout:g}")
    started = time.perf_counter()
    data = read_responses(paths, **reader.arguments())
    parts = Parts(data)
    if holdout is not None:
        train, cells = hold_out(data, holdout, seed=seed)
        parts = Parts(train, cells, f"holdout {holdout:g}")
    elif test is not None:
        found = read_responses(test, **reader.arguments())
        parts = Parts(data, cells_of_test(data, found), test, found.provenance.files)
    _describe(data, output, seconds=time.perf_counter() - started)
    if parts.cells is not None:
        lines(output, "Held out", f"{counted(len(parts.cells), 'response')} ({parts.chosen})")
    return parts


def tested(fit: "FitResult", parts: Parts) -> "FitResult":
    """The fit with its held-out part and, in the report, the metrics and the test files."""
    from irtjax.evaluate.heldout import with_heldout

    assert parts.cells is not None
    fit = with_heldout(fit, parts.cells, chosen=parts.chosen)
    files = [{"path": path, "sha256": digest} for path, digest in parts.test_files]
    return dataclasses.replace(fit, report=fit.report | {"test_inputs": files})


def _describe(data: "ResponseMatrix", output: Console, *, seconds: float) -> None:
    """Say how large the data are and where they came from."""
    benchmarks = ""
    if "benchmark" in data.item_metadata:
        count = data.item_metadata["benchmark"].nunique()
        benchmarks = f" in {counted(count, 'benchmark')}"
    weights = data.sum_of_weights
    total = "" if weights is None else f", weights {weights:,.6g} in all"
    lines(
        output,
        "Data",
        f"{counted(data.n_models, 'model')} x {counted(data.n_items, 'item')}{benchmarks}: "
        f"{counted(data.n_responses, 'response')}, {data.density:.1%} of all cells{total}",
        f"{_files(data)}, read in {seconds:.1f} s",
        *_special_columns(data),
    )


def _special_columns(data: "ResponseMatrix") -> Iterator[str]:
    """Columns that were not taken for metadata, and what they were taken for."""
    choices = data.provenance.choices
    if "weights" in choices:
        source = choices["weights"]
        text = source if isinstance(source, str) else " and ".join(source)
        yield f"{text}: how many answers each response stands for"
    not_kept = choices.get("columns_not_kept", {})
    parts = [not_kept] if isinstance(not_kept, dict) else not_kept
    for name, reason in {name: why for part in parts for name, why in part.items()}.items():
        yield f"column {name!r} is not kept: {reason}"


def _files(data: "ResponseMatrix") -> str:
    paths = [path for path, _ in data.provenance.files]
    shown = ", ".join(paths[:_SHOWN_FILES])
    if len(paths) > _SHOWN_FILES:
        shown += f" and {len(paths) - _SHOWN_FILES:,} more files"
    formats = data.provenance.choices.get("format", "")
    return f"{shown} ({formats if isinstance(formats, str) else ', '.join(formats)})"

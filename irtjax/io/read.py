"""`read_responses`: any supported file or folder to a `ResponseMatrix`."""

import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from irtjax.data.responses import Provenance, ResponseMatrix
from irtjax.errors import IrtjaxWarning
from irtjax.io.combine import combine
from irtjax.io.detect import format_of
from irtjax.io.files import PathLike, expand_paths, sha256_of
from irtjax.io.lm_eval import read_lm_eval
from irtjax.io.long import read_long
from irtjax.io.npz import read_npz
from irtjax.io.options import Options, Part
from irtjax.io.pyirt import read_pyirt
from irtjax.io.values import FractionalPolicy
from irtjax.io.wide import read_wide

__all__ = ["read_responses"]

# Long tables and lm-evaluation-harness files are read together: a task has one metric.
_READERS: dict[str, Callable[[Path, Options], Part]] = {
    "wide": read_wide,
    "npz": read_npz,
    "pyirt": read_pyirt,
}


def read_responses(
    paths: PathLike | Iterable[PathLike],
    *,
    format: str | None = None,
    model_column: str | None = None,
    item_column: str | None = None,
    response_column: str | None = None,
    duplicates: str = "error",
    fractional: str = "error",
    items_in_rows: bool = False,
    no_header: bool = False,
    id_column: str | None = None,
    metric: str | Sequence[str] | None = None,
    filter: str | Sequence[str] | None = None,
    runs: str = "newest",
) -> ResponseMatrix:
    """Read which model answered which item how.

    A response is 0, 1, true or false; it is missing where it is empty, NaN, null, NA or not
    there (in NumPy files: -1). Anything else is refused with its place. Ids are the strings of
    the input, in order of first appearance. A row without a response still names its model and
    item, but repeats nothing.

    Args:
        paths: a file, a glob, a folder of lm-evaluation-harness outputs, or several of them.
        format: `long`, `wide`, `npz`, `pyirt` or `lm-eval`; found from suffix and content without.
        model_column: the column of the model in a long table.
        item_column: the column of the item in a long table.
        response_column: the column of the response in a long table.
        duplicates: of several responses to an item by a model, `error`, `first`, `last`, `mean`
            (k-of-n with weight n) or `any` (right once is right).
        fractional: of a response between 0 and 1, `error`, `threshold=T` (T or more is right) or
            `likelihood` (kept).
        items_in_rows: the rows of a wide table or matrix are items.
        no_header: a wide table without header and ids.
        id_column: the column of a wide table that holds the ids; the first without.
        metric: the metric where a task has several; several names in order of preference,
            separated by commas, for several tasks.
        filter: the filter where a task has several, likewise.
        runs: of several runs of a task by a model, the `newest` or `all` as trials.

    Returns:
        The matrix; its provenance names files, hashes, choices and warnings.

    Raises:
        InputError: anything that cannot be used, on one line.

    >>> import tempfile
    >>> from pathlib import Path
    >>> file = Path(tempfile.mkdtemp()) / "r.csv"
    >>> _ = file.write_text("model_id,item_id,response\\ngpt,q1,1\\ngpt,q2,\\nllama,q1,0\\n")
    >>> read_responses(file)
    ResponseMatrix(2 models x 2 items, 2 responses, dense)
    """
    options = Options(
        format=format,
        model_column=model_column,
        item_column=item_column,
        response_column=response_column,
        duplicates=duplicates,
        fractional=fractional,
        items_in_rows=items_in_rows,
        no_header=no_header,
        id_column=id_column,
        metric=metric,
        filter=filter,
        runs=runs,
    )
    options.check()
    found = expand_paths(paths)
    formats = [format_of(path, options) for path in found]
    options.check_used(formats)
    parts, files = _read_parts(found, formats, options)
    matrix = combine(
        [part.found for part in parts],
        duplicates=duplicates,
        fractional=FractionalPolicy.parse(fractional),
    )
    notes = [note for part in parts for note in part.notes] + list(matrix.provenance.warnings)
    for note in notes:
        warnings.warn(note, IrtjaxWarning, stacklevel=2)
    choices = _merged_choices([part.choices for part in parts], matrix.provenance.choices)
    return matrix.replace(
        provenance=Provenance(
            tuple((str(file), sha256_of(file)) for file in files),
            {"format": _one_or_all(formats), **choices},
            tuple(notes),
        )
    )


def _read_parts(
    paths: Sequence[Path], formats: Sequence[str], options: Options
) -> tuple[list[Part], list[Path]]:
    """What each file holds, and the files read, in input order."""
    long = [path for path, each in zip(paths, formats, strict=True) if each == "long"]
    harness = [path for path, each in zip(paths, formats, strict=True) if each == "lm-eval"]
    read: dict[Path, tuple[Part, list[Path]]] = {}
    for path, part in zip(long, read_long(long, options) if long else [], strict=True):
        read[path] = part, [path]
    if harness:
        read[harness[0]] = read_lm_eval(harness, options)
    for path, each in zip(paths, formats, strict=True):
        if each in _READERS:
            read[path] = _READERS[each](path, options), [path]
    found = [read[path] for path in paths if path in read]
    return [part for part, _ in found], [file for _, files in found for file in files]


def _merged_choices(parts: Sequence[dict[str, Any]], last: Any) -> dict[str, Any]:
    """The choices of all files: one value where they agree, a list where they do not."""
    merged: dict[str, list[Any]] = {}
    for part in [*parts, dict(last)]:
        for name, value in part.items():
            values = merged.setdefault(name, [])
            if value not in values:
                values.append(value)
    return {name: _one_or_all(values) for name, values in merged.items()}


def _one_or_all(values: Sequence[Any]) -> Any:
    distinct = [value for k, value in enumerate(values) if value not in values[:k]]
    return distinct[0] if len(distinct) == 1 else distinct

"""CSV files: the header, the columns as they are written, and the line of a row."""

import csv
import functools
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.csv

from irtjax.errors import InputError
from irtjax.io.columns import check_names
from irtjax.io.files import Place, one_line_errors, open_bytes, open_text, plain_suffix, reason_of
from irtjax.io.table import Table

__all__ = ["CSV_SUFFIXES", "csv_header", "csv_rows", "read_csv_table"]

CSV_SUFFIXES = (".csv", ".tsv", ".tab", ".txt")
_BLOCK = 8 << 20  # bytes; 1 MiB blocks took a third longer
_LARGEST_BLOCK = 1 << 30
_LONGEST_CELL = 1 << 30  # the standard library stops at 128 KiB, shorter than some prompts
_BINARY_HEADS = {
    b"PAR1": "a Parquet file",
    b"PK\x03\x04": "a zip archive (a spreadsheet, perhaps)",
    b"\x93NUMPY": "a NumPy file",
    b"\x1f\x8b": "compressed with gzip (name it .csv.gz)",
}


def delimiter_of(path: Path) -> str:
    """The separator of a text table: a tab for `.tsv` and `.tab`, else a comma."""
    return "\t" if plain_suffix(path) in (".tsv", ".tab") else ","


def csv_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The rows of a CSV file with the line each starts on, blank lines left out.

    Raises:
        InputError: not UTF-8, binary, or a quote that never closes.
    """
    csv.field_size_limit(max(csv.field_size_limit(), _LONGEST_CELL))
    start = 1
    with one_line_errors(path), open_text(path) as stream:
        _refuse_binary(path)
        reader = csv.reader(stream, delimiter=delimiter_of(path), strict=True)
        while True:
            try:
                row = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                raise InputError(
                    f"cannot read {path}, the row that starts on line {start}: {reason_of(error)} "
                    "(is a quote left open?)"
                ) from None
            if row:
                yield start, row
            start = reader.line_num + 1


def csv_header(path: Path) -> list[str]:
    """The first row of a CSV file.

    Raises:
        InputError: nothing but blank lines, or what `csv_rows` refuses.
    """
    return _first_row(path)[1]


def _first_row(path: Path) -> tuple[int, list[str]]:
    for first in csv_rows(path):
        return first
    raise InputError(f"{path} is empty")


def read_csv_table(path: Path) -> Table:
    """All columns of a CSV file with a header as text, exactly as written.

    Raises:
        InputError: empty, header only, repeated names, ragged rows, not UTF-8.
    """
    line, names = _first_row(path)
    check_names(names, path)
    _refuse_header_only(path)
    has_quotes = _has_quotes(path)
    try:
        table = _parse(path, names, line - 1, has_quotes)
    except (pa.ArrowException, OSError, ValueError) as error:
        _explain_failure(path, len(names))
        raise InputError(f"cannot read {path}: {reason_of(error)}") from None
    if has_quotes:
        # Arrow takes a quote left open, or one too many, without an error, and with it the lines
        # up to the next quote. The strict reader does not; it costs 0.6 s a million rows.
        _explain_failure(path, len(names))
    return Table(path, names, table.num_rows, table.column, functools.partial(_line_of_row, path))


def _parse(path: Path, names: list[str], n_blank: int, has_quotes: bool) -> pa.Table:
    # Typed in advance: Arrow would infer numbers (the id "007" would become 7) and dates.
    text = pa.dictionary(pa.int32(), pa.string())
    block = _BLOCK
    while True:
        try:
            return pyarrow.csv.read_csv(
                str(path),
                read_options=pyarrow.csv.ReadOptions(
                    column_names=names,
                    skip_rows=n_blank,  # Arrow would take a blank first line for the header
                    skip_rows_after_names=1,
                    block_size=block,
                ),
                parse_options=pyarrow.csv.ParseOptions(
                    delimiter=delimiter_of(path), newlines_in_values=has_quotes
                ),
                convert_options=pyarrow.csv.ConvertOptions(
                    column_types=dict.fromkeys(names, text), strings_can_be_null=False
                ),
            )
        except pa.ArrowInvalid as error:
            if "block size" not in str(error) or block >= _LARGEST_BLOCK:
                raise
            block *= 8  # a row longer than the block


def _has_quotes(path: Path) -> bool:
    found = False
    with one_line_errors(path), open_bytes(path) as stream:
        while block := stream.read(1 << 20):
            if b"\x00" in block:
                raise InputError(f"{path} is binary, not text (it holds zero bytes)")
            found = found or b'"' in block
    return found


def _refuse_binary(path: Path) -> None:
    with open_bytes(path) as stream:
        head = stream.read(1 << 16)
    for magic, what in _BINARY_HEADS.items():
        if head.startswith(magic):
            raise InputError(f"{path} is {what}, not text")
    if head[:2] not in (b"\xff\xfe", b"\xfe\xff") and b"\x00" in head:
        raise InputError(f"{path} is binary, not text (it holds zero bytes)")


def _refuse_header_only(path: Path) -> None:
    rows = csv_rows(path)
    next(rows)
    if next(rows, None) is None:
        raise InputError(f"{path} has a header but no rows")


def _explain_failure(path: Path, n_columns: int) -> None:
    """Raise on the first row that is ragged or that the strict reader cannot read."""
    for line, row in csv_rows(path):
        if len(row) != n_columns:
            raise InputError(
                f"line {line} of {path} has {len(row)} values where the header has {n_columns}"
            )


def _line_of_row(path: Path, row: int) -> Place:
    try:
        for k, (line, _) in enumerate(csv_rows(path)):
            if k == row + 1:
                return Place("line", line, str(path))
    except InputError:
        pass
    return Place("row", row + 1, str(path))

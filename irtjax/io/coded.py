"""`Coded`: a column as integer codes into its distinct values (no Python loop over rows)."""

import dataclasses
from collections.abc import Sequence

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["Coded", "concat_coded", "encode", "encode_texts"]


@dataclasses.dataclass(frozen=True)
class Coded:
    """A column of n rows: int32 codes, -1 where missing, into distinct values.

    The values stand in order of first appearance.
    """

    codes: np.ndarray
    values: pa.Array

    def __len__(self) -> int:
        return len(self.codes)

    def take(self, index: np.ndarray) -> "Coded":
        """The rows of an index or mask; the values stay."""
        return Coded(self.codes[index], self.values)

    def texts(self) -> list[str]:
        """The distinct values as strings; numbers become their `str`."""
        return [_text(value) for value in self.values.to_pylist()]

    def as_text(self) -> "Coded":
        """The same column with strings for values, merged where the strings are equal."""
        if pa.types.is_string(self.values.type):
            return self
        return _merged(self.codes, self.texts())

    def text_at(self, row: int) -> str:
        """The value of a row as a string, empty where missing."""
        code = int(self.codes[row])
        return "" if code < 0 else _text(self.values[code].as_py())

    def blank_as_missing(self) -> "Coded":
        """Empty strings and NaN as missing."""
        values = self.values
        if pa.types.is_string(values.type):
            is_blank = pc.equal(values, "")
        elif pa.types.is_floating(values.type):
            is_blank = pc.is_nan(values)
        else:
            return self
        blank = np.flatnonzero(is_blank.to_numpy(zero_copy_only=False))
        if not len(blank):
            return self
        return Coded(np.where(np.isin(self.codes, blank), -1, self.codes).astype(np.int32), values)


def encode(column: pa.ChunkedArray) -> Coded:
    """Code a column of any flat Arrow type; nulls are -1.

    Raises:
        pyarrow.ArrowException: a nested type, or too much text for one column.
    """
    if column.num_chunks == 0:
        return Coded(np.zeros(0, np.int32), pa.array([], pa.string()))
    if pa.types.is_dictionary(column.type):
        column = column.unify_dictionaries()
    else:
        column = column.dictionary_encode()
    parts = [pc.fill_null(chunk.indices, -1).to_numpy() for chunk in column.chunks]
    codes = np.concatenate(parts).astype(np.int32, copy=False)
    values = column.chunk(column.num_chunks - 1).dictionary
    if _is_text_like(values.type):
        values = values.cast(pa.string())
    values.validate(full=True)  # Parquet and JSON may hold text that is not UTF-8
    return _in_order_of_appearance(codes, values)


def _is_text_like(kind: pa.DataType) -> bool:
    is_kind = pa.types
    return (
        is_kind.is_large_string(kind)
        or is_kind.is_string_view(kind)
        or is_kind.is_binary(kind)
        or is_kind.is_large_binary(kind)
        or is_kind.is_binary_view(kind)
        or is_kind.is_null(kind)
    )


def _in_order_of_appearance(codes: np.ndarray, values: pa.Array) -> Coded:
    """Drop unused values and sort the others by first use (a Parquet file may do neither)."""
    first = np.full(len(values) + 1, len(codes))
    first[codes[::-1]] = np.arange(len(codes))[::-1]  # the last assignment, the first row, stays
    first = first[:-1]
    if first.size == 0 or (first[-1] < len(codes) and np.all(first[1:] > first[:-1])):
        return Coded(codes, values)
    order = np.argsort(first)[: np.count_nonzero(first < len(codes))]
    table = np.full(len(values) + 1, -1, np.int32)
    table[order] = np.arange(len(order), dtype=np.int32)
    return Coded(table[codes], values.take(pa.array(order)))


def encode_texts(texts: Sequence[str]) -> Coded:
    """Code a sequence of strings."""
    return encode(pa.chunked_array([pa.array(texts, pa.string())]))


def concat_coded(parts: Sequence[Coded]) -> Coded:
    """The rows of several columns below each other; types that differ become strings."""
    if len(parts) == 1:
        return parts[0]
    kinds = {part.values.type for part in parts if len(part.values)}
    if len(kinds) != 1:
        parts = [part.as_text() for part in parts]
        kinds = {pa.string()}
    kind = kinds.pop()
    values = [part.values.cast(kind) for part in parts]
    merged = encode(pa.chunked_array(values, kind))
    codes, start = [], 0
    for part in parts:
        # One more entry at the end, so that the code -1 stays -1.
        table = np.append(merged.codes[start : start + len(part.values)], np.int32(-1))
        codes.append(table[part.codes])
        start += len(part.values)
    return Coded(np.concatenate(codes).astype(np.int32, copy=False), merged.values)


def _merged(codes: np.ndarray, texts: Sequence[str]) -> Coded:
    table, distinct = pd.factorize(np.array(texts, object))
    table = np.append(table, -1).astype(np.int32)
    return Coded(table[codes], pa.array(list(distinct), pa.string()))


def _text(value: object) -> str:
    return "" if value is None else str(value)

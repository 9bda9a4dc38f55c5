"""Readers and plain writers: one reader per source format, one writer per target format."""

from irtjax.io.answers import read_answers
from irtjax.io.files import sha256_of
from irtjax.io.item_ids import read_item_ids
from irtjax.io.pairs import read_pairs
from irtjax.io.read import read_responses
from irtjax.io.write import all_or_none, write_json, write_table
from irtjax.io.write_matrix import write_responses

__all__ = [
    "all_or_none",
    "read_answers",
    "read_item_ids",
    "read_pairs",
    "read_responses",
    "sha256_of",
    "write_json",
    "write_responses",
    "write_table",
]

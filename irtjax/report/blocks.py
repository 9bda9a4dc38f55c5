"""What a page is made of: sections of words, pictures and tables, each naming its CSV."""

import dataclasses
from collections.abc import Sequence

import pandas as pd

__all__ = ["Block", "Guide", "Picture", "Section", "TableView", "Words"]


@dataclasses.dataclass(frozen=True)
class Guide:
    """What a section is for, a sentence or two each.

    Attributes:
        shows: what is there.
        reading: how to read it, with its units.
        action: what a maintainer of the benchmark does next.
    """

    shows: str
    reading: str
    action: str


@dataclasses.dataclass(frozen=True)
class Words:
    """A paragraph of plain text; `is_warning` sets it apart."""

    text: str
    is_warning: bool = False


@dataclasses.dataclass(frozen=True)
class Picture:
    """A drawing.

    Attributes:
        svg: an `<svg>` element, of `irtjax.report.style.svg_of`.
        csv: names of the files that hold its numbers.
    """

    svg: str
    csv: Sequence[str] = ()


@dataclasses.dataclass(frozen=True, eq=False)
class TableView:
    """Rows of a table, with what the page says about them.

    Attributes:
        frame: the rows and columns to show; numbers are rounded for the page only.
        csv: name of the file that holds all of them.
        title: above the table.
        n_all: rows in the file.
        is_searchable: whether the page offers a box to filter by text.
        choices: columns that the page offers to filter by value.
        long_text: columns of long text, which wrap.
        verdicts: columns of `good`, `look` and `bad`, which the page colours.
        mixed: columns of numbers that measure different things, each with digits of its own.
        is_cards: whether a narrow screen shows each row as a card of its own, headed by its first
            column: for rows with long texts, which a narrow table could not hold.
    """

    frame: pd.DataFrame
    csv: str
    title: str
    n_all: int
    is_searchable: bool = False
    choices: Sequence[str] = ()
    long_text: Sequence[str] = ()
    verdicts: Sequence[str] = ()
    mixed: Sequence[str] = ()
    is_cards: bool = False


Block = Words | Picture | TableView


@dataclasses.dataclass(frozen=True)
class Section:
    """A part of the page under its heading; `name` is its anchor."""

    name: str
    title: str
    blocks: Sequence[Block]
    guide: Guide | None = None

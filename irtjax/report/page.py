"""`render_page`: one HTML file that needs no network, for a phone, a screen and paper."""

import functools
import importlib.resources
import json
import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import jinja2
import numpy as np
import pandas as pd
from jaxtyping import Float
from markupsafe import Markup, escape

from irtjax.report.blocks import Block, Picture, Section, TableView

__all__ = ["render_page", "shown_column", "shown_number"]

_DIGITS = 4  # log-losses of two fits differ in the fourth
_LONGEST_TEXT = 300
_LONGEST_WORD = 18
_SMALLEST_PLAIN, _LARGEST_PLAIN, _LARGEST_WHOLE = 1e-5, 1e6, 1e15
_ONE_SIZE = 1000.0  # times the lower quartile, that the largest number of a column may be


def render_page(title: str, subtitle: str, sections: Sequence[Section]) -> str:
    """The page as HTML.

    All text is escaped, ids and texts of items above all.

    Args:
        title: of the document.
        subtitle: below the title.
        sections: in their order.
    """
    return _template().render(
        title=title,
        subtitle=subtitle,
        sections=sections,
        labels=Markup(_labels(sections, lambda view: view.is_cards)),
        printed_labels=Markup(_labels(sections, _is_printed_as_cards)),
        style=Markup(_file("page.css")),
        script=Markup(_file("page.js")),
    )


@functools.cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    environment.filters |= {
        "kind": _kind,
        "picture": _picture,
        "heading": _heading,
        "cells": _cells,
        "values": _values,
        "number": "{:,}".format,
        "prose": _prose,
        "breaking": _breaking,
        "is_number": _is_number,
        "is_printed_as_cards": _is_printed_as_cards,
    }
    return environment.from_string(_file("page.html.j2"))


def _prose(text: str) -> Markup:
    """Text in which `...` is code."""
    return Markup(re.sub("`(.*?)`", r"<code>\1</code>", str(escape(text))))


def _breaking(text: str) -> Markup:
    """An id that may be broken after the signs that ids have in them."""
    return Markup(re.sub(r"([_/.:])(?=\w)", r"\1<wbr>", str(escape(text))))


def _is_printed_as_cards(view: TableView) -> bool:
    return view.is_cards and len(view.long_text) > 1


def _labels(sections: Sequence[Section], is_wanted: Callable[[TableView], bool]) -> str:
    """Style of the cells of cards: the heading of its column before each, its name in every row.

    Said once a table and not in every cell, of which a page has thousands.
    """
    rules = []
    for k, view in enumerate(_tables(sections)):
        for column, name in enumerate(view.frame.columns if is_wanted(view) else ()):
            heading = json.dumps(_heading(name)).replace("<", r"\3c ")
            rules.append(f"#t{k} tr > :nth-child({column + 1})::before {{ content: {heading}; }}")
    return "\n".join(rules)


def _file(name: str) -> str:
    return (importlib.resources.files("irtjax.report") / "web" / name).read_text("utf-8")


def _kind(block: Block) -> str:
    return type(block).__name__


def _picture(block: Picture) -> Markup:
    """Drawn by matplotlib, which escapes the text inside."""
    return Markup(block.svg)


def _heading(column: str) -> str:
    return str(column).replace("_", " ")


def _tables(sections: Sequence[Section]) -> list[TableView]:
    """The tables of the page in their order."""
    return [each for of in sections for each in of.blocks if isinstance(each, TableView)]


def _is_number(view: TableView, column: str) -> bool:
    kind = view.frame[column].dtype
    return pd.api.types.is_numeric_dtype(kind) and not pd.api.types.is_bool_dtype(kind)


def _cells(view: TableView) -> list[list[tuple[str, str, str]]]:
    """Each row as (text, what to sort by, class); without the second the text sorts."""
    columns = []
    for name in view.frame.columns:
        values = view.frame[name]
        if _is_number(view, name):
            numbers = values.astype(float).to_numpy()
            is_mixed = name in view.mixed
            texts = (
                [shown_number(each) for each in numbers.tolist()]
                if is_mixed
                else shown_column(numbers)
            )
            keys = [_sort_key(value) for value in numbers.tolist()]
            columns.append([(*pair, "n") for pair in zip(texts, keys, strict=True)])
        else:
            texts = [_text(v) for v in values.tolist()]
            style = "t" if name in view.long_text else "i" if _is_id(name, texts) else ""
            is_verdict = name in view.verdicts
            columns.append([(text, "", text if is_verdict else style) for text in texts])
    return [list(row) for row in zip(*columns, strict=True)]


def _is_id(name: Any, texts: Sequence[str]) -> bool:
    """Whether the texts of a column are ids, or names as long as those, that must be broken."""
    return str(name).endswith("_id") or max(map(len, texts), default=0) > _LONGEST_WORD


def _sort_key(value: float) -> str:
    return f"{value:.9g}" if math.isfinite(value) else ""


def shown_column(numbers: Float[np.ndarray, " rows"]) -> list[str]:
    """Numbers of one column to as many decimals, four digits for the largest, so that they line up.

    A column whose numbers are of too many sizes (of different things) has four digits in each.

    >>> shown_column(np.array([1.5, 0.25, np.nan])), shown_column(np.array([1e5 + 0.5, 0.25]))
    (['1.500', '0.250', ''], ['100,000', '0.2500'])
    """
    sizes = np.abs(numbers[np.isfinite(numbers) & (numbers != 0)])
    is_whole = bool(np.all(sizes == np.round(sizes)))  # also where there are none
    if is_whole or sizes.max() > _ONE_SIZE * np.percentile(sizes, 25, method="lower"):
        return [shown_number(value) for value in numbers.tolist()]
    decimals = _decimals(float(sizes.max()))
    return [shown_number(value, decimals) for value in numbers.tolist()]


def _decimals(size: float) -> int:
    """Four digits in all, at most four after the point; of small numbers two that are not 0."""
    magnitude = math.floor(math.log10(size))
    return min(max(0, _DIGITS - 1 - magnitude), _DIGITS) if size >= 0.01 else 1 - magnitude


def shown_number(value: float, decimals: int | None = None) -> str:
    """A number to four digits, or to so many decimals, with a proper minus; whole ones in full.

    Numbers that would be shown as 0, and very large ones, have two digits and a power of ten.

    >>> shown_number(34000.0), shown_number(0.123456), shown_number(1e68), shown_number(2.0, 2)
    ('34,000', '0.1235', '1.0e+68', '2.00')
    """
    if math.isnan(value):
        return ""
    size = abs(value)
    if math.isinf(value):
        text = "inf" if value > 0 else "-inf"
    elif size == 0:
        text = "0"
    elif size == round(size) and size < _LARGEST_WHOLE:
        text = f"{value:,.{decimals or 0}f}"
    else:
        places = _decimals(size) if decimals is None else decimals
        is_plain = max(_SMALLEST_PLAIN, 0.5 * 10**-places) <= size < _LARGEST_PLAIN
        text = f"{value:,.{places}f}" if is_plain else f"{value:.1e}"
    return text.replace("-", "\N{MINUS SIGN}")


def _text(value: Any) -> str:
    if value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    text = re.sub(r"\s+", " ", str(value)).strip()
    return text if len(text) <= _LONGEST_TEXT else text[:_LONGEST_TEXT] + "…"


def _values(view: TableView, column: str) -> list[str]:
    """What a column may be filtered by: its values, and the parts of those with semicolons."""
    parts = {part for value in view.frame[column] for part in _text(value).split(";") if part}
    return sorted(parts)

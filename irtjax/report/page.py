"""`render_page`: one HTML file that needs no network, for a phone, a screen and paper."""

import functools
import importlib.resources
import math
import re
from collections.abc import Sequence
from typing import Any

import jinja2
import numpy as np
import pandas as pd
from markupsafe import Markup

from irtjax.report.blocks import Block, Picture, Section, TableView

__all__ = ["render_page", "shown_number"]

_DIGITS = 4  # log-losses of two fits differ in the fourth
_LONGEST_TEXT = 300
_LARGEST_PLAIN = 1e6


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
        "is_number": _is_number,
    }
    return environment.from_string(_file("page.html.j2"))


def _file(name: str) -> str:
    return (importlib.resources.files("irtjax.report") / "web" / name).read_text("utf-8")


def _kind(block: Block) -> str:
    return type(block).__name__


def _picture(block: Picture) -> Markup:
    """Drawn by matplotlib, which escapes the text inside."""
    return Markup(block.svg)


def _heading(column: str) -> str:
    return column.replace("_", " ")


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
            columns.append([(shown_number(v), _sort_key(v), "n") for v in numbers.tolist()])
        else:
            style = "t" if name in view.long_text else "i" if str(name).endswith("_id") else ""
            texts = [_text(v) for v in values.tolist()]
            is_verdict = name in view.verdicts
            columns.append([(text, "", text if is_verdict else style) for text in texts])
    return [list(row) for row in zip(*columns, strict=True)]


def _sort_key(value: float) -> str:
    return f"{value:.9g}" if math.isfinite(value) else ""


def shown_number(value: float) -> str:
    """A number to four digits, whole ones in full, with a proper minus.

    >>> shown_number(34000.0), shown_number(0.123456), shown_number(float("nan"))
    ('34,000', '0.1235', '')
    """
    if math.isnan(value):
        return ""
    if math.isinf(value):
        text = "inf" if value > 0 else "-inf"
    elif value == round(value) and abs(value) < 1e15:
        text = f"{value:,.0f}"
    elif 0.001 <= abs(value) < _LARGEST_PLAIN:
        digits = max(0, _DIGITS - 1 - math.floor(math.log10(abs(value))))
        text = f"{value:,.{min(digits, _DIGITS)}f}"
    else:
        text = f"{value:.{_DIGITS - 1}e}"
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

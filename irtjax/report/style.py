"""How every figure looks, and how it becomes a file or a part of a page.

Figures are as wide as a phone shows without shrinking their text (4.6 inches, 10 point); the
colours are those of Okabe & Ito (2008), which colour-blind people can tell apart.
"""

import contextlib
import io
import re
import textwrap
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

__all__ = [
    "COLOURS",
    "DIVERGING",
    "MINUS",
    "FIGURE_SUFFIXES",
    "SEQUENTIAL",
    "WIDTH",
    "new_figure",
    "plain_log_ticks",
    "shortened",
    "styled",
    "svg_of",
    "titled",
    "write_figure",
]

WIDTH = 4.6  # inches
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
SEQUENTIAL = "viridis_r"
DIVERGING = "RdBu"  # red is negative
MINUS = "\N{MINUS SIGN}"
FIGURE_SUFFIXES = (".png", ".svg")

_TITLE_LETTERS = 46  # a line, at 11 point
_NOTE_LETTERS = 64  # a line, at 8.5 point
_TITLE_LINE, _NOTE_LINE, _EDGE = 0.19, 0.15, 0.06  # inches
_LONGEST_NAME = 26
_DPI = 200
_STYLE: Any = {
    "font.size": 10,
    "axes.labelsize": 10,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "legend.fontsize": 9,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#666666",
    "axes.labelcolor": "#222222",
    "xtick.color": "#444444",
    "ytick.color": "#444444",
    "text.color": "#111111",
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.6,
    "text.parse_math": False,  # an id may hold dollars
    "svg.fonttype": "none",  # text stays text: small, sharp, and it can be searched
    "svg.hashsalt": "irtjax",  # the same figure is the same file
}


@contextlib.contextmanager
def styled() -> Iterator[None]:
    """The style, for what is drawn or saved inside; also a decorator."""
    with matplotlib.rc_context(_STYLE), warnings.catch_warnings():
        # An id in a script that the font lacks: browsers have other fonts, PNGs show boxes.
        warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)
        yield


def new_figure(height: float) -> Figure:
    """An empty figure of the common width; the height is in inches."""
    return Figure(figsize=(WIDTH, height), layout="constrained")


def titled(figure: Figure, title: str, note: str = "") -> None:
    """Set what is seen as the title, and below it, smaller, what one should know to read it."""
    height = figure.get_figheight()
    lines, small = textwrap.wrap(title, _TITLE_LETTERS), textwrap.wrap(note, _NOTE_LETTERS)
    used = _EDGE + len(lines) * _TITLE_LINE
    figure.text(
        _EDGE / WIDTH, 1 - _EDGE / height, "\n".join(lines), size=11, weight="bold", va="top"
    )
    if small:
        place = (_EDGE / WIDTH, 1 - used / height)
        figure.text(*place, "\n".join(small), size=8.5, color="#555555", va="top")
    used += len(small) * _NOTE_LINE + _EDGE
    engine = figure.get_layout_engine()
    assert isinstance(engine, ConstrainedLayoutEngine)
    engine.set(rect=(0, 0, 1, 1 - used / height))


def plain_log_ticks(axis: Axis) -> None:
    """Label the powers of ten of a logarithmic axis in plain letters: 1000, 0.01, 1e-05."""
    axis.set_major_formatter(lambda value, _: f"{value:g}".replace("-", MINUS))
    axis.set_minor_formatter(lambda value, _: "")


def shortened(name: object, most: int = _LONGEST_NAME) -> str:
    """A name on one line of at most so many letters, its middle left out where it is longer.

    >>> shortened("meta-llama/Llama-3.1-405B-Instruct-FP8", 20)
    'meta-llam…struct-FP8'
    """
    text = " ".join("".join(c if c.isprintable() else " " for c in str(name)).split())
    if len(text) > most:
        text = text[: (most - 1) // 2] + "…" + text[len(text) - most // 2 :]
    # matplotlib leaves names that start with an underscore out of legends.
    return f" {text}" if text.startswith("_") else text


def write_figure(figure: Figure, path: Path, suffix: str) -> None:
    """Write a PNG or an SVG, by the suffix, which the path itself need not have."""
    form = suffix.lower().removeprefix(".")
    with styled():
        figure.savefig(path, format=form, dpi=_DPI, metadata=_metadata(form))


def svg_of(figure: Figure, prefix: str, description: str) -> str:
    """A figure as an SVG element to stand in a page beside others.

    Args:
        figure: the figure.
        prefix: of the ids inside, unique in the page.
        description: what it shows, for those who cannot see it.

    Returns:
        `<svg ...>...</svg>`, as wide as its place and never wider than drawn.
    """
    from markupsafe import escape

    buffer = io.StringIO()
    with styled():
        figure.savefig(buffer, format="svg", metadata=_metadata("svg"))
    text = buffer.getvalue()
    text = re.sub(r"<metadata>.*?</metadata>", "", text[text.index("<svg") :], flags=re.DOTALL)
    used = set(re.findall(r'(?:url\(#|href="#)([\w.-]+)', text))

    def renamed(match: re.Match[str]) -> str:
        return f' id="{prefix}-{match[1]}"' if match[1] in used else ""

    text = re.sub(r' id="([\w.-]+)"', renamed, text)
    text = re.sub(r"(url\(#|href=\"#)", rf"\g<1>{prefix}-", text)
    text = re.sub(r"\n\s*", "\n", text)
    label = f'<svg role="img" aria-label="{escape(description)}" '
    return text.replace("<svg ", label, 1).strip()


def _metadata(form: str) -> dict[str, None] | None:
    return {"Date": None} if form == "svg" else None

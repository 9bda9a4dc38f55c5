"""How every figure looks, and how it becomes a file or a part of a page.

Figures are as wide as a phone shows without shrinking their text (4.6 inches, 10 point); the
colours are those of Okabe & Ito (2008), which colour-blind people can tell apart.
"""

import contextlib
import io
import re
import textwrap
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from irtjax.errors import IrtjaxWarning
from irtjax.report.fonts import FIRST_FONT, escaped, fonts_for, letters_of, rewritten

__all__ = [
    "COLOURS",
    "DASHES",
    "DIVERGING",
    "MINUS",
    "FIGURE_SUFFIXES",
    "MARKERS",
    "SEQUENTIAL",
    "WIDTH",
    "new_figure",
    "plain_log_ticks",
    "shortened",
    "shortened_together",
    "styled",
    "svg_of",
    "titled",
    "write_figure",
]

WIDTH = 4.6  # inches
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
# Beside each colour, for print in grey.
DASHES: tuple[Any, ...] = ("-", (0, (6, 1.5)), (0, (2, 1)), "-.", (0, (4, 1, 1, 1, 1, 1)), ":")
MARKERS = ("o", "s", "^", "D", "v", "P")
SEQUENTIAL = "viridis_r"
DIVERGING = "RdBu"  # red is negative
MINUS = "\N{MINUS SIGN}"
FIGURE_SUFFIXES = (".png", ".svg")

_TITLE_LETTERS = 46  # a line, at 11 point
_NOTE_LETTERS = 64  # a line, at 8.5 point
_TITLE_LINE, _NOTE_LINE, _EDGE = 0.19, 0.15, 0.06  # inches
_LONGEST_NAME = 26
_DPI = 200
_MOST_NAMED = 8  # letters that a warning names
_AS_WIDE = "W"  # as a letter of the scripts that few fonts have
_STYLE: Any = {
    "font.family": "sans-serif",
    "font.sans-serif": [FIRST_FONT],
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
        # What is laid out before its fonts are chosen.
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


def shortened_together(names: Iterable[object], most: int = _LONGEST_NAME) -> list[str]:
    """Names as `shortened`; where that makes two of them one, without what all have in common.

    >>> shortened_together(["a-long-name-10-of-the-two", "a-long-name-15-of-the-two"], 10)
    ['…10…', '…15…']
    """
    whole = [str(name) for name in names]
    short = [shortened(name, most) for name in whole]
    if len(set(short)) == len(set(whole)):
        return short
    start = _in_common(whole)
    end = _in_common([name[start:][::-1] for name in whole])
    own = [name[start : len(name) - end] for name in whole]
    return [shortened("…" * (start > 0) + name + "…" * (end > 0), most) for name in own]


def _in_common(names: list[str]) -> int:
    """With how many letters all begin, up to the end of a word or number."""
    first, last = min(names), max(names)
    n = next((k for k, pair in enumerate(zip(first, last, strict=False)) if len(set(pair)) > 1), 0)
    return len(re.sub(r"[^\W_]+$", "", first[:n]))


def write_figure(figure: Figure, path: Path, suffix: str) -> None:
    """Write a PNG or an SVG, by the suffix, which the path itself need not have.

    Letters that no installed font has are drawn as their code points in a PNG, with a warning
    (`IrtjaxWarning`); in an SVG they stay text, for whoever looks at it to have the font.
    """
    form = suffix.lower().removeprefix(".")
    fonts, missing = fonts_for(letters_of(figure))
    if form == "svg":
        _save_svg(figure, path, fonts, missing)
        return
    if missing:
        named = " ".join(sorted(missing)[:_MOST_NAMED])
        named += " …" if len(missing) > _MOST_NAMED else ""
        warnings.warn(
            f"no installed font has {named}: drawn as code points (\\u6a21); install a font that "
            "has them, or write an SVG",
            IrtjaxWarning,
            stacklevel=2,
        )
    with rewritten(figure, lambda text: escaped(text, missing)), _fonts(fonts):
        figure.savefig(path, format=form, dpi=_DPI)


@contextlib.contextmanager
def _fonts(names: list[str]) -> Iterator[None]:
    with styled(), matplotlib.rc_context({"font.sans-serif": names}):
        yield


def _save_svg(figure: Figure, target: Any, fonts: list[str], missing: set[str]) -> None:
    """Save an SVG, room left for the letters that only its reader's fonts will show."""
    with _fonts(fonts):
        if missing:
            stand_in = dict.fromkeys(map(ord, missing), _AS_WIDE)
            with rewritten(figure, lambda text: text.translate(stand_in)):
                figure.draw_without_rendering()
            figure.set_layout_engine("none")
        figure.savefig(target, format="svg", metadata={"Date": None})


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
    _save_svg(figure, buffer, *fonts_for(letters_of(figure)))
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

"""Fonts for names in any script: which installed ones have the letters, and what is drawn else."""

import contextlib
import functools
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import matplotlib
from matplotlib import font_manager
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ft2font import FT2Font
from matplotlib.text import Text
from matplotlib.ticker import FixedLocator, Formatter, FuncFormatter

__all__ = ["FIRST_FONT", "escaped", "fonts_for", "letters_of", "rewritten"]

FIRST_FONT = "DejaVu Sans"  # comes with matplotlib
_OWN_FONTS = Path(matplotlib.get_data_path())
_REGULAR = 400


def letters_of(figure: Figure) -> set[str]:
    """All letters of a figure's texts but ASCII, which every font has."""
    texts = [*_texts(figure)]
    for axis in _axes(figure):
        texts += axis.get_ticklabels() if _has_names(axis) else []
    return {letter for text in texts for letter in text.get_text() if not letter.isascii()}


def fonts_for(letters: Iterable[str]) -> tuple[list[str], set[str]]:
    """Names of fonts that have these letters, `FIRST_FONT` first, and the letters in none of them.

    Only installed fonts are named, so that matplotlib has none to miss; those that it ships beside
    the first are for formulas, or show boxes on purpose.
    """
    names, missing = [FIRST_FONT], {ord(each) for each in letters}
    missing -= _letters_in(font_manager.findfont(FIRST_FONT))
    for name, path in _installed() if missing else ():
        found = missing & _letters_in(path)
        if found:
            names.append(name)
            missing -= found
        if not missing:
            break
    return names, {chr(each) for each in missing}


def escaped(text: str, letters: Iterable[str]) -> str:
    r"""The text with these letters as their code points.

    >>> print(escaped("模 1", "模型"))
    \u6a21 1
    """
    codes = {ord(each): f"\\u{ord(each):04x}" for each in letters}
    return text.translate(codes)


@contextlib.contextmanager
def rewritten(figure: Figure, rewrite: Callable[[str], str]) -> Iterator[None]:
    """Every text of the figure otherwise, inside; of the ticks those that are names."""
    texts = [(each, each.get_text()) for each in _texts(figure)]
    axes = [(axis, axis.get_major_formatter()) for axis in _axes(figure) if _has_names(axis)]
    for text, was in texts:
        text.set_text(rewrite(was))
    for axis, formatter in axes:
        axis.set_major_formatter(_rewriting(formatter, rewrite))
    try:
        yield
    finally:
        for text, was in texts:
            text.set_text(was)
        for axis, formatter in axes:
            axis.set_major_formatter(formatter)


def _rewriting(formatter: Formatter, rewrite: Callable[[str], str]) -> FuncFormatter:
    return FuncFormatter(lambda value, position: rewrite(formatter(value, position)))


def _texts(figure: Figure) -> list[Text]:
    """Texts but the ticks', which their axes write anew whenever they are drawn."""
    ticks = {id(text) for axis in _axes(figure) for text in axis.get_ticklabels(which="both")}
    return [each for each in figure.findobj(Text) if id(each) not in ticks]


def _axes(figure: Figure) -> list[Axis]:
    return [axis for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)]


def _has_names(axis: Axis) -> bool:
    """Whether its ticks are at given places and have given names."""
    is_given = isinstance(axis.get_major_locator(), FixedLocator)
    return is_given and isinstance(axis.get_major_formatter(), FuncFormatter)


@functools.cache
def _installed() -> list[tuple[str, str]]:
    """Name and file of the upright regular fonts that matplotlib did not bring, Sans first."""
    found = {
        each.name: each.fname
        for each in font_manager.fontManager.ttflist
        if each.style == "normal"
        and each.weight == _REGULAR
        and not Path(each.fname).is_relative_to(_OWN_FONTS)
    }
    return sorted(found.items(), key=lambda each: ("sans" not in each[0].lower(), each))


@functools.cache
def _letters_in(path: str) -> frozenset[int]:
    """Code points that a font file has; none of one that cannot be read."""
    try:
        return frozenset(FT2Font(path).get_charmap())
    except (OSError, RuntimeError):
        return frozenset()

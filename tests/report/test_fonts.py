"""Names in any script: fonts that have their letters, and what is drawn where none has."""

import warnings
from pathlib import Path

import matplotlib
import pytest

from irtjax.errors import IrtjaxWarning
from irtjax.report import fonts
from irtjax.report.fonts import FIRST_FONT, escaped, fonts_for, letters_of, rewritten
from irtjax.report.style import new_figure, styled, svg_of, titled, write_figure

OWN = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
NOBODY_HAS = "\U000e0100\ue123"  # a selector, and a letter for private use


@styled()
def figure_of(*names: str):
    figure = new_figure(2.0)
    axes = figure.subplots()
    axes.barh(range(len(names)), range(1, len(names) + 1))
    axes.set_yticks(range(len(names)), list(names))
    titled(figure, f"Title {names[0]}")
    return figure


def names(figure) -> list[str]:
    return [text.get_text() for text in figure.axes[0].get_yticklabels()]


def test_letters_are_those_of_titles_and_ticks():
    assert letters_of(figure_of("模型", "plain")) == {"模", "型"}


def test_fonts_are_added_only_where_the_first_lacks_a_letter(monkeypatch):
    assert fonts_for("äπЖ") == ([FIRST_FONT], set())
    # A font for formulas stands for one that is installed: it alone has the letter.
    installed = [("Bare", str(OWN / "cmr10.ttf")), ("Rich", str(OWN / "STIXNonUni.ttf"))]
    monkeypatch.setattr(fonts, "_installed", lambda: installed)
    only = chr(
        min(fonts._letters_in(installed[1][1]) - fonts._letters_in(str(OWN / "DejaVuSans.ttf")))
    )
    assert fonts_for([only, "ä"]) == ([FIRST_FONT, "Rich"], set())
    assert fonts_for([only, NOBODY_HAS[1]])[1] in ({NOBODY_HAS[1]}, set())


def test_fonts_that_cannot_be_read_have_no_letters(tmp_path):
    broken = tmp_path / "broken.ttf"
    broken.write_bytes(b"no font")
    assert fonts._letters_in(str(broken)) == frozenset()


def test_what_no_font_has_is_escaped():
    assert escaped(f"a{NOBODY_HAS[1]}b", NOBODY_HAS) == "a\\ue123b"


def test_texts_are_rewritten_and_come_back():
    figure = figure_of("one", "two")
    with rewritten(figure, str.upper):
        assert figure.texts[0].get_text() == "TITLE ONE"
        assert names(figure) == ["ONE", "TWO"]
    assert figure.texts[0].get_text() == "Title one"
    assert names(figure) == ["one", "two"]


def test_a_png_says_once_what_no_font_has(tmp_path, monkeypatch):
    monkeypatch.setattr(fonts, "_installed", list)
    with pytest.warns(IrtjaxWarning) as told:
        write_figure(figure_of("模型", "型 2"), tmp_path / "p.png", ".png")
    assert len(told) == 1
    assert str(told[0].message).startswith("no installed font has 型 模: drawn as code points")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        write_figure(figure_of("plain", "Ä"), tmp_path / "q.png", ".png")


def test_an_svg_keeps_the_text_and_room_for_it(monkeypatch):
    monkeypatch.setattr(fonts, "_installed", list)
    wide, narrow = figure_of("模" * 12), figure_of("x")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        text = svg_of(wide, "a", "b")
        svg_of(narrow, "a", "b")
    assert "模" * 12 in text
    room = [each.axes[0].get_position().x0 * each.bbox.width for each in (wide, narrow)]
    assert room[0] - room[1] > 12 * 0.9 * 9 * wide.dpi / 72 - 9  # letters of 9 point, one less

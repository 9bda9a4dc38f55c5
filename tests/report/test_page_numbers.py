"""That every number of the page, in tables, words and pictures, is in a CSV beside it."""

import html
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import LineCollection, PathCollection, QuadMesh
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import FixedLocator

from irtjax.report import part
from irtjax.report.audit_page import Audit, audit
from irtjax.report.style import MINUS

# Levels and other words of the captions: 95% intervals, the other abilities are 0.
CONSTANTS = {95.0, 0.0}
NUMBER = re.compile(rf"(?<![\w.])[{MINUS}-]?\d[\d,]*(?:\.\d+)?(?:e[+{MINUS}-]\d+)?(?![\w])")


class Numbers:
    """All numbers of some CSV files, the counts of their rows and of their dims included."""

    def __init__(self, *files: Path) -> None:
        tables = [pd.read_csv(file) for file in files]
        columns = [table.select_dtypes(["number", "bool"]) for table in tables]
        values = [each.to_numpy(float, na_value=np.nan).ravel() for each in columns]
        values.append(np.array([len(table) for table in tables], float))
        dims = [sum(str(name).endswith("_loading") for name in table) for table in tables]
        values.append(np.array(dims, float))
        found = np.concatenate(values)
        self.sorted = np.sort(found[np.isfinite(found)])

    def nearest(self, value: np.ndarray) -> np.ndarray:
        right = np.clip(np.searchsorted(self.sorted, value), 1, len(self.sorted) - 1)
        left, right = self.sorted[right - 1], self.sorted[right]
        return np.where(np.abs(value - left) <= np.abs(right - value), left, right)

    def have(self, values: object) -> bool:
        value = np.asarray(values, float).ravel()
        value = value[np.isfinite(value)]
        return bool(np.all(np.isclose(value, self.nearest(value), rtol=1e-6, atol=1e-9)))

    def have_text(self, text: str) -> bool:
        """Whether a number, rounded as it is in the text, is one of these."""
        plain = text.replace(",", "").replace(MINUS, "-")
        mantissa, _, power = plain.partition("e")
        digits = len(mantissa.partition(".")[2])
        half = 0.5 * 10.0 ** (int(power or 0) - digits)
        value = float(plain)
        return bool(abs(self.nearest(np.array(value)) - value) <= half * (1 + 1e-9))


@pytest.fixture(scope="module", params=["plain_fit", "hostile_fit"])
def drawn(request, tmp_path_factory) -> tuple[Audit, Path, list[Figure]]:
    """An audit, the folder it is saved to, and the figures of its page in their order."""
    figures, of_page = [], part.svg_of

    def kept(figure, prefix, description):
        figures.append(figure)
        return of_page(figure, prefix, description)

    by = ["kind"] if request.param == "hostile_fit" else []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(part, "svg_of", kept)
        found = audit(request.getfixturevalue(request.param), by=by, quick=True)
    folder = tmp_path_factory.mktemp("audit")
    found.save(folder)
    return found, folder, figures


def sources(page: str) -> list[str]:
    """The files that the pictures name, in their order."""
    return re.findall(r"<figcaption>Numbers: (.*?)</figcaption>", page)


def plain(cell: str) -> str:
    return html.unescape(re.sub(r"<[^>]*>", "", cell))


def test_tables_show_what_is_in_their_files(drawn):
    found, folder, _ = drawn
    views = re.findall(r"<table.*?</table>.*?<p class=\"source\">.*?</p>", found.html, re.S)
    assert len(views) >= 8
    for view in views:
        file = folder / plain(re.search(r'"source">(.*?)</p>', view)[1]).split()[-1]
        known = Numbers(file)
        body = view.partition("<tbody>")[2]
        cells = re.findall(r"<(?:td|th)([^>]*)>(.*?)</(?:td|th)>", body, re.S)
        assert cells, file
        for attributes, cell in cells:
            exact = re.search(r'data-v="([^"]*)"', attributes)
            if exact:
                assert known.have(float(exact[1])), (file, cell)
                assert known.have_text(plain(cell)), (file, cell)


def test_texts_of_tables_are_in_their_files(drawn):
    found, folder, _ = drawn
    for view in re.findall(r"<table.*?</table>.*?<p class=\"source\">.*?</p>", found.html, re.S):
        file = folder / plain(re.search(r'"source">(.*?)</p>', view)[1]).split()[-1]
        text = " ".join(file.read_text("utf-8").replace('""', '"').split())
        for attributes, cell in re.findall(r"<(?:td|th)([^>]*)>(.*?)</(?:td|th)>", view, re.S):
            if (
                "data-v" not in attributes
                and NUMBER.search(plain(cell))
                and '<th scope="col' not in cell
            ):
                assert plain(cell).rstrip("…") in text, (file, cell)


def test_words_say_numbers_of_the_files(drawn):
    found, folder, _ = drawn
    known = Numbers(*folder.glob("*.csv"))
    words = re.findall(r"<p(?: class=\"warning\")?>(.*?)</p>", found.html, re.S)
    named = [plain(text) for text in words if ".csv" in text]
    assert named
    for text in named:
        for number in NUMBER.findall(text):
            assert known.have_text(number), (number, text)


def test_pictures_draw_and_say_numbers_of_the_files_they_name(drawn):
    found, folder, figures = drawn
    named = sources(found.html)
    assert len(named) == len(figures) >= 8
    for figure, source in zip(figures, named, strict=True):
        known = Numbers(*(folder / file for file in source.split(", ")))
        for text in figure.texts:
            for number in NUMBER.findall(text.get_text()):
                is_constant = float(number.replace(",", "").replace(MINUS, "-")) in CONSTANTS
                assert is_constant or known.have_text(number), (source, text.get_text())
        n_checked = sum(check_axes(axes, known, source) for axes in figure.axes)
        assert n_checked > 0, source


def check_axes(axes, known: Numbers, source: str) -> int:
    """Check what is drawn on some axes along those that measure; how many numbers there were."""
    measures = [
        not isinstance(axis.get_major_locator(), FixedLocator) for axis in (axes.xaxis, axes.yaxis)
    ]
    points = [line.get_xydata() for line in axes.lines if not is_helper(line)]
    for each in axes.collections:
        if isinstance(each, LineCollection):
            points += [np.asarray(segment) for segment in each.get_segments()]
        elif isinstance(each, PathCollection):
            points.append(np.asarray(each.get_offsets()))
    bars = [patch for patch in axes.patches if isinstance(patch, Rectangle) and patch.get_fill()]
    points += [np.array([[bar.get_x(), bar.get_height()]]) for bar in bars]
    images = [np.asarray(image.get_array()) for image in axes.images]
    n_checked = 0
    for values in points:
        for k, is_measured in enumerate(measures):
            if is_measured:
                assert known.have(values[:, k]), (source, values[:, k])
                n_checked += len(values)
    for values in images if axes.get_label() != "<colorbar>" else []:
        assert known.have(values), source
        numbers = [text.get_text() for text in axes.texts]
        assert all(known.have_text(number) for number in numbers), source
        n_checked += values.size
    assert not any(isinstance(each, QuadMesh) for each in axes.collections) or (
        axes.get_label() == "<colorbar>"
    )
    return n_checked


def is_helper(line) -> bool:
    """The zero line, and the diagonal on which predictions come true."""
    return len(line.get_xdata()) == 2 and set(np.ravel(line.get_xydata())) <= {0.0, 1.0}

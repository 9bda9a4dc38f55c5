"""`irtjax plot`: a picture by its kind and suffix."""

import pytest

from irtjax.fit.result import FitResult
from irtjax.report.plot import KINDS, plot


def test_command_and_python_draw_the_same(irtjax, finished_run, tmp_path):
    outcome = irtjax("plot", finished_run, "abilities", "--out", "a.svg")
    assert (outcome.code, outcome.err) == (0, "")
    assert "a.svg: abilities" in outcome.out
    plot(FitResult.load(finished_run), "abilities", tmp_path / "b.svg")
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_items_are_chosen_by_id(irtjax, finished_run, tmp_path):
    arguments = ["--item", "benchmark-3/7", "--item", "benchmark-0/0", "--quiet"]
    assert irtjax("plot", finished_run, "curves", "--out", "c.svg", *arguments).code == 0
    drawn = (tmp_path / "c.svg").read_text()
    assert ">benchmark-3/7<" in drawn
    assert ">benchmark-0/0<" in drawn


def test_the_help_names_every_kind(irtjax):
    shown = " ".join(irtjax("plot", "--help").out.replace("│", " ").split())
    for kind in KINDS:
        assert kind in shown


@pytest.mark.parametrize(
    "kind, arguments, message",
    [
        ("forest", [], "no picture 'forest'; choose one of abilities, heatmap"),
        ("abilities", ["--out", "a.pdf"], "a.pdf must end with .png or .svg"),
        ("abilities", ["--dim", "2"], "dim must be a whole number from 1 to 1, not 2"),
        ("curves", ["--item", "x"], "item 'x' was not in the fit"),
    ],
)
def test_bad_input_is_one_line(irtjax, finished_run, tmp_path, kind, arguments, message):
    outcome = irtjax("plot", finished_run, kind, "--out", "a.png", *arguments)
    assert outcome.code == 2
    assert len(outcome.error_lines) == 1
    assert message in outcome.err
    assert not list(tmp_path.iterdir())

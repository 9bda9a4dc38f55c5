"""`irtjax select`: the same items as from Python, in three kinds of files; refusals."""

import json

import pandas as pd
import pytest

from irtjax.fit.result import FitResult
from irtjax.select.api import select_items

BUDGET = 12


def test_the_command_gives_what_python_gives(irtjax, finished_run, tmp_path):
    arguments = ["--budget", BUDGET, "--per", "benchmark=2-4", "--target", "top", "--seed", 3]
    outcome = irtjax(
        "select", finished_run, *arguments, "--out", "s.csv", "--out", "s.json", "--out", "s.txt"
    )
    assert (outcome.code, outcome.err) == (0, "")
    for text in (
        f"{BUDGET} of 200 items by d-optimal",
        "dim1 reliability",
        "for a reliability of 0.8",
        "s.json: 12 items",
    ):
        assert text in outcome.out
    selection = select_items(
        FitResult.load(finished_run), BUDGET, per={"benchmark": "2-4"}, target="top", seed=3
    )
    found = pd.read_csv(tmp_path / "s.csv", keep_default_na=False)
    assert found["item_id"].tolist() == selection.item_ids.tolist()
    for name in ("gain", "information", "dim1_se", "dim1_reliability"):
        assert found[name].tolist() == selection.items[name].tolist()
    assert (tmp_path / "s.txt").read_text().split() == selection.item_ids.tolist()
    assert json.loads((tmp_path / "s.json").read_text()) == selection.samples()
    assert found["benchmark"].value_counts().between(2, 4).all()


def test_one_value_of_a_column_and_no_excluded_flags(irtjax, finished_run, tmp_path):
    outcome = irtjax(
        *("select", finished_run, "--budget", 9, "--criterion", "fisher", "--out", "s.csv"),
        *("--per", "benchmark:benchmark-1=7-9", "--exclude-flags", "none", "--quiet"),
    )
    assert (outcome.code, outcome.out, outcome.err) == (0, "", "")
    assert (pd.read_csv(tmp_path / "s.csv")["benchmark"] == "benchmark-1").sum() >= 7


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["--budget", 201, "--out", "s.csv"], "more than the 200 items"),
        (["--budget", 5, "--out", "s.xlsx"], "must end with .csv or .json or .txt"),
        (["--budget", 5, "--out", "no/s.csv"], "no folder"),
        (["--budget", 5, "--out", "s.csv", "--per", "benchmark"], "--per 'benchmark'"),
        (
            ["--budget", 5, "--out", "s.csv", "--per", "benchmark=2", "--per", "benchmark=3"],
            "twice",
        ),
        (["--budget", 5, "--out", "s.csv", "--direction", "up"], "--direction 'up'"),
        (["--budget", 5, "--out", "s.csv", "--out", "./s.csv"], "named for two outputs"),
        (
            ["--budget", 5, "--out", "s.csv", "--per", "benchmark=20-5"],
            "the quota 20-5 of benchmark asks for at least 20 and at most 5 items",
        ),
        (["--budget", 5, "--out", "s.csv", "--criterion", "best"], "criterion 'best'"),
        (["--out", "s.csv"], "--budget"),
    ],
)
def test_refusals_write_nothing(irtjax, finished_run, tmp_path, tree, arguments, said):
    before = tree(tmp_path)
    outcome = irtjax("select", finished_run, *arguments)
    assert outcome.code == 2
    assert len(outcome.error_lines) == 1, outcome.err
    assert said in outcome.err
    assert tree(tmp_path) == before


def test_help_shows_an_example(irtjax):
    outcome = irtjax("select", "--help")
    assert (outcome.code, outcome.err) == (0, "")
    assert "Example: irtjax select " in outcome.out

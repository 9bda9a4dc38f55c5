"""`irtjax filter`: the table of Python, and what is refused."""

import pandas as pd
import pytest

import irtjax as ij


def test_it_writes_what_python_finds(irtjax, finished_run, tmp_path):
    out = tmp_path / "filtered.csv"
    outcome = irtjax("filter", finished_run, "--removed", "0.9", "--by", "benchmark", "--out", out)
    assert outcome.code == 0
    expected = ij.filter_items(ij.FitResult.load(finished_run), 0.9, by="benchmark")
    pd.testing.assert_frame_equal(pd.read_csv(out), expected, rtol=1e-6)
    assert f"{int(expected.is_kept.sum())} of 200 items kept" in outcome.out
    assert int(expected.is_kept.sum()) == 20


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--removed", "2"], "removed is a share from 0 to below 1, not 2"),
        (["--removed", "1"], "removed is a share from 0 to below 1, not 1"),
        (["--removed", "0.5", "--dim", "2"], "dim must be a whole number from 1 to 1"),
        (["--removed", "0.5", "--by", "subject"], "no item metadata column 'subject'"),
    ],
)
def test_what_makes_no_sense_is_refused(irtjax, finished_run, tmp_path, arguments, message):
    outcome = irtjax("filter", finished_run, *arguments, "--out", tmp_path / "f.csv")
    assert outcome.code == 2
    assert message in outcome.err
    assert not list(tmp_path.iterdir())

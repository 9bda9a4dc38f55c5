"""`irtjax compare`: the tables of Python, and what is refused."""

import json

import pandas as pd
import pytest

import irtjax as ij


def test_it_writes_what_python_finds(irtjax, finished_run, tmp_path):
    out = tmp_path / "compared"
    outcome = irtjax("compare", finished_run, "model-00", "model-01", "--out", out)
    assert outcome.code == 0
    expected = ij.compare_models(ij.FitResult.load(finished_run), "model-00", "model-01")
    for name in ("dims", "values", "gained", "lost"):
        found = pd.read_csv(out / f"{name}.csv", keep_default_na=name != "values")
        assert len(found) == len(getattr(expected, name))
        assert list(found) == list(getattr(expected, name))
    named = json.loads((out / "compare.json").read_text())["files"]
    assert set(named) == {each.name for each in out.iterdir()}
    assert "benchmark-1" in outcome.out
    again = irtjax("compare", finished_run, "model-00", "model-02", "--out", out)
    assert again.code == 2
    assert "exists; pass --force" in again.err
    assert (
        irtjax("compare", finished_run, "model-00", "model-02", "--out", out, "--force").code == 0
    )


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["model-00", "nobody"], "model 'nobody' was not in the fit"),
        (["model-00", "model-00"], "'model-00' is compared with itself"),
        (["model-00", "model-01", "--by", "subject"], "items have no column 'subject'"),
        (["model-00", "model-01", "--top", "0"], "--top is a share above 0, up to 1, not 0"),
    ],
)
def test_what_makes_no_sense_is_refused(irtjax, finished_run, tmp_path, arguments, message):
    outcome = irtjax("compare", finished_run, *arguments, "--out", tmp_path / "c")
    assert outcome.code == 2
    assert len(outcome.error_lines) == 1
    assert message in outcome.err
    assert not list(tmp_path.iterdir())

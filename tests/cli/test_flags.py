"""`irtjax flags`: the table of `flag_items`, written."""

import pandas as pd

from irtjax.audit.flags import flag_items
from irtjax.fit.result import FitResult


def test_the_file_is_what_python_gives(irtjax, finished_run, tmp_path):
    outcome = irtjax("flags", finished_run, "--out", "flags.csv", "--bootstrap", 1)
    assert (outcome.code, outcome.err) == (0, "")
    assert "weak_slope" in outcome.out
    found = pd.read_csv(tmp_path / "flags.csv")
    expected = flag_items(FitResult.load(finished_run), bootstrap=1)
    pd.testing.assert_frame_equal(found, expected, check_dtype=False)


def test_answers_are_read(irtjax, finished_run, tmp_path):
    (tmp_path / "a.csv").write_text(
        "model,item,answer,key\nmodel-00,benchmark-0/0,A,B\nmodel-01,benchmark-0/0,B,B\n"
    )
    arguments = ("flags", finished_run, "--answers", "a.csv", "--out", "flags.csv", "--quiet")
    outcome = irtjax(*arguments, "--bootstrap", 0)
    assert (outcome.code, outcome.out) == (0, "")
    assert irtjax(*arguments).code == 2  # the file exists


def test_bad_answers_are_refused_in_one_line(irtjax, finished_run, tmp_path):
    (tmp_path / "a.csv").write_text("model_id,item_id,answer,key\nm,i,A,B\n")
    for path, said in (("a.csv", "none of the answers"), ("b.csv", "No such file")):
        outcome = irtjax("flags", finished_run, "--answers", path, "--out", "flags.csv")
        assert outcome.code == 2
        assert len(outcome.error_lines) == 1
        assert said in outcome.err
        assert not (tmp_path / "flags.csv").exists()

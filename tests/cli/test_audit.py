"""`irtjax audit`: the same as from Python, written at once or not at all."""

import json

import pandas as pd
import pytest

from irtjax.fit.result import FitResult
from irtjax.report.audit_page import audit


def test_command_and_python_give_the_same(irtjax, finished_run, tmp_path):
    outcome = irtjax("audit", finished_run, "--quick", "--out", "found")
    assert (outcome.code, outcome.err) == (0, "")
    assert "convergence: converged" in outcome.out
    assert "found/report.html" in outcome.out
    expected = audit(FitResult.load(finished_run), quick=True)
    assert (tmp_path / "found/report.html").read_text() == expected.html
    told = json.loads((tmp_path / "found/audit.json").read_text())
    assert sorted(told["files"]) == sorted(p.name for p in (tmp_path / "found").iterdir())
    trust = pd.read_csv(tmp_path / "found/trust.csv")
    assert trust["finding"].tolist() == expected.tables["trust"]["finding"].tolist()


def test_only_an_audit_is_replaced_and_other_files_stay(irtjax, finished_run, tmp_path, tree):
    assert irtjax("audit", finished_run, "--quick", "--out", "found", "--quiet").code == 0
    found = tmp_path / "found"
    (found / "notes.txt").write_text("mine")
    (found / "old.csv").write_text("of an earlier audit")
    told = json.loads((found / "audit.json").read_text())
    told["files"] += ["old.csv", "../outside.txt"]
    (found / "audit.json").write_text(json.dumps(told))
    (tmp_path / "outside.txt").write_text("mine")
    before = tree(found)
    refused = irtjax("audit", finished_run, "--quick", "--out", "found")
    assert refused.code == 2
    assert "found exists; pass --force" in refused.err
    assert tree(found) == before
    outcome = irtjax("audit", finished_run, "--quick", "--out", "found", "--force", "--quiet")
    assert (outcome.code, outcome.out, outcome.err) == (0, "", "")
    assert (found / "notes.txt").read_text() == "mine"
    assert (tmp_path / "outside.txt").read_text() == "mine"
    assert not (found / "old.csv").exists()
    assert "old.csv" not in json.loads((found / "audit.json").read_text())["files"]


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--by", "x"], "'x'"),
        (["--group", "x"], "'x'"),
        (["--answers", "none.csv"], "none.csv"),
        (["--published", "none.csv"], "none.csv"),
        (["--out", "taken"], "taken is not empty and has no audit.json"),
        (["--out", "file"], "file is not a folder"),
        (["--out", "file/found"], "cannot make file/found"),
    ],
)
def test_bad_input_is_one_line_and_nothing_is_written(
    irtjax, finished_run, tmp_path, tree, arguments, message
):
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "thesis.tex").write_text("mine")
    (tmp_path / "file").write_text("mine")
    before = tree(tmp_path)
    outcome = irtjax("audit", finished_run, "--quick", "--out", "found", "--force", *arguments)
    assert outcome.code == 2
    assert len(outcome.error_lines) == 1
    assert message in outcome.err
    assert tree(tmp_path) == before


def test_a_missing_extra_is_named(irtjax, finished_run, monkeypatch):
    import importlib.util

    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "jinja2" else real(name)
    )
    outcome = irtjax("audit", finished_run, "--quick", "--out", "found")
    assert outcome.code == 2
    assert "jinja2 cannot be imported; install irtjax[report]" in outcome.err

"""`irtjax adapt`: the same as in Python, and what is refused before anything is written."""

import pandas as pd
import pytest

import irtjax as ij


def test_it_writes_what_python_finds(irtjax, finished_run, responses, tmp_path):
    out = tmp_path / "models.csv"
    arguments = ["--max-items", "15", "--quota", "benchmark-1=5", "--seed", "3"]
    outcome = irtjax("adapt", finished_run, responses, "--out", out, *arguments)
    assert outcome.code == 0
    assert len(outcome.error_lines) == 1
    assert "30 models tested by answers that the run was fitted to" in outcome.err
    with pytest.warns(ij.IrtjaxWarning, match="30 models tested"):
        runs = ij.adapt(
            ij.FitResult.load(finished_run),
            ij.read_responses(responses),
            max_items=15,
            quotas={"benchmark-1": 5},
            seed=3,
        )
    found = pd.read_csv(out, keep_default_na=False)
    pd.testing.assert_frame_equal(found, runs.models, rtol=1e-6)
    assert "flags: 30 counted_twice" in outcome.out
    steps = pd.read_csv(out.with_name("models-steps.csv"))
    pd.testing.assert_frame_equal(steps, runs.steps, rtol=1e-6, check_dtype=False)
    assert "the most items that may be asked were answered: 30 models" in outcome.out


def test_items_may_be_named_in_a_file(irtjax, finished_run, responses, tmp_path):
    ids = ij.FitResult.load(finished_run).data.item_ids[:12]
    (tmp_path / "ids.txt").write_text("\n".join(ids) + "\n\n")
    out = tmp_path / "models.csv"
    outcome = irtjax(
        "adapt", finished_run, responses, "--items", tmp_path / "ids.txt", "--out", out
    )
    assert outcome.code == 0
    steps = pd.read_csv(tmp_path / "models-steps.csv")
    assert set(steps.item_id) <= set(ids)


@pytest.mark.parametrize("ending", ["csv", "json", "txt"])
def test_items_may_be_what_was_selected(irtjax, finished_run, responses, tmp_path, ending):
    short = tmp_path / f"short.{ending}"
    outcome = irtjax("select", finished_run, "--budget", 9, "--criterion", "leh", "--out", short)
    assert outcome.code == 0, outcome.err
    outcome = irtjax("adapt", finished_run, responses, "--items", short, "--out", "m.csv")
    assert outcome.code == 0, outcome.err
    wanted = ij.select_items(ij.FitResult.load(finished_run), 9, criterion="leh").item_ids
    assert set(pd.read_csv(tmp_path / "m-steps.csv").item_id) == set(wanted)


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--quota-by", "benchmark"], "add --quota VALUE=N or drop it"),
        (
            [*(f"--quota=benchmark-{k}=0" for k in range(4)), "--max-items", "9"],
            "the quotas leave no item that may be asked",
        ),
        (["--quota", "benchmark-1"], "--quota is VALUE=N"),
        (["--quota", "a=1", "--quota", "a=2"], "names 'a' twice"),
        (["--quota", "nowhere=3"], "there is no benchmark 'nowhere'"),
        (["--max-items", "0"], "max_items must be a whole number of at least 1"),
        (["--criterion", "best"], "criterion 'best' is not known"),
        (["--items", "absent.txt"], "cannot read absent.txt"),
    ],
)
def test_what_makes_no_sense_is_refused(
    irtjax, finished_run, responses, tmp_path, arguments, message
):
    outcome = irtjax("adapt", finished_run, responses, "--out", tmp_path / "m.csv", *arguments)
    assert outcome.code == 2
    assert len(outcome.error_lines) == 1
    assert message in outcome.err
    assert not list(tmp_path.iterdir())

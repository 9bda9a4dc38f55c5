"""`irtjax check`: responses in, accusations with their evidence out."""

import json

import numpy as np
import pandas as pd
import pytest

from irtjax.audit.integrity.check import audit_data
from irtjax.io import read_responses, write_responses
from tests.audit.integrity.cases import clean, with_rows


@pytest.fixture(scope="module")
def faulty(tmp_path_factory):
    """Responses with a copied block, and a file of published scores of which one is off."""
    folder = tmp_path_factory.mktemp("faulty")
    data = clean(0, n_models=6, n_weak=1)
    dense = data.dense.copy()
    dense[3, 1900:3900] = dense[2, 1900:3900]
    write_responses(with_rows(data, dense), folder / "responses.npz")
    score = 100 * dense[:2, 1900:3900].mean(axis=1)
    scores = pd.DataFrame({"model": ["m0", "m1"], "benchmark": "b3", "score": score + [0, 20]})
    scores.to_csv(folder / "scores.csv", index=False)
    return folder


def test_files_hold_what_python_gives(irtjax, faulty, tmp_path):
    outcome = irtjax(
        "check", faulty / "responses.npz", "--published", faulty / "scores.csv", "--out", "found"
    )
    assert (outcome.code, outcome.err) == (0, "")
    found = audit_data(
        read_responses(faulty / "responses.npz"),
        published=pd.read_csv(faulty / "scores.csv").rename(columns={"model": "model_id"}),
    )
    written = pd.read_csv(tmp_path / "found" / "accusations.csv", keep_default_na=False)
    assert written["kind"].tolist() == ["copied", "copied", "contradicts_published"]
    assert written["explanation"].tolist() == found.accusations["explanation"].tolist()
    for name in ("blocks", "models", "published"):
        table = pd.read_csv(tmp_path / "found" / f"{name}.csv")
        expected = getattr(found, name)
        assert list(table.columns) == list(expected.columns)
        for column in expected.select_dtypes(float):
            np.testing.assert_allclose(table[column], expected[column], rtol=1e-6)
    summary = json.loads((tmp_path / "found" / "check.json").read_text())
    assert summary["accusations"] == {"copied": 2, "contradicts_published": 1}
    assert set(summary["files"]) == {path.name for path in (tmp_path / "found").iterdir()}
    for text in ("3 accusations in 30 blocks", "copied", "m3", "5.", "accusations.csv"):
        assert text in outcome.out
    told = {line.split()[1]: line for line in outcome.out.splitlines() if " b3 " in line}
    assert "2,000 responses" in told["m2"]
    score = written["seen"].iloc[2]
    assert told["m1"].rstrip().endswith(f"{score:.1%} seen, {score + 0.2:.1%} published")


def test_the_place_of_a_filled_stretch_is_shown(irtjax, tmp_path):
    data = clean(0)
    dense = data.dense.copy()
    dense[4, 2900:3900] = 0
    write_responses(with_rows(data, dense), tmp_path / "responses.npz")
    out = irtjax("check", "responses.npz", "--out", "found").out
    (line,) = [line for line in out.splitlines() if line.startswith("filled")]
    assert "to item-3899" in line


def test_clean_data_are_said_to_be(irtjax, responses, tmp_path):
    outcome = irtjax("check", responses, "--out", "found")
    assert (outcome.code, outcome.err) == (0, "")
    assert "Accused   none of 120 blocks" in outcome.out
    assert pd.read_csv(tmp_path / "found" / "accusations.csv").empty
    assert not (tmp_path / "found" / "published.csv").exists()
    again = irtjax("check", responses, "--out", "found")
    assert again.code == 2
    assert "--force" in again.err
    assert irtjax("check", responses, "--out", "found", "--force", "--quiet").out == ""


def test_a_column_with_gaps_and_no_column(irtjax, responses, tmp_path):
    table = pd.read_csv(responses)
    table.loc[table["item_id"] == table["item_id"].iloc[0], "benchmark"] = None
    table.to_csv(tmp_path / "gaps.csv", index=False)
    outcome = irtjax("check", "gaps.csv", "--out", "found")
    assert (outcome.code, len(outcome.error_lines)) == (0, 1)
    assert "column 'benchmark' has no value for 1 item of 200" in outcome.err
    assert "none of 30 blocks" in outcome.out
    outcome = irtjax("check", "gaps.csv", "--group", "none", "--out", "again")
    assert (outcome.code, outcome.err) == (0, "")
    assert "none of 30 blocks" in outcome.out
    outcome = irtjax("check", "gaps.csv", "--group", "benchmark", "--out", "refused")
    assert (outcome.code, len(outcome.error_lines)) == (2, 1)


def test_models_without_responses_are_told_apart(irtjax, tmp_path):
    data = clean(0, n_models=6, n_weak=1)
    dense = data.dense.copy()
    dense[5], dense[4] = -1, dense[3]
    write_responses(with_rows(data, dense), tmp_path / "responses.npz")
    outcome = irtjax("check", "responses.npz", "--out", "found")
    assert "4.0 of 5 models with responses count, if copies of whole models" in outcome.out
    assert "count as one; 1 more without" in outcome.out
    summary = json.loads((tmp_path / "found" / "check.json").read_text())
    assert (summary["n_models"], summary["models_with_responses"]) == (6, 5)


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["--group", "subject"], "'subject'"),
        (["--published", "none.csv"], "none.csv"),
        (["--tolerance", "wide"], "--tolerance"),
    ],
)
def test_bad_arguments_are_one_line_and_write_nothing(irtjax, responses, tmp_path, arguments, said):
    outcome = irtjax("check", responses, "--out", "found", *arguments)
    assert outcome.code == 2
    assert len(outcome.error_lines) == 1, outcome.err
    assert said in outcome.err
    assert list(tmp_path.iterdir()) == []


def test_scores_of_other_models_are_warned_of_quietly_too(irtjax, faulty, tmp_path):
    text = (faulty / "scores.csv").read_text() + "m99,b3,50\n"
    (tmp_path / "scores.csv").write_text(text)
    call = ("check", faulty / "responses.npz", "--published", "scores.csv", "--out")
    outcome = irtjax(*call, "found", "--quiet")
    assert (outcome.code, outcome.out) == (0, "")
    assert "1 published score of 3 cannot be compared: models that the data lack: 'm99'" in (
        outcome.err
    )
    (tmp_path / "scores.csv").write_text("model,benchmark,score\nm0,other,50\n")
    outcome = irtjax(*call, "again")
    assert outcome.code == 2
    assert "no published score is of a model and benchmark of the data" in outcome.err
    assert not (tmp_path / "again").exists()


def test_scores_without_a_column_are_refused(irtjax, responses, tmp_path):
    (tmp_path / "scores.csv").write_text("model,dataset\nm0,b0\n")
    outcome = irtjax("check", responses, "--out", "found", "--published", "scores.csv")
    assert outcome.code == 2
    assert "no column 'score'" in outcome.err


@pytest.mark.parametrize("text, said", [("88.1%", "'88.1%'"), ("", "''"), ("140", "140")])
def test_a_score_that_is_none_is_quoted(irtjax, faulty, tmp_path, text, said):
    (tmp_path / "scores.csv").write_text(f"model,benchmark,score\nm0,b3,50\nm1,b3,{text}\n")
    call = ("check", faulty / "responses.npz", "--published", "scores.csv", "--out", "found")
    outcome = irtjax(*call)
    assert (outcome.code, len(outcome.error_lines)) == (2, 1)
    assert f"the published score of 'm1' in 'b3' is {said}; give shares" in outcome.err

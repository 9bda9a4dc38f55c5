"""`irtjax fit --anchors`, `link` and `update`: as in Python, and bad input in one line."""

import json

import numpy as np
import pandas as pd
import pytest

import irtjax as ij
from irtjax.io import read_responses, write_responses


@pytest.fixture(scope="session")
def week(responses):
    """The same items, answered by two new models, and an answer that the run has already."""
    data = read_responses(responses)
    dense = data.to_dense()[[3, 20]]
    new = ij.ResponseMatrix.from_dense(
        dense,
        model_ids=["new-1", "new-2"],
        item_ids=list(data.item_ids),
        item_metadata=data.item_metadata,
    )
    path = responses.parent / "week.csv"
    write_responses(new, path)
    return path


def failed(outcome, text):
    assert outcome.code == 2
    assert len(outcome.error_lines) == 1, outcome.err
    assert text in outcome.err


def test_update_writes_a_run_with_its_moves(irtjax, finished_run, week, tmp_path):
    outcome = irtjax("update", finished_run, week, "--out", "run2")
    assert (outcome.code, outcome.err) == (0, "")
    assert "2 new models, 0 new items, 400 new responses" in outcome.out
    assert "200 items answered by both old and new models" in outcome.out
    assert "--anchors" not in outcome.out
    assert "moved_models.csv, moved_items.csv" in outcome.out
    assert "Next      irtjax update run2 RESPONSES --out RUN3" in outcome.out
    assert "old abilities moved by" in outcome.out
    old, fit = (ij.FitResult.load(each) for each in (finished_run, tmp_path / "run2"))
    assert fit.data.n_models == old.data.n_models + 2
    found = ij.update(old, read_responses(week))
    table = pd.read_csv(tmp_path / "run2" / "moved_models.csv")
    np.testing.assert_allclose(table["dim1_ability_moved"], found.models["dim1_ability_moved"])
    assert len(pd.read_csv(tmp_path / "run2" / "moved_items.csv")) == old.data.n_items
    report = json.loads((tmp_path / "run2" / "fit.json").read_text())
    assert report["updated"]["run"] == str(finished_run)
    assert report["updated"]["abilities"] == found.summary["abilities"]
    # The held-out cells of the run are tested again.
    assert report["heldout"]["n"] == old.report["heldout"]["n"]
    again = irtjax("update", "run2", week, "--out", "run3")
    failed(again, "there is nothing new")
    assert not (tmp_path / "run3").exists()


@pytest.mark.parametrize(
    "n_common, said",
    [
        (5, "with so few, new models are placed by the old models' population too"),
        (0, "nothing ranks new models against old ones"),
    ],
)
def test_update_with_few_common_items_says_what_places_the_new_models(
    irtjax, finished_run, week, tmp_path, n_common, said
):
    table = pd.read_csv(week)
    known = table["item_id"].isin(table["item_id"].unique()[:n_common])
    table.loc[~known, "item_id"] = "new-" + table.loc[~known, "item_id"]
    table.to_csv(tmp_path / "apart.csv", index=False)
    outcome = irtjax("update", finished_run, "apart.csv", "--out", "run2")
    assert outcome.code == 0, outcome.err
    assert f"{n_common} items answered by both" in outcome.out
    assert said in outcome.out
    cannot = "models of one cannot be ranked against those of another"
    assert (cannot in outcome.err) == (n_common == 0)
    report = json.loads((tmp_path / "run2" / "fit.json").read_text())
    assert report["updated"]["n_common_items"] == n_common


def test_update_says_whose_metadata_are_kept(irtjax, finished_run, week, tmp_path):
    table = pd.read_csv(week)
    changed = table["item_id"] == "benchmark-0/3"
    table.loc[changed, "benchmark"] = "elsewhere"
    table.to_csv(tmp_path / "changed.csv", index=False)
    outcome = irtjax("update", finished_run, "changed.csv", "--out", "run2")
    assert outcome.code == 0, outcome.err
    assert len(outcome.error_lines) == 1
    assert "benchmark of 'benchmark-0/3' is 'benchmark-0', not 'elsewhere'" in outcome.err
    fit = ij.FitResult.load(tmp_path / "run2")
    kept = fit.data.item_metadata["benchmark"][fit.data.item_ids == "benchmark-0/3"]
    assert list(kept) == ["benchmark-0"]


def test_link_of_a_run_to_itself_changes_nothing(irtjax, finished_run, tmp_path):
    outcome = irtjax("link", finished_run, finished_run, "--out", "linked")
    assert (outcome.code, outcome.err) == (0, "")
    assert "haebara, 200 items in common" in outcome.out
    assert "Next      irtjax score linked ANSWERS.csv" in outcome.out
    assert "0 drifted" in outcome.out
    table = pd.read_csv(tmp_path / "linked" / "link.csv")
    assert len(table) == 200
    assert table["rmsd"].max() < 1e-5
    one, other = (ij.FitResult.load(each) for each in (finished_run, tmp_path / "linked"))
    np.testing.assert_allclose(other.parameters.ability, one.parameters.ability, atol=1e-4)
    assert other.report["linked"]["reference"] == str(finished_run)


def test_fit_with_anchors_says_how_many_and_where_the_models_are(
    irtjax, finished_run, week, tmp_path
):
    outcome = irtjax("fit", week, "--anchors", finished_run, "--out", "new")
    assert outcome.code == 0, outcome.err
    assert "200 items fixed" in " ".join(outcome.out.split())
    assert "0 new items estimated; 0 drifted" in " ".join(outcome.out.split())
    assert "new models on that scale: mean" in outcome.out
    report = json.loads((tmp_path / "new" / "fit.json").read_text())
    assert (report["anchors"]["n_anchors"], report["anchors"]["n_new_items"]) == (200, 0)
    assert report["anchors"]["run"] == str(finished_run)


def test_bad_input_is_refused_before_anything_is_written(irtjax, finished_run, week, tmp_path):
    (tmp_path / "others.csv").write_text("model_id,item_id,response\na,p,1\nb,p,0\na,q,1\nb,q,1\n")
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "fit.json").write_text("{}")
    (tmp_path / "exists").mkdir()
    before = sorted(path.name for path in tmp_path.iterdir())
    for arguments, text in (
        (("fit", "others.csv", "--anchors", finished_run, "--out", "x"), "none of the 2 items is"),
        (("fit", week, "--anchors", "nowhere", "--out", "x"), "nowhere is not a folder"),
        (("fit", week, "--anchors", "damaged", "--out", "x"), "has no responses.npz"),
        (
            ("fit", week, "--anchors", finished_run, "--family", "3pl", "--out", "x"),
            "use family 2pl and dims 1",
        ),
        (
            ("fit", week, "--anchors", finished_run, "--estimator", "joint-map", "--out", "x"),
            "anchors do not go with estimator joint-map",
        ),
        (("link", finished_run, "damaged", "--out", "x"), "has no responses.npz"),
        (("link", finished_run, finished_run, "--out", "exists"), "exists; pass --force"),
        (
            ("link", finished_run, finished_run, "--method", "mean", "--out", "x"),
            "method 'mean' is not known",
        ),
        (("update", "damaged", week, "--out", "x"), "has no responses.npz"),
        (("update", finished_run, "absent.csv", "--out", "x"), "absent.csv"),
        (("update", finished_run, week, "--out", "exists"), "exists; pass --force"),
    ):
        failed(irtjax(*arguments), text)
    assert sorted(path.name for path in tmp_path.iterdir()) == before


@pytest.mark.parametrize("command", ["link", "update"])
def test_help_shows_an_example(irtjax, command):
    outcome = irtjax(command, "--help")
    assert (outcome.code, outcome.err) == (0, "")
    assert f"Example: irtjax {command} " in outcome.out

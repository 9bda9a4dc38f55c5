"""`irtjax predict`: pairs in, probabilities out, by id and in order."""

import numpy as np
import pandas as pd

from irtjax.fit.result import FitResult


def test_cases_9_ids_and_order_of_the_pairs(irtjax, finished_run, tmp_path):
    pairs = [
        ("model-17", "benchmark-3/7"),
        ("model-02", "benchmark-0/0"),
        ("model-17", "benchmark-3/7"),
        ("model-00", "benchmark-1/20"),
    ]
    frame = pd.DataFrame(pairs, columns=["model_id", "item_id"])
    frame.assign(note="x")[["item_id", "note", "model_id"]].to_csv("pairs.csv", index=False)
    outcome = irtjax("predict", finished_run, "pairs.csv", "--out", "p.csv")
    assert (outcome.code, outcome.err) == (0, "")
    assert "p.csv: 4 probabilities" in outcome.out
    found = pd.read_csv(tmp_path / "p.csv")
    assert list(found.columns) == ["model_id", "item_id", "probability"]
    pd.testing.assert_frame_equal(
        found[["model_id", "item_id"]].astype(object), frame.astype(object)
    )
    expected = FitResult.load(finished_run).predict(frame)["probability"]
    np.testing.assert_array_equal(found["probability"], expected)
    assert found["probability"].between(0, 1).all()
    assert found["probability"][0] == found["probability"][2]


def test_existing_file_is_replaced_with_force_only(irtjax, finished_run, tmp_path):
    (tmp_path / "pairs.csv").write_text("model,question_id\nmodel-00,benchmark-0/0\n")
    (tmp_path / "p.csv").write_text("old")
    assert irtjax("predict", finished_run, "pairs.csv", "--out", "p.csv").code == 2
    assert (tmp_path / "p.csv").read_text() == "old"
    outcome = irtjax("predict", finished_run, "pairs.csv", "--out", "p.csv", "--force", "--quiet")
    assert (outcome.code, outcome.out, outcome.err) == (0, "", "")
    assert len(pd.read_csv(tmp_path / "p.csv")) == 1


def test_a_run_may_move(irtjax, finished_run, tmp_path):
    import shutil

    shutil.copytree(finished_run, tmp_path / "moved")
    (tmp_path / "pairs.csv").write_text("model_id,item_id\nmodel-00,benchmark-0/0\n")
    assert irtjax("predict", "moved", "pairs.csv", "--out", "p.csv").code == 0

"""`irtjax predict`: pairs in, probabilities out, by id and in order."""

import numpy as np
import pandas as pd

from irtjax.fit.result import FitResult
from irtjax.score.unseen import items_from_features, predict_unseen


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


def test_new_items_and_models_by_their_features(irtjax, responses, tmp_path):
    items = pd.unique(pd.read_csv(responses)["item_id"])
    features = pd.DataFrame({"item_id": items, "words": np.arange(len(items)) % 7})
    features.to_csv("features.csv", index=False)
    new = pd.DataFrame({"item_id": ["new-1", "new-2"], "words": [1.5, 6.0]})
    given = pd.concat([new, features[:1]])
    given.to_csv("new.csv", index=False)
    network = [f"--network={text}" for text in ("epochs=2", "hidden=16", "embedding=16")]
    fit = ["fit", responses, "--estimator", "psn", "--item-features", "features.csv", *network]
    assert irtjax(*fit, "--out", "run", "--quiet").code == 0
    pairs = "model_id,item_id\nmodel-01,new-2\nmodel-01,benchmark-0/0\n"
    (tmp_path / "pairs.csv").write_text(pairs)
    predict = ["predict", "run", "pairs.csv", "--out", "p.csv", "--items-out", "i.csv"]
    outcome = irtjax(*predict)
    assert (outcome.code, len(outcome.error_lines)) == (2, 1)
    assert "add that" in outcome.err
    outcome = irtjax(*predict, "--item-features", "new.csv")
    assert (outcome.code, outcome.err) == (0, "")
    assert "i.csv: 2 new items" in outcome.out
    written, result = pd.read_csv(tmp_path / "i.csv"), FitResult.load(tmp_path / "run")
    table = items_from_features(result, new)
    pd.testing.assert_frame_equal(written, table, check_dtype=False, rtol=1e-6)
    found = pd.read_csv(tmp_path / "p.csv")["probability"]
    asked = pd.read_csv(tmp_path / "pairs.csv")
    expected = predict_unseen(result, asked, items=table)["probability"]
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert found[1] == result.predict(asked.tail(1))["probability"][0]

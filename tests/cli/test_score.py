"""`irtjax score`: new models placed on a run's scale; the same numbers as from Python."""

import numpy as np
import pandas as pd

from irtjax.fit.result import FitResult
from irtjax.io import read_responses
from irtjax.score.full_score import predict_score
from irtjax.score.models import score_models


def _answers(folder, name="new.csv", items=25, unknown=()):
    rng = np.random.default_rng(0)
    ids = [*(f"benchmark-{j % 4}/{j // 4}" for j in range(items)), *unknown]
    rows = [(m, i, int(rng.random() < 0.6)) for m in ("new-a", "new-b") for i in ids]
    frame = pd.DataFrame(rows, columns=["model_id", "item_id", "response"])
    frame.to_csv(folder / name, index=False)


def test_scores_are_those_of_python(irtjax, finished_run, tmp_path):
    _answers(tmp_path)
    outcome = irtjax("score", finished_run, "new.csv", "--out", "s.csv", "--method", "map")
    assert (outcome.code, outcome.err) == (0, "")
    assert "new-a" in outcome.out
    found = pd.read_csv(tmp_path / "s.csv")
    expected = score_models(
        FitResult.load(finished_run), read_responses([str(tmp_path / "new.csv")]), method="map"
    )
    assert list(found.columns) == list(expected.columns)
    for name in ("dim1_ability", "dim1_ability_se", "p_correct"):
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-12)


def test_predicted_scores_and_those_by_benchmark(irtjax, finished_run, tmp_path):
    _answers(tmp_path)
    outcome = irtjax(
        "score", finished_run, "new.csv", "--out", "s.csv", "--predict-score", "--by", "benchmark"
    )
    assert (outcome.code, outcome.err) == (0, "")
    assert "95% interval" in outcome.out
    fit, data = FitResult.load(finished_run), read_responses([str(tmp_path / "new.csv")])
    found, parts = (pd.read_csv(tmp_path / name) for name in ("s.csv", "s-benchmark.csv"))
    np.testing.assert_allclose(found["score"], predict_score(fit, data)["score"], rtol=1e-12)
    assert found["score"].between(found["score_lower"], found["score_upper"]).all()
    expected = predict_score(fit, data, by="benchmark")
    assert list(parts.columns) == list(expected.columns)
    np.testing.assert_allclose(parts["score"], expected["score"], rtol=1e-12)


def test_unknown_items_are_named_in_one_line(irtjax, finished_run, tmp_path):
    _answers(tmp_path, unknown=("other/1",))
    outcome = irtjax("score", finished_run, "new.csv", "--out", "s.csv")
    assert outcome.code == 0
    assert len(outcome.error_lines) == 1
    assert "1 item of 26 not in the run" in outcome.err
    assert "'other/1'" in outcome.err


def test_bad_input_gets_one_line_and_writes_nothing(irtjax, finished_run, tmp_path):
    _answers(tmp_path)
    _answers(tmp_path, "none.csv", items=0, unknown=("other/1",))
    for arguments, message in (
        (("none.csv", "--out", "s.csv"), "none of 1 item of the responses is in the run"),
        (("new.csv", "--out", "s.csv", "--method", "mle"), "use one of eap, map, wle"),
        (("new.csv", "--out", "s.csv", "--uncertainty", "x"), "use one of items, none"),
        (("new.csv", "--out", "s.csv", "--by", "benchmark"), "add --predict-score"),
        (("new.csv", "--out", "s.txt"), "must end with .csv"),
    ):
        outcome = irtjax("score", finished_run, *arguments)
        assert outcome.code == 2
        assert len(outcome.error_lines) == 1
        assert message in outcome.err
        assert not list(tmp_path.glob("s*.csv"))

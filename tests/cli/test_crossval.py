"""`irtjax crossval`: responses in, a table and the number of dims out."""

import json

import numpy as np
import pandas as pd
import pytest

from irtjax.cli.crossval import _expanded
from irtjax.evaluate.crossval import RULE
from irtjax.evaluate.fold_metrics import one_standard_error


def test_json_holds_everything_and_the_terminal_the_table(irtjax, responses, tmp_path):
    outcome = irtjax("crossval", responses, "--dims", 1, 2, "--folds", 3, "--out", "dims.json")
    assert (outcome.code, outcome.err) == (0, "")
    found = json.loads((tmp_path / "dims.json").read_text())
    table = pd.DataFrame(found["table"])
    fits = table[table["predictor"] == "fit"].set_index("dims")
    chosen = one_standard_error(fits["log_loss"].to_dict(), fits["log_loss_se"].to_dict())
    assert found["chosen_dims"] == chosen == 1  # the data have one ability
    assert (found["over"], found["folds"], found["dims"]) == ("cells", 3, [1, 2])
    assert found["inputs"][0]["path"] == str(responses)
    assert len(found["by_fold"]) == 3 * len(table)
    assert set(table["n"]) == {30 * 200}
    lines = outcome.out.splitlines()
    (marked,) = (line for line in lines if line.startswith("2PL, 1 dim <"))
    assert f"{fits.loc[1, 'log_loss']:.4f} +- {fits.loc[1, 'log_loss_se']:.4f}" in marked
    assert any(line.startswith("2PL, 2 dims  ") for line in lines)
    assert f"Chosen    1 dim (<): {RULE}" in lines
    for name in ("model mean", "model x benchmark mean", "1PL", "2PL"):
        assert any(line.startswith(f"{name}  ") for line in lines), name


def test_csv_holds_the_table_and_is_replaced_with_force_only(irtjax, responses, tmp_path):
    command = ["crossval", "--dims", 1, "--folds", 3, "--over", "models", "--out", "t.csv"]
    (tmp_path / "t.csv").write_text("old")
    refused = irtjax(*command, responses)
    assert refused.code == 2
    assert "--force" in refused.err
    assert (tmp_path / "t.csv").read_text() == "old"
    outcome = irtjax(*command, "--force", "--quiet", responses)
    assert (outcome.code, outcome.out, outcome.err) == (0, "", "")
    table = pd.read_csv(tmp_path / "t.csv")
    assert table["predictor"].tolist() == [
        "fit",
        "model_mean",
        "model_benchmark_mean",
        "1pl",
        "2pl",
    ]
    assert (table["n"] == 30 * 100).all()
    assert np.isfinite(table["log_loss_se"]).all()


@pytest.mark.parametrize(
    "given, expanded",
    [
        ("r --dims 1 2 3 --folds 2", "r --dims 1 --dims 2 --dims 3 --folds 2"),
        ("--dims 1 2 r 4", "--dims 1 --dims 2 r 4"),
        ("--dims 1 --dims 2 r", "--dims 1 --dims 2 r"),
        ("--folds 2 3 --dims -1 +2", "--folds 2 3 --dims -1 --dims +2"),
        ("r --dims", "r --dims"),
        ("--dims=1 2 r", "--dims=1 2 r"),
    ],
)
def test_dims_take_several_numbers(given, expanded):
    assert list(_expanded(given.split())) == expanded.split()


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["--dims", 0], "--dims"),
        (["--dims", 1, 1], "dims 1 is listed twice"),
        (["--dims", "two"], "--dims"),
        (["--dims"], "--dims"),
        (["--folds", 1], "at least 2, not 1"),
        (["--over", "rows"], "not 'rows'"),
        (["--over", "models", "--folds", 31], "31 folds over models"),
        (["--over", "models", "--folds", 2, "--dims", 15], "15 of 30 are left"),
        (["--family", "1pl", "--dims", 2], "not identified"),
        (["--estimator", "best"], "'best'"),
        (["--components", 3], "--components belongs to"),
        (["--group", "subject"], "'subject'"),
    ],
)
def test_bad_settings_are_one_line_and_write_nothing(irtjax, responses, tmp_path, arguments, said):
    outcome = irtjax("crossval", responses, "--out", "t.json", *arguments)
    assert outcome.code == 2
    assert len(outcome.error_lines) == 1, outcome.err
    assert said in outcome.err
    assert list(tmp_path.iterdir()) == []


def test_another_suffix_is_refused(irtjax, responses):
    outcome = irtjax("crossval", responses, "--out", "t.txt")
    assert (outcome.code, len(outcome.error_lines)) == (2, 1)
    assert ".json or .csv" in outcome.err

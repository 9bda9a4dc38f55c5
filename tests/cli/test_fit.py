"""`irtjax fit`: what it writes, says and returns."""

import json

import numpy as np
import pandas as pd
import pytest

from irtjax.cli.console import console
from irtjax.cli.reader_options import AS_FOUND
from irtjax.cli.responses import read_parts
from irtjax.cli.summary import agreement, groups_of_models
from irtjax.data.checks import MISSING
from irtjax.errors import InputError
from irtjax.fit.driver import Progress, Status
from irtjax.fit.report import fit_report
from irtjax.fit.result import FitResult
from irtjax.io import read_responses
from irtjax.model.metrics import METRICS
from tests.cli.conftest import N_ITEMS, N_MODELS

# DESIGN section 5.
REPORT = {
    "versions",
    "inputs",
    "seed",
    "family",
    "dims",
    "estimator",
    "status",
    "reason",
    "n_models",
    "n_items",
    "n_responses",
    "n_steps",
    "log_likelihood",
    "trace",
    "compile_seconds",
    "fit_seconds",
    "heldout",
}
ITEM_COLUMNS = [
    "item_id",
    "benchmark",
    "difficulty",
    "discrimination",
    "guessing",
    "feasibility",
    "intercept",
    "dim1_slope",
    "dim1_loading",
    "difficulty_se",
    "discrimination_se",
    "guessing_se",
    "feasibility_se",
    "intercept_se",
    "dim1_slope_se",
    "dim1_loading_se",
    "n_responses",
    "p_correct",
    "flags",
]
MODEL_COLUMNS = [
    "model_id",
    "dim1_ability",
    "dim1_ability_se",
    "dim1_ability_se_clustered",
    "expected_score",
    "n_responses",
    "p_correct",
    "flags",
]
FILES = ["checkpoint", "fit.json", "items.csv", "models.csv", "responses.npz"]


@pytest.fixture(scope="session")
def report(finished_run):
    return json.loads((finished_run / "fit.json").read_text())


def test_files_of_a_run(finished_run):
    assert sorted(path.name for path in finished_run.iterdir()) == FILES
    assert sorted(path.name for path in finished_run.parent.iterdir()) == [
        "finished",
        "responses.csv",
    ]


def test_keys_of_the_report(report, responses):
    assert set(report) >= REPORT
    assert report["n_models"] == N_MODELS
    assert report["n_items"] == N_ITEMS
    assert report["n_responses"] == 0.9 * N_MODELS * N_ITEMS
    assert report["n_steps"] == len(report["trace"]["objective"])
    assert report["inputs"][0]["path"] == str(responses)
    assert len(report["inputs"][0]["sha256"]) == 64
    assert report["compile_seconds"] >= 0
    assert report["fit_seconds"] > 0


def test_heldout_of_the_report(report):
    heldout = report["heldout"]
    assert set(heldout) == {"cells", "n", "model", "baselines"}
    assert heldout["cells"] == "holdout 0.1"
    assert heldout["n"] == 0.1 * N_MODELS * N_ITEMS
    assert list(heldout["baselines"]) == ["model_mean", "model_benchmark_mean", "1pl"]
    for metrics in (heldout["model"], *heldout["baselines"].values()):
        assert list(metrics) == [*METRICS, "n"]
        assert metrics["n"] == heldout["n"]
        assert isinstance(metrics["n"], int)
    assert heldout["model"]["log_loss"] < heldout["baselines"]["model_mean"]["log_loss"]


def test_columns_and_rows(finished_run, responses):
    items, models = (pd.read_csv(finished_run / name) for name in ("items.csv", "models.csv"))
    data = read_responses(responses)
    assert list(items.columns) == ITEM_COLUMNS
    assert list(models.columns) == MODEL_COLUMNS
    assert items["item_id"].tolist() == data.item_ids.tolist()
    assert models["model_id"].tolist() == data.model_ids.tolist()


def test_heldout_cells_are_kept_and_not_fitted(finished_run, responses):
    fit, whole = FitResult.load(finished_run), read_responses(responses).to_dense()
    cells = fit.heldout
    assert len(cells) == 0.1 * N_MODELS * N_ITEMS
    train = fit.data.to_dense()
    taken = (cells.model_index, cells.item_index)
    assert np.all(train[taken] == MISSING)
    np.testing.assert_array_equal(cells.response, whole[taken])
    train = train.copy()
    train[taken] = cells.response
    np.testing.assert_array_equal(train, whole)


def test_an_empirical_item_distribution_end_to_end(irtjax, responses):
    flags = ("--group", "benchmark", "--item-distribution", "empirical", "--nodes", 5)
    fitted = irtjax("fit", responses, *flags, "--holdout", 0.1, "--max-steps", 40, "--out", "run")
    assert fitted.code == 0
    assert (
        "2PL, 1 dim, benchmark effects, empirical item distribution; marginal-items" in fitted.out
    )
    run = FitResult.load("run")
    assert run.report["item_distribution"] == "empirical"
    assert run.report["grid_nodes"] == 45
    heldout = run.report["heldout"]
    assert heldout["model"]["log_loss"] < heldout["baselines"]["model_mean"]["log_loss"]
    pairs = pd.DataFrame({"model_id": run.data.model_ids[:3], "item_id": run.data.item_ids[:3]})
    pairs.to_csv("pairs.csv", index=False)
    assert irtjax("predict", "run", "pairs.csv", "--out", "p.csv").code == 0
    np.testing.assert_allclose(
        pd.read_csv("p.csv")["probability"], run.predict(pairs)["probability"], rtol=1e-6
    )


def test_what_the_terminal_says(irtjax, responses):
    outcome = irtjax("fit", responses, "--holdout", 0.1, "--out", "run")
    assert outcome.code == 0
    assert outcome.err == ""
    for text in (
        f"{N_MODELS} models x {N_ITEMS} items in 4 benchmarks: 6,000 responses, 100.0% of all",
        f"{responses} (long), read in ",
        "600 responses (holdout 0.1)",
        "2PL, 1 dim; marginal-items (auto: with 200 items and 30 models",
        "converged after ",
        " s of compiling",
        "Predictions of 600 held-out responses",
        "model x benchmark mean",
        "Models by ability",
        "... 20 more",
        "Flags     models: none",
        "run/: items.csv, models.csv, fit.json, responses.npz, checkpoint/",
    ):
        assert text in outcome.out
    assert max(map(len, outcome.out.splitlines())) < 250
    assert "\x1b" not in outcome.out


def test_the_terminal_says_what_weights_and_trials_were_taken_for(
    responses, finished_run, tmp_path, capsys
):
    frame = pd.read_csv(responses).assign(weight=2, trial=1)
    frame.to_csv(tmp_path / "w.csv", index=False)
    parts = read_parts(
        [str(tmp_path / "w.csv")], AS_FOUND, holdout=None, test=None, seed=0, output=console()
    )
    said = capsys.readouterr().out
    assert "6,000 responses, 100.0% of all cells, weights 12,000 in all" in said
    assert "column 'weight': how many answers each response stands for" in said
    assert "column 'trial' is not kept: " in said
    parameters = FitResult.load(finished_run).parameters
    report = fit_report(parts.train, parameters, Progress(status=Status.converged), {}, {})
    assert report["choices"]["weights"] == "column 'weight'"
    assert list(report["choices"]["columns_not_kept"]) == ["trial"]
    assert (report["n_responses"], report["sum_of_weights"]) == (6000, 12000)


def test_starts_and_groups_of_models_in_words():
    starts = {"n": 3, "n_at_the_best": 3, "largest_spread": {"slope": 0.0012, "guessing": 0.0}}
    assert agreement(starts) == (
        "3 of 3 ended at the best log-likelihood; these differ by at most slope 0.0012"
    )
    apart = {"n": 3, "n_at_the_best": 1, "objectives": [-10.0, -12.5, -11.0], "largest_spread": {}}
    assert agreement(apart).endswith(
        "1 of 3 ended at the best log-likelihood, the others up to 2.5 below"
    )
    groups = [{"name": f"g{k}", "n_models": 5, "mean": [k], "sd": [1]} for k in range(8)]
    text = groups_of_models("size", groups)
    assert text.startswith("of size, mean +- sd of abilities: g0 (5 models) 0.00 +- 1.00; g1 ")
    assert text.endswith("; 2 more in fit.json")


def test_starts_and_groups_of_models_are_shown(irtjax, responses, tmp_path):
    frame = pd.read_csv(responses)
    frame["size"] = np.where(frame["model_id"].str[-1] < "5", "small", "large")
    frame = frame[frame["item_id"].str.endswith(("/0", "/1"))]
    frame.to_csv(tmp_path / "g.csv", index=False)
    outcome = irtjax("fit", "g.csv", "--model-group", "size", "--starts", 2, "--out", "run")
    assert outcome.code == 0, outcome.err
    assert "Starts    2 of 2 ended at the best" in outcome.out
    assert (
        "Groups    of size, mean +- sd of abilities: small (15 models) 0.00 +- 1.00" in outcome.out
    )


def test_quiet_prints_nothing(irtjax, responses):
    outcome = irtjax("fit", responses, "--out", "run", "--quiet")
    assert (outcome.code, outcome.out, outcome.err) == (0, "", "")


def test_a_test_file(irtjax, responses, tmp_path):
    frame = pd.read_csv(responses)
    is_test = np.random.default_rng(0).random(len(frame)) < 0.1
    frame[~is_test].to_csv(tmp_path / "train.csv", index=False)
    frame[is_test].iloc[::-1].to_csv(tmp_path / "test.csv", index=False)
    outcome = irtjax("fit", "train.csv", "--test", "test.csv", "--out", "run")
    assert (outcome.code, outcome.err) == (0, "")
    report = json.loads((tmp_path / "run" / "fit.json").read_text())
    assert report["heldout"]["cells"] == "test.csv"
    assert report["heldout"]["n"] == is_test.sum()
    assert report["test_inputs"][0]["path"] == "test.csv"
    assert len(FitResult.load(tmp_path / "run").heldout) == is_test.sum()


def test_a_leaking_test_file_is_warned_of(irtjax, responses):
    outcome = irtjax("fit", responses, "--test", responses, "--out", "run")
    assert outcome.code == 0
    assert len(outcome.error_lines) == 1
    assert outcome.err.startswith("warning: 6,000 of 6,000 test responses")


def test_group(irtjax, responses, tmp_path):
    outcome = irtjax("fit", responses, "--group", "benchmark", "--out", "run")
    assert outcome.code == 0
    assert "2PL, 1 dim, benchmark effects" in outcome.out
    assert "Models by expected score" in outcome.out
    models = pd.read_csv(tmp_path / "run" / "models.csv")
    assert [name for name in models if name.endswith("_effect")] == [
        f"benchmark-{k}_effect" for k in range(4)
    ]


def test_warnings_are_one_line_each_and_stand_once(irtjax, responses, tmp_path):
    frame = pd.read_csv(responses, dtype={"response": "Int64"})
    frame.loc[frame["model_id"] == "model-07", "response"] = pd.NA
    frame.to_csv(tmp_path / "r.csv", index=False)
    outcome = irtjax("fit", "r.csv", "--out", "run", "--strict")
    assert outcome.code == 3
    assert len(outcome.error_lines) == 1
    assert outcome.err.startswith("warning: 1 model without responses (first: 'model-07')")
    assert "models: 1 no_responses" in outcome.out
    models = pd.read_csv(tmp_path / "run" / "models.csv", index_col="model_id")
    assert list(models.index).index("model-07") == 7
    assert models["flags"]["model-07"] == "no_responses"


def test_strict(irtjax, responses, tmp_path):
    outcome = irtjax("fit", responses, "--out", "capped", "--strict", "--max-steps", 2)
    assert outcome.code == 3
    assert outcome.err.startswith("warning: max_steps: ")
    assert FitResult.load(tmp_path / "capped").status == "max_steps"
    assert irtjax("fit", responses, "--out", "lax", "--max-steps", 2).code == 0
    assert irtjax("fit", responses, "--out", "converged", "--strict").code == 0


def test_reader_options_reach_the_reader(irtjax, monkeypatch):
    given = {}

    def read(paths, **settings):
        given.update(settings, paths=paths)
        raise InputError("far enough")

    monkeypatch.setattr("irtjax.io.read_responses", read)
    expected = {
        "format": "wide",
        "model_column": "m",
        "item_column": "i",
        "response_column": "r",
        "duplicates": "mean",
        "fractional": "threshold=0.5",
        "id_column": "id",
        "metric": "acc",
        "filter": "strict",
        "runs": "all",
    }
    flags = [text for name in expected for text in ("--" + name.replace("_", "-"), expected[name])]
    switches = ["--items-in-rows", "--no-header"]
    assert irtjax("fit", "a.csv", "b/*.csv", *flags, *switches, "--out", "run").code == 2
    switched = {"items_in_rows": True, "no_header": True}
    assert given == expected | switched | {"paths": ["a.csv", "b/*.csv"]}


def test_strange_names_of_models_are_shown_as_they_are(irtjax, responses, tmp_path):
    text = responses.read_text().replace("model-00", "[bold]x[/bold] \U0001f600")
    (tmp_path / "r.csv").write_text(text)
    outcome = irtjax("fit", "r.csv", "--out", "run")
    assert outcome.code == 0
    assert pd.read_csv(tmp_path / "run" / "models.csv")["model_id"].iloc[0].startswith("[bold]x")


def test_a_narrow_terminal_cuts_no_numbers(irtjax, responses, monkeypatch):
    monkeypatch.setattr("irtjax.cli.console._WIDTH", 40)
    outcome = irtjax("fit", responses, "--holdout", 0.1, "--out", "run")
    assert "0." in outcome.out
    assert "…" not in outcome.out

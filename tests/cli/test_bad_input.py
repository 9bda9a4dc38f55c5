"""Bad input: one line on stderr, exit code 2, no traceback, nothing written (DESIGN section 6)."""

import json

import pandas as pd
import pytest

HEADER = "model_id,item_id,response\n"
GOOD = HEADER + "a,p,1\na,q,0\nb,p,0\nb,q,1\nc,p,1\nc,q,1\n"


@pytest.fixture
def refuses(irtjax, tmp_path, tree):
    """Run a command that must be refused and must change nothing; returns its one line."""

    def run(*arguments):
        before = tree(tmp_path)
        outcome = irtjax(*arguments)
        assert outcome.code == 2
        assert len(outcome.error_lines) == 1, outcome.err
        assert outcome.err.startswith("irtjax: error: ")
        assert "Traceback" not in outcome.out + outcome.err
        assert tree(tmp_path) == before
        return outcome.err

    return run


@pytest.mark.parametrize(
    "content, said",
    [
        pytest.param("", "is empty", id="empty file"),
        pytest.param("model_id,item_id\na,p\nb,p\n", "response", id="missing column"),
        pytest.param(
            "model,subject_id,item_id,response\na,a,p,1\nb,b,p,0\n",
            "--model-column",
            id="two candidates for a role",
        ),
        pytest.param(GOOD + "d,p,yes\n", "'yes'", id="yes"),
        pytest.param(GOOD + "d,p,2\n", "'2'", id="2"),
        pytest.param(GOOD + "d,p,-9\n", "'-9'", id="-9"),
        pytest.param(GOOD + "d,p,0.5\n", "--fractional", id="fraction, CASES 12"),
        pytest.param(GOOD + "a,p,0\n", "--duplicates", id="duplicate pair"),
        pytest.param(HEADER + "a,p,1\na,q,0\n", "1 model", id="one model"),
        pytest.param(HEADER + "a,p,\nb,p,\n", "no response", id="no response at all"),
        pytest.param(GOOD.encode("utf-16"), "UTF-16", id="not UTF-8"),
        pytest.param(GOOD.encode() + b"caf\xe9,p,1\n", "UTF-8", id="Latin-1"),
    ],
)
def test_a_file(refuses, tmp_path, content, said):
    data = content if isinstance(content, bytes) else content.encode()
    (tmp_path / "r.csv").write_bytes(data)
    assert said in refuses("fit", "r.csv", "--out", "run")


def test_truncated_parquet(refuses, tmp_path):
    frame = pd.DataFrame({"model_id": ["a"] * 99, "item_id": range(99), "response": 1})
    frame.to_parquet(tmp_path / "r.parquet")
    whole = (tmp_path / "r.parquet").read_bytes()
    (tmp_path / "r.parquet").write_bytes(whole[: len(whole) // 2])
    assert "cannot read r.parquet" in refuses("fit", "r.parquet", "--out", "run")


@pytest.mark.parametrize(
    "arguments, said",
    [
        pytest.param(["nothing.csv"], "nothing.csv does not exist", id="no such path"),
        pytest.param(["*.parquet"], "no file matches", id="no match"),
        pytest.param(["r.csv", "--dims", 3], "3 dims need more than 3 models", id="dims"),
        pytest.param(["r.csv", "--dims", 0], "dims", id="no dims"),
        pytest.param(["r.csv", "--family", "1pl", "--dims", 2], "1pl with 2 dims", id="1PL"),
        pytest.param(["r.csv", "--family", "5pl"], "'5pl'", id="family"),
        pytest.param(["r.csv", "--estimator", "magic"], "'magic'", id="estimator"),
        pytest.param(["r.csv", "--item-distribution", "flat"], "'flat'", id="distribution"),
        pytest.param(
            ["r.csv", "--item-distribution", "empirical", "--dims", 2, "--nodes", 99],
            "use fewer nodes",
            id="grid",
        ),
        pytest.param(["r.csv", "--max-steps", 0], "max_steps", id="steps"),
        pytest.param(["r.csv", "--group", "benchmark"], "'benchmark'", id="group"),
        pytest.param(["r.csv", "--holdout", 1.5], "--holdout", id="holdout"),
        pytest.param(["r.csv", "--holdout", "nan"], "--holdout", id="holdout of nan"),
        pytest.param(["r.csv", "--holdout", 0.01], "0 of 6 responses", id="small holdout"),
        pytest.param(["r.csv", "--holdout", 0.1, "--test", "r.csv"], "exclude", id="two tests"),
        pytest.param(["r.csv", "--test", "no.csv"], "no.csv does not exist", id="no test file"),
        pytest.param(["r.csv", "--force", "--resume"], "one of them", id="force and resume"),
        pytest.param(["r.csv", "--resume"], "nothing to resume", id="resume"),
        pytest.param(["r.csv", "--checkpoint-every", -1], "--checkpoint-every", id="checkpoints"),
        pytest.param(["r.csv", "--format", "xlsx"], "'xlsx'", id="format"),
        pytest.param(["r.csv", "--duplicates", "best"], "'best'", id="duplicates"),
        pytest.param(["r.csv", "--id-column", "x"], "'x'", id="id column"),
        pytest.param(["r.csv", "--dims", "two"], "--dims", id="no number"),
        pytest.param(["r.csv", "--dim", 2], "--dims", id="no such option"),
        pytest.param([], "RESPONSES", id="no responses"),
        pytest.param(
            ["r.csv", "--prior", "slope=normal(0,1)", "--no-priors"], "one of them", id="no priors"
        ),
        pytest.param(
            ["r.csv", "--prior", "slope=off", "--prior", "slope=normal(0,1)"],
            "--prior slope is given twice",
            id="a prior twice",
        ),
        pytest.param(
            ["r.csv", "--prior", "guessing=beta(5,17)"],
            "family 2pl has no guessing; drop it",
            id="a prior of another family",
        ),
        pytest.param(
            ["r.csv", "--prior", "slope=normal(0,1e-300)"], "sd of a normal prior", id="tiny prior"
        ),
        pytest.param(["r.csv", "--prior", "slope=normal(0,1"], "not understood", id="no bracket"),
        pytest.param(
            ["r.csv", "--prior", "slope=normal(0,1)", "--estimator", "marginal-items"],
            "prior slope=normal(0, 1) has no use",
            id="a prior of another estimator",
        ),
        pytest.param(
            ["r.csv", "--no-priors", "--estimator", "marginal-items"],
            "marginal-items integrates the items out",
            id="priors that are not there",
        ),
    ],
)
def test_settings(refuses, tmp_path, arguments, said):
    (tmp_path / "r.csv").write_text(GOOD)
    assert said in refuses("fit", *arguments, "--out", "run")


def test_usage_names_the_help(refuses):
    assert "see irtjax fit --help" in refuses("fit", "r.csv")
    assert "see irtjax --help" in refuses("fti")


def test_test_responses_of_unknown_ids(refuses, tmp_path):
    (tmp_path / "r.csv").write_text(GOOD)
    (tmp_path / "t.csv").write_text(HEADER + "a,new,1\nb,newer,1\n")
    said = refuses("fit", "r.csv", "--test", "t.csv", "--out", "run")
    assert "2 items of the test data" in said
    assert "'new'" in said


def test_an_output_folder_that_exists(refuses, tmp_path):
    (tmp_path / "r.csv").write_text(GOOD)
    (tmp_path / "run").mkdir()
    assert "--force" in refuses("fit", "r.csv", "--out", "run")
    (tmp_path / "run" / "thesis.txt").write_text("three years of work")
    assert "run exists" in refuses("fit", "r.csv", "--out", "run")
    assert "not the folder of a run" in refuses("fit", "r.csv", "--out", "run", "--force")
    assert "nothing to resume" in refuses("fit", "r.csv", "--out", "run", "--resume")


def test_an_output_that_cannot_be_a_folder(refuses, tmp_path):
    (tmp_path / "r.csv").write_text(GOOD)
    assert "is not a folder" in refuses("fit", "r.csv", "--out", "r.csv", "--force")
    assert "is not a folder" in refuses("fit", "r.csv", "--out", "r.csv/run")
    (tmp_path / "gone").symlink_to(tmp_path / "nowhere")
    assert "is not a folder" in refuses("fit", "r.csv", "--out", "gone", "--force")


def test_a_training_folder_of_another_tool_is_left_alone(refuses, tmp_path):
    (tmp_path / "r.csv").write_text(GOOD)
    (tmp_path / "run" / "checkpoint").mkdir(parents=True)
    (tmp_path / "run" / "checkpoint" / "weights.pt").write_text("dear")
    assert "not the folder of a run" in refuses("fit", "r.csv", "--out", "run", "--force")
    (tmp_path / "run" / "fit.json").write_text(json.dumps({"slope": 1}))
    assert "not the folder of a run" in refuses("fit", "r.csv", "--out", "run", "--force")


def test_predict(refuses, tmp_path, finished_run):
    pairs = tmp_path / "p.csv"
    pairs.write_text("model_id,item_id\nmodel-00,nothing\n")
    assert "'nothing'" in refuses("predict", finished_run, "p.csv", "--out", "o.csv")
    pairs.write_text("model_id,thing\nmodel-00,nothing\n")
    assert "item" in refuses("predict", finished_run, "p.csv", "--out", "o.csv")
    assert "not a folder" in refuses("predict", "nowhere", "p.csv", "--out", "o.csv")
    assert "finished" in refuses("predict", ".", "p.csv", "--out", "o.csv")
    assert "cannot read no.csv" in refuses("predict", finished_run, "no.csv", "--out", "o.csv")
    assert "p.csv exists" in refuses("predict", finished_run, "p.csv", "--out", "p.csv")
    assert "must end with .csv" in refuses("predict", finished_run, "p.csv", "--out", "o.json")
    assert "no folder" in refuses("predict", finished_run, "p.csv", "--out", "no/o.csv")


def test_an_input_is_never_replaced(irtjax, finished_run, responses, tmp_path):
    items = (finished_run / "items.csv").read_bytes()
    outputs = [("quality", finished_run, "--out", finished_run / "items.csv")]
    outputs += [("select", finished_run, "--budget", 3, "--out", finished_run / "items.csv")]
    copy = tmp_path / "new.csv"
    copy.write_bytes(responses.read_bytes())
    outputs += [(name, finished_run, copy, "--out", copy) for name in ("score", "adapt", "predict")]
    for arguments in outputs:
        outcome = irtjax(*arguments, "--force")
        assert outcome.code == 2
        assert "is read by this command" in outcome.err
    assert (finished_run / "items.csv").read_bytes() == items
    assert copy.read_bytes() == responses.read_bytes()


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["--models", 0], "models"),
        (["--missing", 1], "missing"),
        (["--missing-pattern", "stripes"], "'stripes'"),
        (["--benchmarks", 5000], "n_benchmarks"),
        (["--family", "9pl"], "'9pl'"),
        (["--truth", "t.csv"], ".npz"),
        (["--truth", "no/t.npz"], "no folder"),
        (["--out", "r.txt"], "must end with .csv"),
        (["--out", "t.npz", "--truth", "t.npz"], "two outputs"),
    ],
)
def test_simulate(refuses, arguments, said):
    assert said in refuses("simulate", "--out", "r.csv", *arguments)


def test_demo(refuses, tmp_path):
    (tmp_path / "d").mkdir()
    assert "d exists" in refuses("demo", "--out", "d")


def test_a_broken_compiler(refuses, tmp_path, monkeypatch):
    from irtjax.compiler_check import MiscompilationError

    def broken():
        raise MiscompilationError("jaxlib 0.10.2 computes wrong numbers")

    monkeypatch.setattr("irtjax.compiler_check.require_correct_compiler", broken)
    (tmp_path / "r.csv").write_text(GOOD)
    assert "wrong numbers" in refuses("fit", "r.csv", "--out", "run")


def test_an_interrupt(irtjax, tmp_path, tree, monkeypatch):
    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("irtjax.io.read_responses", interrupted)
    before = tree(tmp_path)
    outcome = irtjax("fit", "r.csv", "--out", "run")
    assert outcome.code == 130
    assert outcome.error_lines == ["irtjax: interrupted"]
    assert tree(tmp_path) == before

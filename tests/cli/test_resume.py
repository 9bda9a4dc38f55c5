"""A fit that is killed and resumed equals one that was not; a checkpoint knows its fit."""

import signal
import sys

import pytest

# Runs the command line and kills the process, as a batch system would, after a number of saves.
KILLED = """
import os, signal, sys
from irtjax.cli import main
from irtjax.fit import checkpoints
saves, save = int(sys.argv.pop(1)), checkpoints.save_arrays

def save_and_die(*arguments):
    global saves
    save(*arguments)
    saves -= 1
    if not saves:
        os.kill(os.getpid(), signal.SIGKILL)

checkpoints.save_arrays = save_and_die
sys.exit(main())
"""
COMMAND = [sys.executable, "-c", "import sys; from irtjax.cli import main; sys.exit(main())"]


@pytest.fixture
def settings(responses):
    return ["fit", responses, "--holdout", 0.1, "--max-steps", 40]


def test_killed_and_resumed_equals_uninterrupted(process, irtjax, settings, tmp_path):
    saving = ["--checkpoint-every", 5, "--quiet"]
    killed = process("-c", KILLED, 2, *settings, *saving, "--out", "run")
    assert killed.code == -signal.SIGKILL, killed.err
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["checkpoint"]
    unfinished = irtjax("predict", "run", "p.csv", "--out", "o.csv")
    assert (unfinished.code, len(unfinished.error_lines)) == (2, 1)

    resumed = process(*COMMAND[1:], *settings, *saving, "--out", "run", "--resume")
    assert resumed.code == 0, resumed.err
    # In a process of its own, too: here the programs may have been compiled, there loaded.
    whole = process(*COMMAND[1:], *settings, "--quiet", "--out", "whole")
    assert whole.code == 0, whole.err
    for name in ("items.csv", "models.csv"):
        assert (tmp_path / "run" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert sorted(path.name for path in (tmp_path / "run" / "checkpoint").iterdir()) == [
        "result",
        "steps",
    ]


def test_a_checkpoint_of_other_data_is_refused_by_name(irtjax, responses, tmp_path, tree):
    def fit(path, *more):
        return irtjax("fit", path, "--out", "run", "--max-steps", 10, "--quiet", *more)

    fit(responses, "--checkpoint-every", 5)
    before = tree(tmp_path / "run")
    text = responses.read_text().rstrip("\n")
    other = text[:-1] + ("0" if text.endswith("1") else "1")
    (tmp_path / "other.csv").write_text(other)
    for changed, named in (
        (["other.csv"], "data"),
        ([responses, "--dims", 2], "dims"),
        ([responses, "--seed", 5], "seed"),
    ):
        outcome = fit(changed[0], *changed[1:], "--resume")
        assert outcome.code == 2
        assert len(outcome.error_lines) == 1
        assert f"its {named} is" in outcome.err
        assert tree(tmp_path / "run") == before


def test_force_discards_the_states_of_an_earlier_fit(irtjax, responses, tmp_path):
    def fit(*more):
        return irtjax("fit", responses, "--out", "run", "--quiet", *more)

    assert fit("--checkpoint-every", 5).code == 0
    assert fit("--force", "--seed", 1, "--checkpoint-every", 5).code == 0
    assert fit("--resume", "--seed", 1).code == 0
    assert fit("--force").code == 0
    assert not (tmp_path / "run" / "checkpoint" / "steps").exists()

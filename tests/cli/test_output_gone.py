"""A run is not lost for the sake of what is printed: `| head`, a full disk behind stdout."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

# JAX, imported by the tests, lets XLA log; the command keeps it silent unless told otherwise.
ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "TF_CPP_MIN_LOG_LEVEL"}
COMMAND = [sys.executable, "-m", "irtjax", "simulate", "--models", "5", "--items", "6"]


def test_a_reader_that_goes_away_costs_nothing(tmp_path: Path) -> None:
    read, write = os.pipe()
    os.close(read)  # nobody reads
    done = subprocess.run(
        [*COMMAND, "--out", str(tmp_path / "r.csv")],
        stdout=write,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        env=ENVIRONMENT,
    )
    os.close(write)
    assert done.returncode == 0
    assert done.stderr == ""
    assert (tmp_path / "r.csv").is_file()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_behind_stdout_is_one_warning(tmp_path: Path) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*COMMAND, "--out", str(tmp_path / "r.csv")],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            env=ENVIRONMENT,
        )
    assert done.returncode == 0
    assert done.stderr.splitlines() == [
        "warning: cannot print the results: No space left on device"
    ]
    assert (tmp_path / "r.csv").is_file()


@pytest.mark.parametrize(
    "arguments",
    [
        ["adapt", "RUN", "DATA", "--out", "o.csv"],
        ["score", "RUN", "DATA", "--predict-score", "--by", "benchmark", "--out", "o.csv"],
        ["quality", "RUN", "--out", "o.csv"],
        ["select", "RUN", "--budget", "9", "--out", "o.csv", "--out", "o.txt"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_of_several_files_all_are_written_or_none(
    irtjax, finished_run, responses, tmp_path, monkeypatch, arguments
) -> None:
    """The second one meets a full disk."""
    named = {"RUN": finished_run, "DATA": responses}
    replace, moved = os.replace, []
    monkeypatch.setattr(os, "replace", lambda *pair: moved.append(pair) or replace(*pair))
    opened = []

    def write_until_full(path: Path, mode: str = "r", *rest: object, **more: object) -> object:
        if mode == "xb":
            opened.append(path)
            if len(opened) == 2:
                raise OSError(28, "No space left on device")
        return open(path, mode, *rest, **more)

    monkeypatch.setattr("irtjax.io.write.open", write_until_full, raising=False)
    outcome = irtjax(*(named.get(each, each) for each in arguments))
    assert outcome.code == 2
    assert "cannot write o" in outcome.err
    assert "No space left on device" in outcome.err
    assert (len(opened), moved, list(tmp_path.iterdir())) == (2, [], [])

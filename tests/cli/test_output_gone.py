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

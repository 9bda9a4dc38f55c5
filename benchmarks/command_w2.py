"""The command `irtjax fit` on W2's long CSV, everything included: start, reading, compiling."""

import json
import sys
import tempfile
from pathlib import Path

from benchmarks.measure import timed_command
from benchmarks.problems import reference_problem_w2
from irtjax.io import write_responses


def run(n_runs: int = 3) -> dict[str, float | str]:
    """Each run is a new process without a compilation cache."""
    with tempfile.TemporaryDirectory() as folder:
        path, out = Path(folder) / "w2.csv", Path(folder) / "run"
        write_responses(reference_problem_w2().train, path)
        command = [sys.executable, "-m", "irtjax", "fit", str(path), "--out", str(out)]
        command += ["--dims", "2", "--holdout", "0.1", "--force", "--no-cache"]
        timing = timed_command(command, n_runs)
        report = json.loads((out / "fit.json").read_text())
    return {
        "cpu_seconds": timing.cpu_seconds,
        "wall_seconds": timing.wall_seconds,
        "compile_seconds": report["compile_seconds"],
        "status": report["status"],
        "heldout_log_loss": report["heldout"]["model"]["log_loss"],
    }

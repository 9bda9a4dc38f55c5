"""A whole `psn` fit with the command, from CSV to the run's folder."""

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.environments import ROOT
from benchmarks.measure import timed_command

__all__ = ["whole_fit"]


def whole_fit() -> dict[str, Any]:
    """Wall and CPU seconds of `irtjax fit train.csv --estimator psn --family 4pl`, twice.

    The first process compiles everything; the second one reads the compilation cache that it left.
    """
    with tempfile.TemporaryDirectory() as folder:
        split = [sys.executable, "scripts/psn_irt_split.py", "--out", folder]
        timed_command(split, 1, cwd=ROOT)
        run, train = Path(folder) / "run", Path(folder) / "train.csv"
        command = [sys.executable, "-m", "irtjax", "fit", str(train), "--estimator", "psn"]
        command += ["--family", "4pl", "--out", str(run), "--force", "--quiet"]
        cache = {"XDG_CACHE_HOME": str(Path(folder) / "cache")}
        first, again = (
            timed_command(command, 1, cwd=ROOT, env=os.environ | cache) for _ in range(2)
        )
    return {
        name: {"wall_seconds": timing.wall_seconds, "cpu_seconds": timing.cpu_seconds}
        for name, timing in (("first", first), ("again", again))
    }

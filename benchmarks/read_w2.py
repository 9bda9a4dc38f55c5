"""Reading W2 as a long CSV of 3.06 million rows."""

import tempfile
from pathlib import Path

from benchmarks.measure import peak_mebibytes, timed
from benchmarks.problems import reference_problem_w2
from irtjax.io import read_responses, write_responses


def run(n_runs: int = 3) -> dict[str, float | str]:
    """Write the CSV to a temporary folder, then read it."""
    problem = reference_problem_w2()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "w2.csv"
        write_responses(problem.train, path)
        timing = timed(lambda: read_responses(path), n_runs)
        size = path.stat().st_size
    is_same = timing.value.n_responses == problem.train.n_responses
    return {
        "cpu_seconds": timing.cpu_seconds,
        "wall_seconds": timing.wall_seconds,
        "file_mebibytes": size / 2**20,
        "n_responses": timing.value.n_responses,
        "peak_mebibytes": peak_mebibytes(),
        "status": "all responses read" if is_same else "RESPONSES DIFFER",
    }

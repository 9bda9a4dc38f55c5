"""W2 at two dims, from the matrix in memory to the converged fit, warm; quality beside it."""

import warnings

from benchmarks.measure import Timing, peak_mebibytes, timed
from benchmarks.problems import reference_problem_w2
from irtjax.errors import IrtjaxWarning
from irtjax.fit.api import fit
from irtjax.fit.result import FitResult
from irtjax.model.metrics import all_metrics
from irtjax.model.spec import ModelSpec

DIMS = 2


def run(n_runs: int = 5) -> dict[str, float | str]:
    """One cold fit (its compilation is reported apart), then `n_runs` warm ones."""
    warnings.simplefilter("ignore", IrtjaxWarning)
    problem = reference_problem_w2()
    cold: Timing = timed(lambda: fit(problem.train, ModelSpec("2pl", DIMS)), 1)
    warm: Timing = timed(lambda: fit(problem.train, ModelSpec("2pl", DIMS)), n_runs)
    result: FitResult = warm.value
    cells = problem.test
    metrics = all_metrics(result.predict_cells(cells.model_index, cells.item_index), cells.response)
    return {
        "cpu_seconds": warm.cpu_seconds,
        "wall_seconds": warm.wall_seconds,
        "cold_wall_seconds": cold.wall_seconds,
        "compile_seconds": cold.value.report["compile_seconds"],
        "peak_mebibytes": peak_mebibytes(),
        "status": result.status,
        "n_steps": result.report["n_steps"],
        "elbo": result.report["log_likelihood"],
        "heldout_log_loss": metrics["log_loss"],
        "heldout_accuracy": metrics["accuracy"],
    }

"""One turn of irtjax on a named problem: a cold fit, warm fits, quality; JSON on the last line.

    python -m benchmarks.irtjax_process W2 0

The process has no compilation cache, so that compiling is measured and not read from a disk.
"""

import argparse
import json
import warnings
from typing import Any

from benchmarks.catalogue import PROBLEMS, IrtjaxRun
from benchmarks.measure import peak_mebibytes, timed
from benchmarks.problems import Problem
from benchmarks.quality import heldout_quality, recovery
from benchmarks.selection_speed import measured_picks
from irtjax.errors import IrtjaxWarning
from irtjax.fit.api import fit
from irtjax.fit.result import FitResult
from irtjax.model.spec import ModelSpec

__all__ = ["measured"]


def measured(problem: Problem, run: IrtjaxRun) -> dict[str, Any]:
    """Seconds, peak memory, objective and quality of one setting.

    `cpu_seconds` is the median of the warm fits, data in memory to estimates in memory.
    """
    warnings.simplefilter("ignore", IrtjaxWarning)
    spec = ModelSpec(run.family, run.dims)
    before = peak_mebibytes()
    cold = timed(lambda: fit(problem.train, spec, **run.arguments), 1)
    cold_peak = peak_mebibytes()
    warm = timed(lambda: fit(problem.train, spec, **run.arguments), run.warm_fits)
    report = warm.value.report
    return {
        "cpu_seconds": warm.cpu_seconds,
        "wall_seconds": warm.wall_seconds,
        "cold_cpu_seconds": cold.cpu_seconds,
        "compile_seconds": cold.value.report["compile_seconds"],
        "peak_mebibytes": cold_peak,
        "peak_mebibytes_with_data_only": before,
        "n_steps": report["n_steps"],
        "status": warm.value.status,
        "objective": report["log_likelihood"],
        "objective_is": report["log_likelihood_is"],
        "estimator": report["estimator"],
        **_quality(problem, warm.value),
    }


def _quality(problem: Problem, result: FitResult) -> dict[str, float]:
    if len(problem.test):
        cells = problem.test
        return heldout_quality(problem, result.predict_cells(cells.model_index, cells.item_index))
    assert problem.truth is not None
    table = result.item_parameters()
    parameters = {
        "slope": table["discrimination"].to_numpy(),
        "difficulty": table["difficulty"].to_numpy(),
        "guessing": table["guessing"].to_numpy(),
        "feasibility": table["feasibility"].to_numpy(),
    }
    return recovery(problem.truth, parameters)


def main() -> None:
    """Measure the setting that the arguments name."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("problem", choices=PROBLEMS)
    parser.add_argument("run", type=int, help="position among the problem's settings of irtjax")
    arguments = parser.parse_args()
    plan = PROBLEMS[arguments.problem]
    problem, run = plan.make(), plan.irtjax[arguments.run]
    if isinstance(problem, Problem):
        print(json.dumps(measured(problem, run)))
    else:
        print(json.dumps(measured_picks(problem, run.arguments["picks"])))


if __name__ == "__main__":
    main()

"""The best setting for the PSN-IRT split, chosen on a validation part of its train cells only.

    python -m benchmarks.psn_irt_choice --dims 3 4 5 --components 1 3 4

Each setting is fitted to 80% of the train cells and scored on the rest; the best one is fitted to
all train cells and scored once on the test cells, and on those outside the copied MMLU block.
"""

import argparse
import itertools
import json
import time
import warnings

import numpy as np

from benchmarks.problems import Problem, problem_w1
from irtjax.data.cells import Cells
from irtjax.data.responses import ResponseMatrix
from irtjax.data.splits import holdout
from irtjax.errors import IrtjaxWarning
from irtjax.fit.api import fit
from irtjax.fit.result import FitResult
from irtjax.model.metrics import all_metrics
from irtjax.model.spec import ModelSpec

VALIDATION_SHARE = 0.2
MAX_STEPS = 300


def fitted(
    data: ResponseMatrix, family: str, dims: int, components: int
) -> tuple[FitResult, float]:
    """A fit with benchmark effects, and its CPU seconds (compilation included)."""
    start = time.process_time()
    result = fit(
        data,
        ModelSpec(family, dims),
        group="benchmark",
        item_distribution="mixture" if components > 1 else "normal",
        components=components,
        max_steps=MAX_STEPS,
    )
    return result, time.process_time() - start


def scored(result: FitResult, cells: Cells, mask: np.ndarray | None = None) -> dict[str, float]:
    """Metrics on cells (all, or those of a mask)."""
    chosen = slice(None) if mask is None else mask
    probability = result.predict_cells(cells.model_index[chosen], cells.item_index[chosen])
    return all_metrics(probability, cells.response[chosen])


def main() -> None:
    """Choose, refit, score; print a line a setting and JSON at the end."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dims", type=int, nargs="+", default=[3, 4, 5])
    parser.add_argument("--components", type=int, nargs="+", default=[1, 3, 4])
    parser.add_argument("--family", nargs="+", default=["2pl"])
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", IrtjaxWarning)
    problem: Problem = problem_w1()
    part, validation = holdout(problem.train, VALIDATION_SHARE, seed=1)
    losses = {}
    for setting in itertools.product(arguments.family, arguments.dims, arguments.components):
        result, seconds = fitted(part, *setting)
        metrics = scored(result, validation)
        losses[setting] = metrics["log_loss"]
        family, dims, components = setting
        print(
            f"{family} dims {dims} components {components}: validation log-loss "
            f"{metrics['log_loss']:.5f} accuracy {metrics['accuracy']:.4f} "
            f"{result.status} after {result.report['n_steps']} steps, {seconds:.0f} CPU s",
            flush=True,
        )
    best = min(losses, key=losses.__getitem__)
    result, seconds = fitted(problem.train, *best)
    outside = None if problem.is_copied is None else ~problem.is_copied
    report = {
        "chosen": dict(zip(("family", "dims", "components"), best, strict=True)),
        "cpu_seconds": seconds,
        "status": result.status,
        "n_steps": result.report["n_steps"],
        "test": scored(result, problem.test),
        "test_outside_copied_block": scored(result, problem.test, outside),
    }
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()

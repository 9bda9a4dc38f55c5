"""CPU seconds of one epoch of the published network: all rows moved, or the touched ones only."""

import dataclasses
from typing import Any

import jax

from benchmarks.measure import timed
from benchmarks.problems import Problem
from irtjax.fit.settings import FitSettings
from irtjax.model.priors import Priors
from irtjax.model.spec import ModelSpec
from irtjax.nets.route import PsnRoute
from irtjax.nets.settings import Network
from irtjax.parallel import items_mesh

__all__ = ["REFERENCE", "epoch_seconds"]

# Measured for the references on such a machine: PSN-IRT's own code, and the same network written
# with lookups in PyTorch.
REFERENCE = {"published code": 127.0, "PyTorch with lookups": 14.5}


def epoch_seconds(problem: Problem, n_runs: int = 3) -> dict[str, Any]:
    """Median seconds of a warm epoch by kind of update, validation included.

    320,766 training cells (80% of them), batches of 512, 4PL.
    """
    mesh, found = items_mesh(), {}
    for updates in ("dense", "touched"):
        network = dataclasses.replace(Network.published(), updates=updates)
        settings = FitSettings(estimator="psn", network=network)
        route = PsnRoute(problem.train, ModelSpec("4pl"), Priors.off(), settings)
        blocks = route.lay_out(mesh)
        with jax.set_mesh(mesh):
            state = route.init(blocks, jax.random.key(0))
            step = jax.jit(route.estimator.step)
            run = lambda step=step, blocks=blocks, state=state: jax.block_until_ready(  # noqa: E731
                step(blocks, state)
            )
            run()
            found[updates] = timed(run, n_runs).cpu_seconds
    return {"cpu_seconds": found, "reference_cpu_seconds": REFERENCE}

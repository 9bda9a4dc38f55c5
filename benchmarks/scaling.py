"""CPU seconds of a fit against the numbers of models, items and dims, and the density.

    python -m benchmarks scaling

Each axis is a process. A fit has 10 steps, whatever the size (`fixed`), or goes on until it
converges (`converged`); the time is from the matrix in memory to the estimates, everything but
compiling, the median of the warm fits. The items go up by a factor of 64, and so do the cells.
"""

import argparse
import dataclasses
import functools
import json
import warnings
from typing import Any

import numpy as np
from scipy.special import expit

from benchmarks.measure import peak_mebibytes, timed
from irtjax.data.responses import ResponseMatrix
from irtjax.errors import IrtjaxWarning
from irtjax.fit.api import fit
from irtjax.model.spec import ModelSpec

__all__ = ["AXES", "Axis", "simulated", "swept"]

FIXED_STEPS = 10
_WARM_FITS = 3


@dataclasses.dataclass(frozen=True)
class Axis:
    """One sweep: `name` is what changes, the rest is held at the given sizes."""

    name: str
    unit: str
    sizes: tuple[float, ...]
    models: int = 100
    items: int = 8_000
    dims: int = 2
    density: float = 1.0
    to_convergence: bool = False

    @property
    def held(self) -> str:
        """What is held fixed, in words."""
        parts = {
            "models": f"{self.models:,} models",
            "items": f"{self.items:,} items",
            "dims": "1 dim" if self.dims == 1 else f"{self.dims} dims",
            "density": "all cells" if self.density == 1 else f"{self.density:g} of the cells",
        }
        return ", ".join(text for name, text in parts.items() if name != self.name)

    def at(self, size: float) -> dict[str, Any]:
        """Arguments of `simulated` at one size."""
        held = {
            "models": self.models,
            "items": self.items,
            "dims": self.dims,
            "density": self.density,
        }
        return held | {self.name: size if self.name == "density" else int(size)}


AXES = {
    "models": Axis("models", "count", (32, 128, 512, 2048), items=2_000),
    "items": Axis("items", "count", (1_000, 4_000, 16_000, 64_000)),
    "items-converged": Axis("items", "count", (1_000, 4_000, 16_000, 64_000), to_convergence=True),
    "dims": Axis("dims", "count", (1, 2, 4, 8)),
    "density": Axis(
        "density",
        "share of cells observed",
        (0.005, 0.02, 0.1, 0.3, 1.0),
        models=500,
        dims=1,
    ),
}


def simulated(models: int, items: int, dims: int, density: float) -> ResponseMatrix:
    """A 2PL: theta N(0, 1), slopes lognormal(0, .5) on one dim and .35 of it on the others."""
    rng = np.random.default_rng(61)
    theta = rng.normal(size=(models, dims))
    slope = 0.35 * rng.lognormal(0, 0.5, (items, dims))
    slope[np.arange(items), rng.integers(0, dims, items)] /= 0.35
    probability = expit(theta @ slope.T + rng.normal(0, 1.5, items))
    responses = (rng.random((models, items)) < probability).astype(np.int8)
    if density < 1:
        responses[rng.random((models, items)) >= density] = -1
    return ResponseMatrix.from_dense(responses)


def swept(axis: Axis) -> dict[str, Any]:
    """Measure every size of an axis in this process."""
    warnings.simplefilter("ignore", IrtjaxWarning)
    points = []
    for size in axis.sizes:
        arguments = axis.at(size)
        data = simulated(**arguments)
        spec = ModelSpec("2pl", arguments["dims"])
        steps = {} if axis.to_convergence else {"max_steps": FIXED_STEPS}
        fitted = functools.partial(fit, data, spec, **steps)
        fitted()
        warm = timed(fitted, _WARM_FITS)
        points.append(
            {
                "size": size,
                "n_cells": data.n_responses,
                "cpu_seconds": warm.cpu_seconds,
                "n_steps": warm.value.report["n_steps"],
                "status": warm.value.status,
                "peak_mebibytes_so_far": peak_mebibytes(),
            }
        )
    what = "until converged" if axis.to_convergence else f"{FIXED_STEPS} steps"
    return {
        "axis": axis.name,
        "unit": axis.unit,
        "held": axis.held,
        "what": f"irtjax 2PL fits, {what}, compiling apart",
        "points": points,
    }


def main() -> None:
    """Measure the axis that the argument names; JSON on the last line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("axis", choices=AXES)
    print(json.dumps(swept(AXES[parser.parse_args().axis])))


if __name__ == "__main__":
    main()

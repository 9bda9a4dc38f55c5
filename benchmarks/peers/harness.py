"""What every peer's script shares: reading the problem, timing, writing the results.

Imported in the peers' own environments, so it needs nothing but the standard library and NumPy.
A script defines `run(problem, settings, clock) -> Outcome` and ends in `main(run, package)`. The
clock's part `fit` is what is compared; `cold` is a first fit that also compiles, if there is one.
"""

import argparse
import atexit
import contextlib
import dataclasses
import importlib.metadata
import json
import os
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

__all__ = [
    "Clock",
    "Outcome",
    "PeerProblem",
    "extrapolated",
    "keep_compiled",
    "peak_mebibytes",
    "main",
    "sigmoid",
    "with_nan",
]


@dataclasses.dataclass(frozen=True)
class PeerProblem:
    """A problem as its file holds it: observed cells, cells to predict, or items to select from.

    Attributes:
        shape: numbers of models and items.
        model_index: row of each observed cell (with `item_index`, `response`).
        test_model: row of each cell to predict (with `test_item`).
        items: generating item parameters; only for selection, where there are no cells.
    """

    shape: tuple[int, int]
    model_index: np.ndarray
    item_index: np.ndarray
    response: np.ndarray
    test_model: np.ndarray
    test_item: np.ndarray
    items: dict[str, np.ndarray]

    @classmethod
    def read(cls, path: str | Path) -> "PeerProblem":
        """Read the .npz that `benchmarks.processes` writes."""
        with np.load(path) as arrays:
            found = {name: arrays[name] for name in arrays.files}
        prefix = "item__"
        names = [name for name in found if name.startswith(prefix)]
        items = {name.removeprefix(prefix): found.pop(name) for name in names}
        return cls(shape=tuple(found.pop("shape").tolist()), items=items, **found)

    def dense(self) -> np.ndarray:
        """Models x items, int8, -1 where missing."""
        matrix = np.full(self.shape, -1, np.int8)
        matrix[self.model_index, self.item_index] = self.response
        return matrix


def with_nan(matrix: np.ndarray, dtype: Any = np.float64) -> np.ndarray:
    """A copy with NaN where the matrix is -1."""
    return np.where(matrix < 0, np.nan, matrix).astype(dtype)


def sigmoid(logit: np.ndarray) -> np.ndarray:
    """`1 / (1 + exp(-z))` without overflow."""
    return 0.5 * (1 + np.tanh(0.5 * logit))


@dataclasses.dataclass
class Outcome:
    """What a fit left.

    Attributes:
        probability: of each test cell; None where the problem has none.
        parameters: item parameters by name (`slope`, `difficulty`, `guessing`, `feasibility`).
        report: what else to say: steps, convergence, seconds extrapolated, ...
    """

    probability: np.ndarray | None = None
    parameters: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)
    report: dict[str, Any] = dataclasses.field(default_factory=dict)


class Clock:
    """CPU (user + system, all threads and children) and wall seconds of named parts of a run."""

    def __init__(self) -> None:
        self.cpu: dict[str, float] = {}
        self.wall: dict[str, float] = {}

    @contextlib.contextmanager
    def __call__(self, part: str) -> Iterator[None]:
        """Add the block's seconds to a part: `import`, `fit`, ..."""
        cpu, wall = _cpu_seconds(), time.perf_counter()
        try:
            yield
        finally:
            self.cpu[part] = self.cpu.get(part, 0.0) + _cpu_seconds() - cpu
            self.wall[part] = self.wall.get(part, 0.0) + time.perf_counter() - wall


def extrapolated(settings: dict[str, Any], clock: Clock) -> dict[str, Any]:
    """What to report where `epochs` of the `of_epochs` that the schedule has were run."""
    run, whole = settings["epochs"], settings.get("of_epochs")
    if not whole:
        return {}
    return {
        "extrapolated_cpu_seconds": clock.cpu["fit"] * whole / run,
        "note": f"{run} of {whole:,} epochs run; quality is of these",
    }


def keep_compiled() -> None:
    """Let JAX keep what it compiles in a folder of this process.

    A peer that makes new functions at every fit compiles at every fit; with this the second one is
    warm all the same, and what compiling costs is known in CPU seconds.
    """
    import jax

    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    jax.config.update("jax_compilation_cache_dir", folder)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


def main(run: Callable[[PeerProblem, dict[str, Any], Clock], Outcome], package: str) -> None:
    """Read the arguments, run on one core, write `result.json` and `result.npz`.

    Args:
        run: the peer's fit.
        package: the distribution whose version is reported.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("problem", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--settings", type=json.loads, default={})
    arguments = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    clock = Clock()
    outcome = run(PeerProblem.read(arguments.problem), arguments.settings, clock)
    arrays = {f"parameter__{name}": value for name, value in outcome.parameters.items()}
    if outcome.probability is not None:
        arrays["probability"] = outcome.probability
    np.savez(arguments.out / "result.npz", **arrays)
    result = {
        "version": importlib.metadata.version(package),
        "cpu_seconds": clock.cpu["fit"],
        "wall_seconds": clock.wall["fit"],
        "cold_cpu_seconds": clock.cpu.get("cold", clock.cpu["fit"]),
        "import_cpu_seconds": clock.cpu.get("import", 0.0),
        "peak_mebibytes": peak_mebibytes(),
        **outcome.report,
    }
    (arguments.out / "result.json").write_text(json.dumps(result, indent=1) + "\n")


def _cpu_seconds() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def peak_mebibytes() -> float:
    """Peak resident memory of this process so far."""
    # The kernel's ru_maxrss starts at the peak of the process that started this one.
    status = Path("/proc/self/status")
    if status.is_file():
        lines = status.read_text().splitlines()
        return next(float(line.split()[1]) / 2**10 for line in lines if line.startswith("VmHWM"))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)

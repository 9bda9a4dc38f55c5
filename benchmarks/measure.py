"""Medians of CPU and wall seconds, and the peak memory of a process."""

import dataclasses
import resource
import statistics
import subprocess
import time
from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.peers.harness import peak_mebibytes

__all__ = ["Timing", "peak_mebibytes", "timed", "timed_command"]


@dataclasses.dataclass(frozen=True)
class Timing:
    """Median CPU and wall seconds over the counted runs, and the last run's value."""

    cpu_seconds: float
    wall_seconds: float
    n_runs: int
    value: Any = None


def timed(function: Callable[[], Any], n_runs: int = 5) -> Timing:
    """Median seconds of a function in this process; the caller warms it up."""
    cpu, wall, value = [], [], None
    for _ in range(n_runs):
        start = time.process_time(), time.perf_counter()
        value = function()
        cpu.append(time.process_time() - start[0])
        wall.append(time.perf_counter() - start[1])
    return Timing(statistics.median(cpu), statistics.median(wall), n_runs, value)


def timed_command(command: Sequence[str], n_runs: int = 3, **options: Any) -> Timing:
    """Median seconds of a whole process, everything included."""
    cpu, wall = [], []
    for _ in range(n_runs):
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run(command, check=True, capture_output=True, **options)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        wall.append(time.perf_counter() - start)
        cpu.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return Timing(statistics.median(cpu), statistics.median(wall), n_runs)

"""Runs irtjax and peers, each in a process of its own; a failure is a reason, not a crash."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.catalogue import PeerRun
from benchmarks.environments import ROOT, PeerFailed, peer_python
from benchmarks.problems import Problem
from benchmarks.quality import heldout_quality, recovery

__all__ = ["run_irtjax", "run_module", "run_peer", "write_problem"]

# One thread for each peer, whatever library it computes with; the harness also pins the process
# to one core, since JAX's thread pool heeds no variable.
_ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS"), "1"
)
_CACHES = (
    "JAX_COMPILATION_CACHE_DIR",
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES",
    "JAX_NUMPY_DTYPE_PROMOTION",
)
_LONGEST_SECONDS = 3600
_LAST_CHARACTERS = 300


def run_irtjax(problem: str, run: int) -> dict[str, Any]:
    """One turn of irtjax (`benchmarks.irtjax_process`) in a new process.

    Raises:
        PeerFailed: it ended with an error.
    """
    return run_module("benchmarks.irtjax_process", problem, str(run))


def run_module(module: str, *arguments: str) -> Any:
    """The JSON on the last line of a module that runs in a new process, without compilation cache.

    Raises:
        PeerFailed: it ended with an error.
    """
    command = [sys.executable, "-m", module, *arguments]
    return json.loads(_run(command, _environment({})).splitlines()[-1])


def write_problem(problem: Problem | Mapping[str, np.ndarray], path: Path) -> None:
    """Write the .npz that `benchmarks.peers.harness` reads: what a peer may see, no more."""
    empty = np.zeros(0, np.int32)
    if isinstance(problem, Problem):
        seen = problem.train.cells()
        arrays = {
            "shape": np.array([problem.train.n_models, problem.train.n_items]),
            "model_index": seen.model_index,
            "item_index": seen.item_index,
            "response": seen.response.astype(np.int8),
            "test_model": problem.test.model_index,
            "test_item": problem.test.item_index,
        }
    else:
        n_items = len(next(iter(problem.values())))
        names = ("model_index", "item_index", "response", "test_model", "test_item")
        arrays = {"shape": np.array([0, n_items]), **dict.fromkeys(names, empty)}
        arrays |= {f"item__{name}": value for name, value in problem.items()}
    np.savez(path, **arrays)


def run_peer(
    run: PeerRun,
    problem: Problem | Mapping[str, np.ndarray],
    path: Path,
    *,
    python: Path | None = None,
    script: Path | None = None,
) -> dict[str, Any]:
    """One fit of a peer in its own environment and process, and its quality.

    Args:
        run: which peer with which settings.
        problem: to judge the result; the peer reads `path`.
        path: the problem's file.
        python: the environment's; made when needed without.
        script: the peer's; `benchmarks/peers/NAME.py` without.

    Raises:
        PeerFailed: not installed, or ended with an error.
    """
    python = python or peer_python(run.peer)
    script = script or ROOT / "benchmarks" / "peers" / f"{run.peer}.py"
    with tempfile.TemporaryDirectory() as folder:
        # -P: the script's folder holds mirt.py, girth.py, ..., which would hide the packages.
        command = [str(python), "-P", str(script), str(path), folder]
        command += ["--settings", json.dumps(dict(run.settings))]
        _run(command, _environment(_ONE_THREAD))
        result = json.loads((Path(folder) / "result.json").read_text())
        with np.load(Path(folder) / "result.npz") as arrays:
            found = {name: arrays[name] for name in arrays.files}
    if isinstance(problem, Problem):
        result |= _quality(problem, found)
    if "n_picks" in result:
        result["ms_per_pick"] = 1000 * result["cpu_seconds"] / result["n_picks"]
    return result


def _quality(problem: Problem, found: dict[str, np.ndarray]) -> dict[str, float]:
    if len(problem.test):
        return heldout_quality(problem, found["probability"])
    assert problem.truth is not None
    prefix = "parameter__"
    parameters = {name.removeprefix(prefix): value for name, value in found.items()}
    return recovery(problem.truth, parameters)


def _environment(extra: Mapping[str, str]) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in _CACHES}
    return {**kept, **extra, "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"}


def _run(command: list[str], environment: dict[str, str]) -> str:
    try:
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            timeout=_LONGEST_SECONDS,
        )
    except subprocess.TimeoutExpired as error:
        raise PeerFailed(f"not finished after {_LONGEST_SECONDS} s") from error
    except OSError as error:
        raise PeerFailed(f"did not start: {error}") from error
    if done.returncode < 0:
        raise PeerFailed(f"ended by signal {-done.returncode} (9 is usually too little memory)")
    if done.returncode:
        said = [line.strip() for line in done.stderr.splitlines() if line.strip()] or ["no message"]
        raise PeerFailed(said[-1][:_LAST_CHARACTERS])
    return done.stdout

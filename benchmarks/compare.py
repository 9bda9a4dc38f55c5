"""irtjax and its peers on a named problem, interleaved in one call."""

import datetime
import importlib.metadata
import os
import platform
import statistics
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.catalogue import PeerRun, ProblemPlan
from benchmarks.environments import PeerFailed
from benchmarks.processes import run_irtjax, run_peer, write_problem

__all__ = ["compared", "median_row", "turns", "with_ratios"]

# Medians over the turns of irtjax; everything else is the last turn's.
_MEDIANS = ("cpu_seconds", "wall_seconds", "cold_cpu_seconds", "compile_seconds", "peak_mebibytes")


def compared(
    name: str,
    plan: ProblemPlan,
    peers: Iterable[str],
    say: Callable[[str], None],
) -> dict[str, Any]:
    """Run a problem: irtjax, a peer, irtjax, the next peer, ...; each in its own process.

    Args:
        name: of the problem in the catalogue.
        plan: the problem.
        peers: names of those that shall run; the others are left out.
        say: told what runs now.

    Returns:
        `problem`, `date`, `machine` and `rows`, as JSON can hold it. A row has `who`, `label`,
        seconds, memory and quality, or `error`, the reason why it has not.
    """
    problem = plan.make()
    chosen = [run for run in plan.peers if run.peer in set(peers)]
    own, rows = _interleaved(name, plan, problem, chosen, say)
    first = [
        {
            "who": "irtjax",
            "label": run.label,
            "version": importlib.metadata.version("irtjax"),
            **own[k],
        }
        for k, run in enumerate(plan.irtjax)
    ]
    left_out = [
        {"who": who, "label": "", "error": reason}
        for who, reason in plan.left_out.items()
        if who == "irtjax" or who in set(peers)
    ]
    return {
        "problem": name,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": _machine(),
        "figure_of_merit": plan.figure_of_merit,
        "rows": with_ratios(first + rows + left_out),
    }


def turns(peers: Sequence[PeerRun], n_irtjax: int) -> list[PeerRun | None]:
    """The order of the runs: None is a turn of irtjax, spread evenly, one always first.

    >>> turns(["A", "B", "C"], 2)
    [None, 'A', None, 'B', 'C']
    """
    n_irtjax = min(n_irtjax, len(peers))
    before = {turn * len(peers) // n_irtjax for turn in range(n_irtjax)}
    order: list[PeerRun | None] = [] if peers else [None]
    for k, peer in enumerate(peers):
        order += [None, peer] if k in before else [peer]
    return order


def median_row(measured: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """One row of several turns."""
    row = dict(measured[-1])
    for name in _MEDIANS:
        row[name] = statistics.median(each[name] for each in measured)
    row["cpu_seconds_of_turns"] = [each["cpu_seconds"] for each in measured]
    return row


def with_ratios(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Add what a run costs as a multiple of irtjax's first row.

    `ratio` compares CPU seconds of warm fits (of the whole schedule, where a part was run and the
    rest extrapolated), `cold_ratio` those of a first fit in a process, compiling included, and
    `again_ratio` those of a further fit, of a package that compiles at every call.
    """
    own = next((row for row in rows if row["who"] == "irtjax" and "cpu_seconds" in row), None)
    if own is None:
        return list(rows)
    result = []
    for row in rows:
        warm = row.get("extrapolated_cpu_seconds", row.get("cpu_seconds"))
        cold = row.get("extrapolated_cpu_seconds", row.get("cold_cpu_seconds"))
        ratios = {
            "ratio": (warm, "cpu_seconds"),
            "cold_ratio": (cold, "cold_cpu_seconds"),
            "again_ratio": (row.get("again_cpu_seconds"), "cpu_seconds"),
        }
        added = {k: value / own[name] for k, (value, name) in ratios.items() if value is not None}
        result.append({**row, **added})
    return result


def _interleaved(
    name: str,
    plan: ProblemPlan,
    problem: Any,
    chosen: Sequence[PeerRun],
    say: Callable[[str], None],
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """A row for each setting of irtjax, and one for each run of a peer."""
    measured: list[list[dict[str, Any]]] = [[] for _ in plan.irtjax]
    failures: list[list[str]] = [[] for _ in plan.irtjax]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "problem.npz"
        if chosen:
            write_problem(problem, path)
        for peer in turns(chosen, plan.irtjax_turns):
            if peer is not None:
                say(f"{name}: {peer.peer} {peer.label}")
                rows.append(_peer_row(peer, problem, path))
                continue
            for k, run in enumerate(plan.irtjax):
                say(f"{name}: irtjax {run.label}")
                try:
                    measured[k].append(run_irtjax(name, k))
                except PeerFailed as failed:
                    failures[k].append(str(failed))
    return [_own_row(*each) for each in zip(measured, failures, strict=True)], rows


def _own_row(measured: list[dict[str, Any]], failures: list[str]) -> dict[str, Any]:
    failed = {"failed_turns": failures} if failures else {}
    if measured:
        return median_row(measured) | failed
    return {"error": failures[-1]} if failures else {"error": "not run"}


def _peer_row(run: PeerRun, problem: Any, path: Path) -> dict[str, Any]:
    row = {"who": run.peer, "label": run.label, "settings": dict(run.settings)}
    try:
        return {**row, **run_peer(run, problem, path)}
    except PeerFailed as failed:
        return {**row, "error": str(failed)}


def _machine() -> dict[str, Any]:
    names = ("jax", "jaxlib", "numpy")
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        **{name: importlib.metadata.version(name) for name in names},
    }


def _processor() -> str:
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.is_file() else []
    named = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor() or platform.machine()

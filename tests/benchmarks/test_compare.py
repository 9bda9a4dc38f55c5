"""Interleaving, ratios and failing peers; no real peer runs and nothing is timed."""

import dataclasses
import io
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from benchmarks import compare, environments
from benchmarks.catalogue import PROBLEMS, IrtjaxRun, PeerRun, ProblemPlan
from benchmarks.environments import PEERS, PeerFailed, peer_python, requirements
from benchmarks.large_problems import selection_items, sparse_problem
from benchmarks.peers.harness import PeerProblem
from benchmarks.processes import run_peer, write_problem
from benchmarks.table import results_table

SCRIPT = """
import numpy as np
from benchmarks.peers.harness import Outcome, main

def run(problem, settings, clock):
    with clock("fit"):
        if settings["fails"]:
            raise MemoryError("no memory for 3 GB")
    return Outcome(np.full(len(problem.test_model), 0.5), {}, {"n_steps": settings["steps"]})

main(run, "numpy")
"""
PEER = PeerRun("girth", "made up", {"fails": False, "steps": 7})


@pytest.fixture(scope="module")
def problem() -> Any:
    return sparse_problem(n_models=30, n_items=200, density=0.5)


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "peer.py"
    path.write_text(SCRIPT)
    return path


def test_turns_interleave_irtjax_with_the_peers():
    peers = [dataclasses.replace(PEER, label=str(k)) for k in range(5)]
    assert compare.turns([], 3) == [None]
    assert compare.turns(peers[:2], 5) == [None, peers[0], None, peers[1]]
    order = compare.turns(peers, 2)
    assert [item is None for item in order] == [True, False, False, True, False, False, False]
    assert [item for item in order if item is not None] == peers


def test_ratios_are_against_irtjax_and_use_the_whole_schedule():
    rows = compare.with_ratios(
        [
            {"who": "irtjax", "cpu_seconds": 2.0, "cold_cpu_seconds": 8.0},
            {
                "who": "a",
                "cpu_seconds": 10.0,
                "cold_cpu_seconds": 24.0,
                "again_cpu_seconds": 24.0,
            },
            {"who": "b", "cpu_seconds": 10.0, "extrapolated_cpu_seconds": 1000.0},
            {"who": "c", "error": "not installed"},
        ]
    )
    assert [row.get("ratio") for row in rows] == [1.0, 5.0, 500.0, None]
    assert [row.get("cold_ratio") for row in rows] == [1.0, 3.0, 125.0, None]
    assert [row.get("again_ratio") for row in rows] == [None, 12.0, None, None]


def test_medians_are_over_the_turns():
    names = ("wall_seconds", "cold_cpu_seconds", "compile_seconds", "peak_mebibytes")
    turns = [dict.fromkeys(names, 1.0) | {"cpu_seconds": value} for value in (3.0, 1.0, 2.0)]
    row = compare.median_row(turns)
    assert row["cpu_seconds"] == 2.0
    assert row["cpu_seconds_of_turns"] == [3.0, 1.0, 2.0]


def test_a_peer_reads_the_problem_and_is_judged(problem: Any, script: Path, tmp_path: Path):
    path = tmp_path / "problem.npz"
    write_problem(problem, path)
    found = run_peer(PEER, problem, path, python=Path(sys.executable), script=script)
    assert found["n_steps"] == 7
    assert found["log_loss"] == pytest.approx(np.log(2))
    assert found["cpu_seconds"] >= 0
    assert found["version"] == np.__version__


def test_a_peer_sees_the_train_cells_and_no_more(problem: Any, tmp_path: Path):
    write_problem(problem, tmp_path / "problem.npz")
    seen = PeerProblem.read(tmp_path / "problem.npz")
    np.testing.assert_array_equal(seen.dense(), problem.train.to_dense())
    np.testing.assert_array_equal(seen.test_item, problem.test.item_index)
    with np.load(tmp_path / "problem.npz") as arrays:
        assert "test_response" not in arrays.files


def test_the_bank_of_a_selection_problem_arrives(tmp_path: Path):
    items = selection_items(n_items=20)
    write_problem(items, tmp_path / "bank.npz")
    seen = PeerProblem.read(tmp_path / "bank.npz")
    assert seen.shape == (0, 20)
    np.testing.assert_array_equal(seen.items["guessing"], items["guessing"])


def test_a_failing_peer_is_a_row_with_the_reason(
    problem: Any, script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def run(run: PeerRun, problem: Any, path: Path) -> dict[str, Any]:
        if run.label == "not installed":
            raise PeerFailed("not installed: No matching distribution")
        return run_peer(run, problem, path, python=Path(sys.executable), script=script)

    own = {"cpu_seconds": 1.0, "wall_seconds": 1.0, "cold_cpu_seconds": 2.0}
    own |= {"compile_seconds": 1.0, "peak_mebibytes": 99.0, "log_loss": 0.4, "status": "converged"}
    monkeypatch.setattr(compare, "run_peer", run)
    turns = iter([own, PeerFailed("ended by signal 9"), own])

    def run_own(name: str, k: int) -> dict[str, Any]:
        turn = next(turns)
        if isinstance(turn, PeerFailed):
            raise turn
        return turn

    monkeypatch.setattr(compare, "run_irtjax", run_own)
    plan = ProblemPlan(
        lambda: problem,
        irtjax=(IrtjaxRun("2PL"),),
        peers=(
            PeerRun("girth", "breaks", {"fails": True, "steps": 1}),
            PeerRun("girth", "not installed", {}),
            PEER,
            PeerRun("mirt", "not asked for", {}),
        ),
        left_out={"girth": "a reason", "catsim": "not asked for"},
    )
    said: list[str] = []
    result = compare.compared("toy", plan, ["girth"], said.append)
    shown = [(row["who"], row["label"], row.get("error", "")) for row in result["rows"]]
    assert shown == [
        ("irtjax", "2PL", ""),
        ("girth", "breaks", "MemoryError: no memory for 3 GB"),
        ("girth", "not installed", "not installed: No matching distribution"),
        ("girth", "made up", ""),
        ("girth", "", "a reason"),
    ]
    assert result["rows"][3]["ratio"] == result["rows"][3]["cpu_seconds"]
    assert result["rows"][0]["failed_turns"] == ["ended by signal 9"]
    assert len(result["rows"][0]["cpu_seconds_of_turns"]) == 2
    assert json.loads(json.dumps(result)) == result
    assert len(said) == 6

    console = Console(width=200, record=True, file=io.StringIO())
    console.print(results_table(result))
    text = console.export_text()
    assert "no memory for 3 GB" in text
    assert "1 turns failed" in text
    assert "0.4000" in text
    assert "0.6931" in text


def test_every_peer_has_its_script_its_pins_and_a_place_in_the_catalogue():
    named = {run.peer for plan in PROBLEMS.values() for run in plan.peers}
    assert named == set(PEERS)
    for peer in PEERS:
        path, alone = requirements(peer)
        lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
        assert all("==" in line for line in [*lines, *alone])
        assert path.with_suffix(".py").is_file()


def test_an_environment_that_cannot_be_made_is_a_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def make(home: Path, **_: Any) -> None:
        python = home / "bin" / "python"
        python.parent.mkdir(parents=True)
        python.write_text("#!/bin/sh\necho 'ERROR: No matching distribution found' >&2\nexit 1\n")
        python.chmod(0o755)

    monkeypatch.setattr(environments.venv, "create", make)
    with pytest.raises(PeerFailed, match="not installed: ERROR: No matching distribution found"):
        peer_python("girth", tmp_path)
    assert not (tmp_path / "girth" / "requirements.sha256").exists()

"""The command: which names it knows, and what it leaves."""

import importlib
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

command = importlib.import_module("benchmarks.__main__")


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["benchmarks", *arguments])
    return int(command.main())


@pytest.mark.parametrize("arguments", [(), ("W2", "W9")])
def test_names_that_are_missing_or_unknown_list_the_known_ones(
    arguments: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    assert run(monkeypatch, *arguments) == 2
    said = capsys.readouterr().err
    assert ("unknown: W9" in said) == bool(arguments)
    for name in (*command.PROBLEMS, "scaling", "roofline", "fit-w2"):
        assert name in said


def test_a_problem_leaves_json_and_a_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    result = {
        "problem": "W2",
        "date": "2026-01-31",
        "figure_of_merit": "log_loss",
        "rows": [{"who": "mirt", "label": "GVEM", "error": "not installed: no such version"}],
    }
    asked: list[Any] = []

    def compared(name: str, plan: Any, peers: Any, say: Any) -> dict[str, Any]:
        asked.append((name, list(peers)))
        return result

    monkeypatch.setattr(command, "compared", compared)
    assert run(monkeypatch, "W2", "--peers", "mirt", "--out", str(tmp_path / "out")) == 0
    assert asked == [("W2", ["mirt"])]
    assert json.loads((tmp_path / "out" / "W2.json").read_text()) == result
    assert not (tmp_path / "out" / "W2.png").exists()
    assert "not installed: no such version" in capsys.readouterr().out


TABLES = {name: importlib.import_module(module) for name, module in command.SINGLE.items()}


@pytest.mark.parametrize("name", [name for name in TABLES if hasattr(TABLES[name], "table")])
def test_every_measurement_shows_the_results_that_are_kept(name: str):
    kept = command._RESULTS / f"{name}.json"
    shown = io.StringIO()
    Console(file=shown, width=200).print(TABLES[name].table(json.loads(kept.read_text())))
    assert len(shown.getvalue().splitlines()) > 2


def test_the_tau_of_halves_can_be_measured_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def measured_halves(parts: Any, n_seeds: Any, path: Path, say: Any) -> dict[str, Any]:
        asked.append((list(parts), n_seeds, path))
        return {"date": "2026-01-31"}

    asked: list[Any] = []
    monkeypatch.setattr(command, "measured_halves", measured_halves)
    arguments = ("psn_irt", "--halves-only", "--rows", "vi", "mle", "--out", str(tmp_path))
    assert run(monkeypatch, *arguments) == 0
    assert asked == [(["vi", "mle"], None, tmp_path / "psn_irt.json")]
    assert "2026-01-31" in (tmp_path / "psn_irt.md").read_text()

"""The README's Python runs as it stands, and its commands exist with the options it names."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from irtjax.cli import main

README = Path(__file__).resolve().parents[1] / "README.md"
BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)


def blocks(language: str) -> list[str]:
    return [code for name, code in BLOCK.findall(README.read_text()) if name == language]


def test_python_blocks_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code = "\n".join(blocks("python"))
    assert "ij.fit(" in code
    space: dict[str, object] = {}
    exec(compile(code, str(README), "exec"), space)
    assert space["fit"].status == "converged"  # type: ignore[attr-defined]
    assert (tmp_path / "run" / "items.csv").is_file()


SECTION = re.compile(r"^## (.*)$", re.MULTILINE)
FLOW = (
    "From files of results to parameters",
    "The smallest set of items that still measures",
    "Scoring new models from few answers",
    "Adaptive tests",
    "New models, new items, other fits",
)


def flow() -> list[str]:
    """The lines of the sections that go on from the README's own files."""
    _, *parts = SECTION.split(README.read_text())
    sections = dict(zip(parts[::2], parts[1::2], strict=True))
    code = [code for name in FLOW for kind, code in BLOCK.findall(sections[name]) if kind == "bash"]
    return [line for line in "\n".join(code).splitlines() if line.strip()]


def test_commands_from_fit_to_link_run_in_an_empty_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("IRTJAX_NO_CACHE", "1")
    ran = []
    for line in flow():
        if line.startswith("irtjax "):
            words = shlex.split(line, comments=True)[1:]
            assert main([*words, "--quiet"]) == 0, capsys.readouterr().err
            ran.append(words[0])
        else:
            subprocess.run(line, shell=True, check=True)
    wanted = {"simulate", "fit", "predict", "select", "filter", "score", "adapt", "update", "link"}
    assert set(ran) == wanted
    for name in ("short.csv", "samples.json", "scores-benchmark.csv", "linked/link.csv"):
        assert (tmp_path / name).is_file()


def commands() -> list[list[str]]:
    lines = "\n".join(blocks("bash")).splitlines()
    return [line.split("#")[0].split() for line in lines if line.startswith("irtjax ")]


@pytest.mark.parametrize("command", commands(), ids=" ".join)
def test_options_of_commands_exist(command: list[str]) -> None:
    shown = subprocess.run(
        [sys.executable, "-m", "irtjax", command[1], "--help"],
        capture_output=True,
        text=True,
        check=True,
        env={"COLUMNS": "200", "PATH": "", "HOME": "/nonexistent"},
    ).stdout
    for word in command[2:]:
        if word.startswith("--"):
            assert word in shown


def test_scripts_named_exist() -> None:
    named = set(re.findall(r"scripts/[\w.]+", README.read_text()))
    assert named
    assert all((README.parent / name).is_file() for name in named)

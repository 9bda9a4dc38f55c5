"""The README's Python runs as it stands, and its commands exist with the options it names."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

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

"""The command line, run in this process, and small data to run it on."""

import dataclasses
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from irtjax.cli import main
from irtjax.data.simulate import simulate
from irtjax.io import write_responses
from irtjax.model.spec import ModelSpec


@dataclasses.dataclass(frozen=True)
class Outcome:
    """How a command ended: exit code, stdout, stderr."""

    code: int
    out: str
    err: str

    @property
    def error_lines(self) -> list[str]:
        """The lines of stderr."""
        return self.err.splitlines()


Cli = Callable[..., Outcome]

# Every fit of the tests has this shape, so that a process compiles few programs.
N_MODELS, N_ITEMS, N_BENCHMARKS = 30, 200, 4


@pytest.fixture(scope="session")
def responses(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A long CSV file of 30 models x 200 items in 4 benchmarks, one ability."""
    made = simulate(
        ModelSpec(), n_models=N_MODELS, n_items=N_ITEMS, n_benchmarks=N_BENCHMARKS, seed=1
    )
    path = tmp_path_factory.mktemp("data") / "responses.csv"
    write_responses(made.data, path)
    return path


@pytest.fixture(scope="session")
def finished_run(responses: Path) -> Path:
    """The folder of a finished run with held-out cells; not to be changed."""
    run = responses.parent / "finished"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IRTJAX_NO_CACHE", "1")
        code = main(["fit", str(responses), "--out", str(run), "--holdout", "0.1", "--quiet"])
    assert code == 0
    return run


@pytest.fixture
def irtjax(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Cli:
    """Run a command in an empty folder; arguments are turned into strings."""
    monkeypatch.setenv("IRTJAX_NO_CACHE", "1")
    monkeypatch.chdir(tmp_path)

    def run(*arguments: object) -> Outcome:
        capsys.readouterr()
        code = main([str(each) for each in arguments])
        return Outcome(code, *capsys.readouterr())

    return run


@pytest.fixture
def process(tmp_path: Path) -> Cli:
    """Run Python in a process of its own, in an empty folder; None removes a variable."""

    def run(*arguments: object, **changed: str | None) -> Outcome:
        own = {"XDG_CACHE_HOME": str(tmp_path.parent / "xdg"), "IRTJAX_NO_CACHE": None}
        environment = os.environ | own | changed
        done = subprocess.run(
            [sys.executable, *map(str, arguments)],
            cwd=tmp_path,
            env={name: value for name, value in environment.items() if value is not None},
            capture_output=True,
            text=True,
            timeout=300,
        )
        return Outcome(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def tree() -> Callable[[Path], dict[str, bytes]]:
    """Every file below a folder with its content, and every folder."""

    def of(folder: Path) -> dict[str, bytes]:
        return {
            str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b"folder"
            for path in sorted(folder.rglob("*"))
        }

    return of

"""Help, version, and a start that does not wait for JAX."""

import itertools
import sys

import pytest

from irtjax import __version__

COMMAND = ["-c", "import sys; from irtjax.cli import main; sys.exit(main())"]


def test_version(irtjax):
    assert irtjax("--version").out == f"irtjax {__version__}\n"


COMMANDS = [
    "adapt",
    "audit",
    "check",
    "compare",
    "crossval",
    "demo",
    "filter",
    "fit",
    "flags",
    "link",
    "plot",
    "predict",
    "quality",
    "score",
    "select",
    "simulate",
    "update",
]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command_shows_an_example(irtjax, command):
    outcome = irtjax(command, "--help")
    assert (outcome.code, outcome.err) == (0, "")
    assert f"Example: irtjax {command} " in outcome.out
    # A paragraph is filled: a line is short only where the next word would not fit, or at its end.
    text = outcome.out.partition("Example:")[2].partition("╭")[0].splitlines()[1:]
    lines = [line.strip() for line in text]
    for line, following in itertools.pairwise(lines):
        if line and following:
            assert len(line) + 1 + len(following.split()[0]) > 76


def test_help_of_fit_lists_every_estimator(irtjax):
    from irtjax.fit.registry import registered_estimators
    from irtjax.fit.settings import ESTIMATORS

    words = set(irtjax("fit", "--help").out.replace(",", " ").split())
    assert {*ESTIMATORS, *registered_estimators()} <= words


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"]])
def test_help(irtjax, arguments):
    outcome = irtjax(*arguments)
    assert (outcome.code, outcome.err) == (0, "")
    for text in ("Example: irtjax fit ", "crossval", "predict", "simulate", "demo", "--version"):
        assert text in outcome.out


def test_help_imports_neither_jax_nor_pandas(process):
    code = """
import sys
from irtjax.cli import main
assert main(["fit", "--help"]) == 0
loaded = {"jax", "pandas", "numpy", "pyarrow", "orbax", "scipy"} & set(sys.modules)
sys.exit(f"loaded {loaded}" if loaded else 0)
"""
    outcome = process("-c", code)
    assert outcome.code == 0, outcome.err


def test_bad_input_in_a_process_of_its_own(process, tmp_path):
    (tmp_path / "r.csv").write_text("model_id,item_id,response\na,p,1\na,q,0\n")
    outcome = process(*COMMAND, "fit", "r.csv", "--out", "run")
    assert outcome.code == 2
    assert len(outcome.error_lines) == 1, outcome.err
    assert [path.name for path in tmp_path.iterdir()] == ["r.csv"]


def test_installed_command():
    from importlib.metadata import entry_points

    (command,) = entry_points(group="console_scripts", name="irtjax")
    assert command.load() is sys.modules["irtjax.cli"].main

"""Which sample files of lm-evaluation-harness there are: model, task and time of each."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from irtjax.errors import InputError
from irtjax.io.files import one_line_errors, quoted

__all__ = ["Run", "elsewhere_note", "find_runs", "is_samples_file", "newest_runs"]

_SAMPLES = re.compile(
    r"samples_(?P<task>.+?)(_(?P<time>\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d(\.\d+)?))?\.jsonl"
)
_RESULTS_TIME = re.compile(r"results_(?P<time>.+)\.json")


class Run(NamedTuple):
    """One samples file: the answers of a model to a task at a time (empty when not in the name)."""

    path: Path
    model: str
    task: str
    time: str


def is_samples_file(path: Path) -> bool:
    """Whether a file is named as lm-evaluation-harness names its samples."""
    return _SAMPLES.fullmatch(path.name) is not None


def find_runs(paths: Sequence[Path]) -> list[Run]:
    """The runs in folders (searched to any depth) and files.

    Raises:
        InputError: a folder without samples files, results of two models in one folder.
    """
    runs: list[Run] = []
    for path in paths:
        if path.is_dir():
            with one_line_errors(path):
                files = sorted(each for each in path.rglob("samples_*.jsonl") if each.is_file())
            if not files:
                raise InputError(
                    f"{path} is a folder without samples_*.jsonl files of lm-evaluation-harness; "
                    "for other formats name the files, or a glob in it"
                )
            runs.extend(_run(file) for file in files)
        else:
            runs.append(_run(path))
    return runs


def newest_runs(runs: Sequence[Run]) -> tuple[list[Run], list[Run]]:
    """The newest run of each model and task, by the time in the name, and the others.

    Raises:
        InputError: two runs of a model and task with the same time.
    """
    newest: dict[tuple[str, str], Run] = {}
    for run in runs:
        key = run.model, run.task
        other = newest.setdefault(key, run)
        if other is not run and other.time == run.time:
            raise InputError(
                f"model {quoted(run.model)} has two runs of task {quoted(run.task)} with the same "
                f"time, {other.path} and {run.path}; name one of them, or pass --runs all"
            )
        if run.time > other.time:
            newest[key] = run
    kept = set(newest.values())
    return [run for run in runs if run in kept], [run for run in runs if run not in kept]


def elsewhere_note(kept: Sequence[Run], older: Sequence[Run]) -> tuple[str, ...]:
    """A warning where a run was left out for one in another folder: two models of one name?"""
    folder = {(run.model, run.task): run.path.parent for run in kept}
    elsewhere = [run for run in older if run.path.parent != folder[run.model, run.task]]
    if not elsewhere:
        return ()
    run = elsewhere[0]
    return (
        f"{len(elsewhere):,} older runs stand in other folders than the newest, which alone is "
        f"read, first {run.path} of model {quoted(run.model)}; if these are different models, "
        "correct 'model_name' in their results file, else pass --runs all",
    )


def _run(path: Path) -> Run:
    match = _SAMPLES.fullmatch(path.name)
    task = match["task"] if match else path.stem.removeprefix("samples_")
    time = (match["time"] or "") if match else ""
    return Run(path, _model_name(path, time), task, time)


def _model_name(path: Path, time: str) -> str:
    """`model_name` of the results file beside the samples, of the same time if there is one."""
    folder = path.resolve().parent
    names: dict[str, str] = {}
    for file in sorted(folder.glob("results*.json")):
        name = _name_in(file)
        if name:
            match = _RESULTS_TIME.fullmatch(file.name)
            names[match["time"] if match else ""] = name
    if time in names:
        return names[time]
    distinct = list(dict.fromkeys(names.values()))
    if len(distinct) > 1:
        raise InputError(
            f"{folder} holds results of several models, {quoted(distinct[0])} and "
            f"{quoted(distinct[1])}, and none has the time of {path.name}; keep one model a folder"
        )
    return distinct[0] if distinct else folder.name


def _name_in(file: Path) -> str:
    with one_line_errors(file), open(file, "rb") as stream:
        results = json.load(stream)
    name = results.get("model_name") if isinstance(results, dict) else None
    return name if isinstance(name, str) else ""

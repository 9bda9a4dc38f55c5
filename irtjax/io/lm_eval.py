"""Reader of lm-evaluation-harness outputs: `samples_<task>_<time>.jsonl` files and folders."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from irtjax.errors import InputError
from irtjax.io.choose import choose
from irtjax.io.coded import encode_texts
from irtjax.io.columns import listed
from irtjax.io.files import Place, check_readable, quoted
from irtjax.io.json_table import json_lines
from irtjax.io.lm_eval_items import ItemNames
from irtjax.io.lm_eval_runs import Run, elsewhere_note, find_runs, newest_runs
from irtjax.io.options import Options, Part
from irtjax.io.pyirt import json_text
from irtjax.io.rows import Rows, explained
from irtjax.io.values import responses_of

__all__ = ["read_lm_eval"]

# Keys of a sample that are not metrics, for files from before Nov 2024, which do not list theirs.
_NOT_METRICS = frozenset(
    (
        *("doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter"),
        *("metrics", "doc_hash", "prompt_hash", "target_hash"),
    )
)


@dataclasses.dataclass
class _Samples:
    """The lines of one file, without documents and outputs."""

    run: Run
    lines: list[int] = dataclasses.field(default_factory=list)
    doc_ids: list[str] = dataclasses.field(default_factory=list)
    hashes: list[str] = dataclasses.field(default_factory=list)
    filters: list[str] = dataclasses.field(default_factory=list)
    metrics: list[dict[str, Any]] = dataclasses.field(default_factory=list)

    def keep(self, chosen: str | None) -> "_Samples":
        """The lines of a filter, and those that declare none."""
        if chosen is None:
            return self
        taken = [k for k, name in enumerate(self.filters) if name in ("", chosen)]
        kept = {
            field.name: [getattr(self, field.name)[k] for k in taken]
            for field in dataclasses.fields(self)
            if field.name != "run"
        }
        return _Samples(self.run, **kept)


def read_lm_eval(paths: Sequence[Path], options: Options) -> tuple[Part, list[Path]]:
    """Read the runs of any number of models: item id `task/doc_id`, benchmark the task.

    One filter and one metric a task; a metric that holds lists or pairs is no candidate.

    Returns:
        The responses, and the files they came from.

    Raises:
        InputError: no samples, several filters or metrics of a task and none asked for, a
            document id with two contents, an unknown value.
    """
    runs = find_runs(paths)
    older: list[Run] = []
    notes: tuple[str, ...] = ()
    if options.runs == "newest":
        runs, older = newest_runs(runs)
        notes = elsewhere_note(runs, older)
    samples = [_samples_of(run) for run in runs]
    choices: dict[str, Any] = {}
    choices["filter"] = choose(_filters(samples), options.filters, "filter")
    samples = [_of_filter(each, choices["filter"]) for each in samples]
    choices["metric"] = _choose_metrics(samples, options.metrics)
    if older:
        choices["older_runs_not_read"] = [str(run.path) for run in older]
    return Part(_rows(samples, choices["metric"]), choices, notes), [run.path for run in runs]


def _samples_of(run: Run) -> _Samples:
    check_readable(run.path)
    samples = _Samples(run)
    for line, sample in json_lines(run.path):
        doc_id = sample.get("doc_id")
        if doc_id in (None, ""):
            raise InputError(
                f"line {line} of {run.path} has no 'doc_id'; it is no sample of "
                "lm-evaluation-harness"
            )
        names = sample.get("metrics")
        if not isinstance(names, list):
            names = [name for name in sample if name not in _NOT_METRICS]
        names = [name for name in names if isinstance(name, str)]
        samples.lines.append(line)
        samples.doc_ids.append(str(doc_id))
        samples.hashes.append(json_text(sample.get("doc_hash")))
        samples.filters.append(json_text(sample.get("filter")))
        samples.metrics.append({name: sample.get(name) for name in names})
    if not samples.lines:
        raise InputError(f"{run.path} has no samples")
    return samples


def _filters(samples: Sequence[_Samples]) -> dict[str, list[str]]:
    """The filters of each task; a file from before filters were written declares none."""
    found: dict[str, dict[str, None]] = {}
    for each in samples:
        names = found.setdefault(each.run.task, {})
        names.update(dict.fromkeys(name for name in each.filters if name))
    return {task: list(names) for task, names in found.items()}


def _of_filter(samples: _Samples, chosen: dict[str, str]) -> _Samples:
    task = samples.run.task
    kept = samples.keep(chosen.get(task))
    if not kept.lines:
        raise InputError(
            f"{samples.run.path} has no samples of filter {quoted(chosen[task])}; it has "
            f"{listed(sorted(set(samples.filters)))}"
        )
    return kept


def _choose_metrics(samples: Sequence[_Samples], wanted: Sequence[str]) -> dict[str, str]:
    """The metric of each task, among those that hold one value a sample."""
    single: dict[str, dict[str, None]] = {}
    several: dict[str, dict[str, None]] = {}
    for each in samples:
        of_task = single.setdefault(each.run.task, {}), several.setdefault(each.run.task, {})
        for values in each.metrics:
            for name, value in values.items():
                of_task[0 if _is_single(value) else 1][name] = None
    candidates = {
        task: [name for name in names if name not in several[task]]
        for task, names in single.items()
    }
    for task, names in candidates.items():
        _refuse_lists(task, names, list(several[task]), wanted)
    chosen = choose(candidates, wanted, "metric")
    for each in samples:
        metric = chosen[each.run.task]
        if not any(metric in values for values in each.metrics):
            have = listed(list(each.metrics[0]))
            raise InputError(f"{each.run.path} has no metric {quoted(metric)}; it has {have}")
    return chosen


def _refuse_lists(
    task: str, names: Sequence[str], several: Sequence[str], wanted: Sequence[str]
) -> None:
    """Refuse a task without a metric of one value, and one whose list is what was asked for."""
    if not names:
        have = f"lists or pairs: {listed(several)}" if several else "it has none at all"
        raise InputError(f"task {quoted(task)} has no metric with one value a sample; {have}")
    asked = [name for name in wanted if name in several]
    if asked and not set(wanted) & set(names):
        raise InputError(
            f"metric {quoted(asked[0])} of task {quoted(task)} holds a list or pair, not one "
            f"value; choose with --metric among {listed(names)}"
        )


def _is_single(value: object) -> bool:
    if isinstance(value, list):
        return len(value) == 1 and _is_single(value[0])
    return not isinstance(value, dict)


def _rows(samples: Sequence[_Samples], metric: dict[str, str]) -> Rows:
    names = ItemNames()
    items: list[str] = []
    values: list[str] = []
    for each in samples:
        task = each.run.task
        items.extend(names.items_of(task, each.doc_ids, each.hashes, each.lines, each.run.path))
        for measured in each.metrics:
            value = measured.get(metric[task])
            while isinstance(value, list):
                value = value[0]
            values.append(json_text(value))
    run_of_row = np.repeat(np.arange(len(samples)), [len(each.lines) for each in samples])
    lines = np.concatenate([each.lines for each in samples])
    models = encode_texts([each.run.model for each in samples]).take(run_of_row)
    tasks = encode_texts([each.run.task for each in samples]).take(run_of_row)

    def place(row: int) -> Place:
        return Place("line", int(lines[row]), str(samples[run_of_row[row]].run.path))

    def explain(row: int) -> str:
        return explained(models.text_at(row), items[row], place(row))

    response = responses_of(encode_texts(values), explain)
    columns = {"benchmark": tasks}
    hashes = [names.hash_of(item) for item in items]
    if any(hashes):
        columns["item_hash"] = encode_texts(hashes).blank_as_missing()
    return Rows(models, encode_texts(items), response, None, columns, place)

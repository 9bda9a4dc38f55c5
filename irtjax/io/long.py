"""Reader of the canonical long table: one response a row (CSV, Parquet, JSON Lines)."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from irtjax.errors import InputError
from irtjax.io.choose import choose, names_by_task
from irtjax.io.coded import Coded
from irtjax.io.columns import BENCHMARK, BENCHMARK_ALIASES, resolve_roles
from irtjax.io.files import Place, quoted
from irtjax.io.options import Options, Part
from irtjax.io.rows import Rows, explained
from irtjax.io.table import Table
from irtjax.io.tables import read_table
from irtjax.io.values import responses_of, weights_of

__all__ = ["ids_of", "read_long"]

_WEIGHT = "weight"
_NOT_METADATA = {
    "trial": "numbers the answers of a pair; --duplicates says what becomes of several",
    "": "has no name",
}


def read_long(paths: Sequence[Path], options: Options) -> list[Part]:
    """Read `model_id, item_id, response` rows, with aliases, weights and metadata.

    The files are read together, because a task has one metric and one filter in all of them.
    Rows of the others are left out before their responses are looked at.

    Returns:
        One part a file.

    Raises:
        InputError: a role without a column or with two, an empty id, an unknown value, two
            metrics or filters of a task.
    """
    files = [_open(path, options) for path in paths]
    for role, wanted in (("filter", options.filters), ("metric", options.metrics)):
        files = _one_a_task(files, role, wanted)
    return [file.part() for file in files]


@dataclasses.dataclass(frozen=True)
class _File:
    """The rows of a file with responses and weights as they are written."""

    model: Coded
    item: Coded
    response: Coded
    weight: Coded | None
    columns: dict[str, Coded]
    choices: dict[str, Any]
    owner: Mapping[str, str]
    place: Callable[[int], Place]

    def explain(self, row: int) -> str:
        """Which model, item and place a row is, in words."""
        return explained(self.model.text_at(row), self.item.text_at(row), self.place(row))

    def take(self, mask: np.ndarray) -> "_File":
        """Some of the rows."""
        number = np.flatnonzero(mask)
        return dataclasses.replace(
            self,
            model=self.model.take(mask),
            item=self.item.take(mask),
            response=self.response.take(mask),
            weight=None if self.weight is None else self.weight.take(mask),
            columns={name: column.take(mask) for name, column in self.columns.items()},
            place=lambda row: self.place(int(number[row])),
        )

    def part(self) -> Part:
        """The rows with responses and weights as numbers."""
        response = responses_of(self.response, self.explain)
        weight = None
        if self.weight is not None:
            weight = weights_of(self.weight, response, self.explain)
        rows = Rows(self.model, self.item, response, weight, self.columns, self.place, self.owner)
        return Part(rows, self.choices)

    def task(self) -> Coded | None:
        """The column that says which task a row is of: the benchmark, or its only alias."""
        if BENCHMARK in self.columns:
            return self.columns[BENCHMARK].as_text()
        aliases = [name for name in self.columns if name in BENCHMARK_ALIASES]
        return self.columns[aliases[0]].as_text() if len(aliases) == 1 else None


def _open(path: Path, options: Options) -> _File:
    named = frozenset(name for name in options.overrides.values() if name)
    table = read_table(path, named)
    roles = resolve_roles(table.names, path, options.overrides)
    columns: dict[str, Coded] = {}
    not_kept: dict[str, str] = {}
    for name in table.names:
        if name in roles.values() or name == _WEIGHT:
            continue
        if name in _NOT_METADATA:
            not_kept[name] = _NOT_METADATA[name]
        else:
            column = table.metadata(name)
            if isinstance(column, str):
                not_kept[name] = column
            else:
                columns[name] = column
    choices: dict[str, Any] = {"columns": {f"{role}_column": name for role, name in roles.items()}}
    if not_kept:
        choices["columns_not_kept"] = not_kept
    has_weight = _WEIGHT in table.names and _WEIGHT not in roles.values()
    if has_weight:
        choices["weights"] = f"column {_WEIGHT!r}"
    return _File(
        ids_of(table, roles["model"], "model"),
        ids_of(table, roles["item"], "item"),
        table.column(roles["response"]),
        table.column(_WEIGHT) if has_weight else None,
        columns,
        choices,
        table.owner,
        table.locate,
    )


def ids_of(table: Table, name: str, role: str) -> Coded:
    """The ids of a column as strings.

    Raises:
        InputError: an empty id.
    """
    ids = table.column(name).blank_as_missing()
    missing = np.flatnonzero(ids.codes < 0)
    if len(missing):
        more = f", and {len(missing) - 1:,} more" if len(missing) > 1 else ""
        raise InputError(
            f"{role} id is empty in column {quoted(name)} ({table.locate(int(missing[0]))}{more}); "
            f"give each row its {role}"
        )
    return ids.as_text()


def _one_a_task(files: Sequence[_File], role: str, wanted: Sequence[str]) -> list[_File]:
    """Keep the rows of one metric or filter a task; rows that declare none stay."""
    named = [file for file in files if role in file.columns]
    if not named:
        if wanted:
            raise InputError(
                f"no long table has a column {role!r}, so --{role} has nothing to choose; drop it"
            )
        return list(files)
    candidates: dict[str, list[str]] = {}
    for file in named:
        for task, names in names_by_task(file.task(), file.columns[role]).items():
            known = candidates.setdefault(task, [])
            known.extend(name for name in names if name not in known)
    chosen = choose(candidates, wanted, role)
    kept = [_of_chosen(file, role, chosen) for file in files]
    for file in named:
        file.choices[role] = {task or "all": name for task, name in chosen.items()}
    n_others = sum(len(file.item) for file in files) - sum(len(file.item) for file in kept)
    if n_others:
        named[0].choices[f"rows_of_other_{role}s"] = n_others
    return kept


def _of_chosen(file: _File, role: str, chosen: Mapping[str, str]) -> _File:
    names = file.columns.get(role)
    if names is None:
        return file
    task = file.task()
    tasks = [""] if task is None else [*task.texts(), ""]  # the last is that of the code -1
    code_of = {text: code for code, text in enumerate(names.texts())}
    chosen_code = np.array([code_of.get(chosen.get(each, ""), -1) for each in tasks])
    task_code = np.zeros(len(names), np.int32) if task is None else task.codes
    keep = (names.codes < 0) | (names.codes == chosen_code[task_code])
    return file if keep.all() else file.take(keep)

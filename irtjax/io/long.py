"""Reader of the canonical long table: one response a row (CSV, Parquet, JSON Lines)."""

from pathlib import Path
from typing import Any

import numpy as np

from irtjax.errors import InputError
from irtjax.io.choose import candidates_by_task, choose
from irtjax.io.coded import Coded
from irtjax.io.columns import BENCHMARK_ALIASES, listed, resolve_roles
from irtjax.io.files import quoted
from irtjax.io.metadata import BENCHMARK
from irtjax.io.options import Options, Part
from irtjax.io.rows import Rows, explained
from irtjax.io.table import Table
from irtjax.io.tables import read_table
from irtjax.io.values import responses_of, weights_of

__all__ = ["ids_of", "read_long"]

_NOT_METADATA = ("weight", "trial", "")


def read_long(path: Path, options: Options) -> Part:
    """Read `model_id, item_id, response` rows, with aliases, weights and metadata.

    Raises:
        InputError: a role without a column or with two, an empty id, an unknown value, two
            metrics or filters of a task.
    """
    named = frozenset(name for name in options.overrides.values() if name)
    table = read_table(path, named)
    roles = resolve_roles(table.names, path, options.overrides)
    columns, not_kept = _metadata(table, roles)
    rows = _rows_of_table(table, roles, columns)
    choices: dict[str, Any] = {"columns": {f"{role}_column": name for role, name in roles.items()}}
    if not_kept:
        choices["columns_not_kept"] = not_kept
    for role, wanted in (("filter", options.filters), ("metric", options.metrics)):
        rows = _one_a_task(rows, role, wanted, path, choices)
    return Part(rows, choices)


def _metadata(table: Table, roles: dict[str, str]) -> tuple[dict[str, Coded], dict[str, str]]:
    """The columns that may be metadata, and the reason of those that cannot be."""
    columns: dict[str, Coded] = {}
    not_kept: dict[str, str] = {}
    for name in table.names:
        if name in roles.values() or name in _NOT_METADATA:
            continue
        column = table.metadata(name)
        if isinstance(column, str):
            not_kept[name] = column
        else:
            columns[name] = column
    return columns, not_kept


def _rows_of_table(table: Table, roles: dict[str, str], columns: dict[str, Coded]) -> Rows:
    model = ids_of(table, roles["model"], "model")
    item = ids_of(table, roles["item"], "item")

    def explain(row: int) -> str:
        return explained(model.text_at(row), item.text_at(row), table.locate(row))

    response = responses_of(table.column(roles["response"]), explain)
    weight = None
    if "weight" in table.names and "weight" not in roles.values():
        weight = weights_of(table.column("weight"), response, explain)
    return Rows(model, item, response, weight, columns, table.locate, table.owner)


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


def _one_a_task(
    rows: Rows, role: str, wanted: list[str], path: Path, choices: dict[str, Any]
) -> Rows:
    """Keep the rows of one metric or filter a task; rows that declare none stay."""
    names = rows.columns.get(role)
    if names is None:
        if wanted:
            raise InputError(
                f"{path} has no column {role!r}, so --{role} has nothing to choose; "
                f"columns: {listed(list(rows.columns))}"
            )
        return rows
    candidates, tasks, task_code = candidates_by_task(_task_of(rows), names)
    chosen = choose(candidates, wanted, role)
    choices[role] = {task or "all": name for task, name in chosen.items()}
    texts = names.texts()
    code_of_name = {text: code for code, text in enumerate(texts)}
    wanted_code = np.array([code_of_name.get(chosen.get(task, ""), -1) for task in tasks])
    keep = (names.codes < 0) | (names.codes == wanted_code[task_code])
    if keep.all():
        return rows
    choices[f"rows_of_other_{role}s"] = int(np.count_nonzero(~keep))
    return rows.take(keep)


def _task_of(rows: Rows) -> Coded | None:
    """The column that says which task a row is of: the benchmark, or its only alias."""
    if BENCHMARK in rows.columns:
        return rows.columns[BENCHMARK].as_text()
    aliases = [name for name in rows.columns if name in BENCHMARK_ALIASES]
    return rows.columns[aliases[0]].as_text() if len(aliases) == 1 else None

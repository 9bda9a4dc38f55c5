"""One metric and one filter a task: the only candidate, or the one that was asked for."""

from collections.abc import Mapping, Sequence

import numpy as np

from irtjax.errors import InputError
from irtjax.io.coded import Coded
from irtjax.io.columns import listed
from irtjax.io.files import quoted

__all__ = ["choose", "names_by_task", "wanted_names"]


def wanted_names(setting: str | Sequence[str] | None) -> list[str]:
    """The names of `--metric` or `--filter`: one, or several in order of preference.

    >>> wanted_names("acc_norm, exact_match")
    ['acc_norm', 'exact_match']
    """
    if setting is None:
        return []
    parts = setting.split(",") if isinstance(setting, str) else list(setting)
    return [part.strip() for part in parts if part.strip()]


def choose(
    candidates: Mapping[str, Sequence[str]], wanted: Sequence[str], role: str
) -> dict[str, str]:
    """The metric or filter of each task.

    Args:
        candidates: task to the names that its rows have.
        wanted: names asked for; the first that a task has is taken where it has several.
        role: `metric` or `filter`, which is also the flag.

    Returns:
        Task to name; a task without candidates is left out.

    Raises:
        InputError: a task with several candidates and none asked for, a name no task has.
    """
    everywhere = list(dict.fromkeys(name for names in candidates.values() for name in names))
    for name in wanted:
        if name not in everywhere:
            have = listed(everywhere) or "none"
            raise InputError(f"no task has the {role} {quoted(name)} (--{role}); found: {have}")
    chosen: dict[str, str] = {}
    ambiguous: list[str] = []
    for task, names in candidates.items():
        asked = [name for name in wanted if name in names]
        if len(names) == 1 or asked:
            chosen[task] = asked[0] if asked else names[0]
        elif names:
            ambiguous.append(task)
    if ambiguous:
        task = ambiguous[0]
        of = f"task {quoted(task)}" if task else "the table"
        more = f" ({len(ambiguous):,} tasks have several)" if len(ambiguous) > 1 else ""
        raise InputError(
            f"{of} has {len(candidates[task])} {role}s, {listed(candidates[task])}{more}; "
            f"say which with --{role}"
        )
    return chosen


def names_by_task(task: Coded | None, names: Coded) -> dict[str, list[str]]:
    """The distinct names of a column within each task, in order of first appearance.

    Rows without a task are a task of their own, the empty string; rows without a name declare
    none.
    """
    tasks = [""] if task is None else [*task.texts(), ""]
    codes = np.zeros(len(names), np.int64) if task is None else task.codes % len(tasks)
    texts = names.texts()
    named = names.codes >= 0
    key = codes[named].astype(np.int64) * len(texts) + names.codes[named]
    pairs, first = np.unique(key, return_index=True)
    found: dict[str, list[str]] = {}
    for pair in pairs[np.argsort(first)].tolist():
        found.setdefault(tasks[pair // len(texts)], []).append(texts[pair % len(texts)])
    return found

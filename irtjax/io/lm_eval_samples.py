"""Writer of lm-evaluation-harness' `--samples`: which documents of each task are evaluated.

    lm_eval --tasks gsm8k,mmlu --samples samples.json

A JSON object of task to document numbers, as `samples_<task>_*.jsonl` files have them in `doc_id`
and the reader in its item ids, `task/doc_id`.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from irtjax.errors import InputError
from irtjax.io.write import write_json

__all__ = ["samples_of", "write_samples"]


def samples_of(
    item_ids: Sequence[str], benchmarks: Sequence[Any] | None = None
) -> dict[str, list[int]]:
    """Document numbers by task, tasks in the order of their first item, numbers ascending.

    Args:
        item_ids: `task/number`.
        benchmarks: the task of each item, which may itself have a slash; without, what stands
            before the last slash.

    Raises:
        InputError: an id of another form, or two of one document (`t/7` and `t/07`).

    >>> samples_of(["gsm8k/12", "arc/0", "gsm8k/3"])
    {'gsm8k': [3, 12], 'arc': [0]}
    """
    found: dict[str, dict[int, str]] = {}
    for k, item in enumerate(item_ids):
        task, _, number = str(item).rpartition("/")
        if benchmarks is not None and str(item).startswith(f"{benchmarks[k]}/"):
            task, number = str(benchmarks[k]), str(item)[len(str(benchmarks[k])) + 1 :]
        if not task or not (number.isascii() and number.isdigit()):
            raise InputError(
                f"item {str(item)!r} is no document of lm-evaluation-harness: its ids are "
                "TASK/NUMBER; write .csv or .txt"
            )
        named = found.setdefault(task, {}).setdefault(int(number), str(item))
        if named != str(item):
            raise InputError(
                f"items {named!r} and {str(item)!r} are one document of lm-evaluation-harness, "
                f"{int(number)} of {task!r}; write .csv or .txt, or leave one of them out"
            )
    return {task: sorted(numbers) for task, numbers in found.items()}


def write_samples(samples: Mapping[str, Sequence[int]], path: Path) -> None:
    """Write them as JSON.

    Raises:
        InputError: the file cannot be written.
    """
    write_json(samples, path)

"""PSN-IRT's table on its own split: every baseline, the paper's value beside ours.

    python -m benchmarks psn_irt                           all rows, stability, seconds an epoch
    python -m benchmarks psn_irt --rows psn-4pl --seeds 2  these parts only; the others stay
    python -m benchmarks psn_irt --halves-only             the tau of halves of rows that are there

Each part runs in a process of its own, without a compilation cache, and is written when it is done
(`psn_irt.json`, `psn_irt.md`, `psn_irt.png`). MCMC needs `irtjax[mcmc]`.
"""

import argparse
import datetime
import json
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.environments import PeerFailed
from benchmarks.problems import problem_w1
from benchmarks.processes import run_module
from benchmarks.psn_irt.epochs import epoch_seconds
from benchmarks.psn_irt.rows import ROWS
from benchmarks.psn_irt.scores import N_SPLITS, halves_result, row_result
from benchmarks.psn_irt.stability import stability
from benchmarks.psn_irt.whole_fit import whole_fit
from irtjax.errors import IrtjaxWarning

__all__ = ["PARTS", "measured", "measured_halves", "merged"]

_OTHERS: dict[str, Callable[[], Any]] = {
    "stability": lambda: stability(problem_w1()),
    "epochs": lambda: epoch_seconds(problem_w1()),
    "whole-fit": whole_fit,
}
PARTS = (*(row.name for row in ROWS), *_OTHERS)


def measured(
    parts: Sequence[str], n_seeds: int | None, path: Path, say: Callable[[str], None]
) -> dict[str, Any]:
    """Measure parts, one after the other, and put them into the results that are there already.

    Args:
        parts: names of `PARTS`.
        n_seeds: of each random row, and splits into halves of each row; by row without.
        path: the JSON of the results.
        say: called with a line before each part.

    Returns:
        The results: `rows` in the order of the table, and each other part under its name.
    """
    results = _read(path)
    for part in parts:
        say(f"psn_irt: {part}")
        try:
            found = run_module("benchmarks.psn_irt.run", part, *_seeds(n_seeds))
        except PeerFailed as error:
            found = {"error": str(error)}
        results = merged(results, part, found)
        _write(results, path)
    return results


def measured_halves(
    parts: Sequence[str], n_seeds: int | None, path: Path, say: Callable[[str], None]
) -> dict[str, Any]:
    """Like `measured`, but the tau of halves only, of those parts that are rows of the results.

    The fits are those of a whole run. A row whose fits fail stays as it was.
    """
    results = _read(path)
    rows = {row["name"]: row for row in results.get("rows", []) if "error" not in row}
    for name in [part for part in parts if part in rows]:
        say(f"psn_irt: {name}, halves")
        try:
            found = run_module("benchmarks.psn_irt.run", name, "--halves-only", *_seeds(n_seeds))
        except PeerFailed as error:
            say(f"psn_irt: {name} stays as it was: {error}")
            continue
        results = merged(results, name, rows[name] | found)
        _write(results, path)
    return results


def _read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text()) if path.is_file() else {}


def _write(results: dict[str, Any], path: Path) -> None:
    path.write_text(json.dumps(results, indent=1) + "\n")


def _seeds(n_seeds: int | None) -> list[str]:
    return [] if n_seeds is None else ["--seeds", str(n_seeds)]


def merged(results: dict[str, Any], part: str, found: Any) -> dict[str, Any]:
    """The results with a part put in its place, and today's date."""
    today = datetime.date.today().isoformat()
    if part in _OTHERS:
        return results | {part: found, "date": today}
    rows = {row["name"]: row for row in results.get("rows", [])} | {part: {"name": part} | found}
    ordered = [rows[row.name] for row in ROWS if row.name in rows]
    return results | {"rows": ordered, "date": today}


def main() -> None:
    """Measure one part in this process; JSON on the last line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--halves-only", action="store_true")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", IrtjaxWarning)
    if arguments.part in _OTHERS:
        found = _OTHERS[arguments.part]()
    else:
        row = next(row for row in ROWS if row.name == arguments.part)
        n_splits = arguments.seeds or N_SPLITS
        if arguments.halves_only:
            found = halves_result(row, problem_w1(), n_splits)
        else:
            found = row_result(row, problem_w1(), arguments.seeds or row.n_seeds, n_splits)
    print(json.dumps(found))


if __name__ == "__main__":
    sys.exit(main())

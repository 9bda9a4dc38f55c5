"""PSN-IRT's table on its own split: every baseline, the paper's value beside ours.

    python -m benchmarks psn_irt                           all rows, stability, seconds an epoch
    python -m benchmarks psn_irt --rows psn-4pl --seeds 2  these parts only; the others stay

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
from benchmarks.psn_irt.scores import row_result
from benchmarks.psn_irt.stability import stability
from benchmarks.psn_irt.whole_fit import whole_fit
from irtjax.errors import IrtjaxWarning

__all__ = ["PARTS", "measured", "merged"]

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
        n_seeds: of each random row; by row without.
        path: the JSON of the results.
        say: called with a line before each part.

    Returns:
        The results: `rows` in the order of the table, and each other part under its name.
    """
    results = json.loads(path.read_text()) if path.is_file() else {}
    for part in parts:
        say(f"psn_irt: {part}")
        arguments = [part] if n_seeds is None else [part, "--seeds", str(n_seeds)]
        try:
            found = run_module("benchmarks.psn_irt.run", *arguments)
        except PeerFailed as error:
            found = {"error": str(error)}
        results = merged(results, part, found)
        path.write_text(json.dumps(results, indent=1) + "\n")
    return results


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
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", IrtjaxWarning)
    if arguments.part in _OTHERS:
        found = _OTHERS[arguments.part]()
    else:
        row = next(row for row in ROWS if row.name == arguments.part)
        found = row_result(row, problem_w1(), arguments.seeds or row.n_seeds)
    print(json.dumps(found))


if __name__ == "__main__":
    sys.exit(main())

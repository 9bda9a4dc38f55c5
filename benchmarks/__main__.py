"""Run named benchmarks, each in processes of its own; print tables, write JSON and figures.

    python -m benchmarks                          what there is
    python -m benchmarks W2 W3-3pl                irtjax and all peers, interleaved
    python -m benchmarks W2 --peers mirt          some peers (--peers alone: irtjax only)
    python -m benchmarks scaling                  time against models, items, dims, density
    python -m benchmarks roofline                 one pass against the processor's rates
    python -m benchmarks coverage                 how often 95% intervals hold the truth
    python -m benchmarks adaptive                 adaptive against random items, held-out models
    python -m benchmarks selection-speed          information and selection of 34,000 items
    python -m benchmarks selection-honest         PSN-IRT's Table 6 with models ranked unseen
    python -m benchmarks wrong_keys               wrong answer keys found, in simulated data
    python -m benchmarks integrity                false alarms and power of irtjax check
    python -m benchmarks benchmirt                BenchMIRT's table; ranking models from few items
    python -m benchmarks psn_irt                  PSN-IRT's table: every baseline, paper and ours
    python -m benchmarks full-score               the score on all items from few answers
    python -m benchmarks fit-w2 read-w2           single measurements of irtjax

Results go to benchmarks/results, or to the folder that --out names. The first use of a peer makes
its environment in .cache/peers (up to 10 GB for all of them). Peers run on one thread, irtjax on
all cores; what is compared is CPU seconds, the sum over all threads.
"""

import argparse
import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.catalogue import PROBLEMS
from benchmarks.compare import compared
from benchmarks.environments import PEERS, ROOT
from benchmarks.figures import quality_figure, scaling_figure
from benchmarks.psn_irt.report import draw, markdown
from benchmarks.psn_irt.run import PARTS, measured, measured_halves
from benchmarks.scaling import AXES
from benchmarks.table import results_table

SINGLE = {
    "fit-w2": "benchmarks.fit_w2",
    "read-w2": "benchmarks.read_w2",
    "command-w2": "benchmarks.command_w2",
    "roofline": "benchmarks.roofline",
    "coverage": "benchmarks.coverage",
    "adaptive": "benchmarks.adaptive",
    "benchmirt": "benchmarks.benchmirt",
    "selection-honest": "benchmarks.selection_honest",
    "selection-speed": "benchmarks.selection_speed",
    "wrong_keys": "benchmarks.wrong_keys",
    "integrity": "benchmarks.integrity",
    "full-score": "benchmarks.full_score",
    "score-speed": "benchmarks.score_speed",
}
_RESULTS = ROOT / "benchmarks" / "results"


def main() -> int:
    """Parse, run, print, write."""
    arguments = _parser().parse_args()
    if arguments.here:
        module = importlib.import_module(SINGLE[arguments.names[0]])
        print(json.dumps(module.run(arguments.runs) if arguments.runs else module.run()))
        return 0
    known = (*PROBLEMS, "scaling", "psn_irt", *SINGLE)
    unknown = sorted(set(arguments.names) - set(known))
    if unknown or not arguments.names:
        what = f"unknown: {', '.join(unknown)}; known" if unknown else "name some of these"
        print(f"{what}: {', '.join(known)}", file=sys.stderr)
        return 2
    arguments.out.mkdir(parents=True, exist_ok=True)
    console = Console(width=None if sys.stdout.isatty() else 200)
    for name in arguments.names:
        if name in PROBLEMS:
            _compare(name, arguments, console)
        elif name == "scaling":
            _scale(arguments.axes, arguments.out, console)
        elif name == "psn_irt":
            _psn_irt(arguments, console)
        else:
            _measure(name, arguments, console)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--peers", nargs="*", choices=PEERS, default=PEERS, metavar="PEER")
    parser.add_argument("--axes", nargs="*", choices=AXES, default=tuple(AXES), metavar="AXIS")
    parser.add_argument("--out", type=Path, default=_RESULTS, help="folder (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=0, help="counted runs of single measurements")
    parser.add_argument("--rows", nargs="*", choices=PARTS, default=PARTS, metavar="ROW",
                        help=f"parts of psn_irt: {', '.join(PARTS)}")  # fmt: skip
    parser.add_argument("--seeds", type=int, help="seeds of a random row of psn_irt, and splits")
    parser.add_argument("--halves-only", action="store_true",
                        help="of rows of psn_irt that are there, the tau of halves")  # fmt: skip
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    return parser


def _compare(name: str, arguments: argparse.Namespace, console: Console) -> None:
    result = compared(
        name, PROBLEMS[name], arguments.peers, lambda text: print(text, file=sys.stderr, flush=True)
    )
    _write(result, arguments.out / f"{name}.json")
    console.print(results_table(result))
    _draw(lambda: quality_figure(result, arguments.out / f"{name}.png"))


def _scale(axes: list[str], out: Path, console: Console) -> None:
    for axis in axes:
        sweep = json.loads(_last_line(["-m", "benchmarks.scaling", axis]))
        _write(sweep, out / f"scaling-{axis}.json")
        console.print(f"{axis}: {sweep['what']}; {sweep['held']}")
        for point in sweep["points"]:
            size, seconds = point["size"], point["cpu_seconds"]
            console.print(f"  {size:>9,g}  {seconds:.3g} CPU s  {point['n_steps']} steps")
        _draw(lambda sweep=sweep, axis=axis: scaling_figure(sweep, out / f"scaling-{axis}.png"))


def _psn_irt(arguments: argparse.Namespace, console: Console) -> None:
    path = arguments.out / "psn_irt.json"
    measure = measured_halves if arguments.halves_only else measured
    results = measure(
        arguments.rows,
        arguments.seeds,
        path,
        lambda text: print(text, file=sys.stderr, flush=True),
    )
    text = markdown(results)
    path.with_suffix(".md").write_text(text)
    console.print(text, markup=False, soft_wrap=True)
    _draw(lambda: draw(results, path.with_suffix(".png")))


def _measure(name: str, arguments: argparse.Namespace, console: Console) -> None:
    command = ["-m", "benchmarks", name, "--here", "--runs", str(arguments.runs)]
    measured = json.loads(_last_line(command))
    _write(measured, arguments.out / f"{name}.json")
    module = importlib.import_module(SINGLE[name])
    console.print(f"{name}: {(module.__doc__ or '').splitlines()[0]}")
    if hasattr(module, "table"):
        console.print(module.table(measured))
        return
    for key, value in measured.items():
        console.print(f"  {key:<28} {f'{value:.4g}' if isinstance(value, float) else value}")


def _last_line(arguments: list[str]) -> str:
    done = subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True
    )
    return done.stdout.splitlines()[-1]


def _write(result: dict[str, Any], path: Path) -> None:
    path.write_text(json.dumps(result, indent=1) + "\n")


def _draw(draw: Any) -> None:
    try:
        draw()
    except ModuleNotFoundError:
        print("no figure: matplotlib is not installed (pip install irtjax[bench])", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())

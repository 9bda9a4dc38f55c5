"""Run named benchmarks, each in a process of its own, and print what each measured.

python -m benchmarks                 all of them
python -m benchmarks fit-w2 read-w2  some
python -m benchmarks --out FILE      also as JSON
"""

import argparse
import importlib
import json
import subprocess
import sys
from pathlib import Path

BENCHMARKS = {
    "fit-w2": "benchmarks.fit_w2",
    "read-w2": "benchmarks.read_w2",
    "command-w2": "benchmarks.command_w2",
}
ROOT = Path(__file__).resolve().parents[1]


def main() -> int:
    """Parse, run, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(BENCHMARKS))
    parser.add_argument("--runs", type=int, default=0, help="counted runs (default: each its own)")
    parser.add_argument("--out", type=Path, help="write all measurements as JSON")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    unknown = set(arguments.names) - set(BENCHMARKS)
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}; known: {', '.join(BENCHMARKS)}")
    if arguments.here:
        module = importlib.import_module(BENCHMARKS[arguments.names[0]])
        measured = module.run(arguments.runs) if arguments.runs else module.run()
        print(json.dumps(measured))
        return 0
    results = {}
    for name in arguments.names or BENCHMARKS:
        command = [sys.executable, "-m", "benchmarks", name, "--here"]
        command += ["--runs", str(arguments.runs)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode:
            print(done.stderr, file=sys.stderr)
            return done.returncode
        results[name] = json.loads(done.stdout.splitlines()[-1])
        print(f"{name}: {importlib.import_module(BENCHMARKS[name]).__doc__.splitlines()[0]}")
        for key, value in results[name].items():
            shown = f"{value:.4g}" if isinstance(value, float) else value
            print(f"  {key:<20} {shown}")
    if arguments.out:
        arguments.out.write_text(json.dumps(results, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

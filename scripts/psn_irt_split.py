"""Turn the shared PSN-IRT responses into train.csv and test.csv, PSN-IRT's own split.

Long tables with the columns model_id, item_id, benchmark, response, sorted by item and then by
model; item ids are `<benchmark>/<index within it>`. 400,957 and 100,240 rows.

    python scripts/psn_irt_split.py --out .
"""

import argparse
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "psn_irt.npz"
PARTS = {"train.csv": 0, "test.csv": 1}


def long_table(arrays: dict[str, np.ndarray], part: int) -> pa.Table:
    """The cells of one part of the split as a long table."""
    item, model = np.nonzero(arrays["split"].T == part)
    benchmark = pd.Series(arrays["benchmarks"][arrays["item_benchmark"]])
    item_ids = benchmark + "/" + benchmark.groupby(benchmark).cumcount().astype(str)
    return pa.table(
        {
            "model_id": pa.array(arrays["models"].tolist()).take(pa.array(model)),
            "item_id": pa.array(item_ids.tolist()).take(pa.array(item)),
            "benchmark": pa.array(benchmark.tolist()).take(pa.array(item)),
            "response": pa.array(arrays["responses"][model, item]),
        }
    )


def write_table(table: pa.Table, path: Path) -> None:
    """Write a CSV; no id of these data needs quotes, and pyarrow would quote the header."""
    options = pa.csv.WriteOptions(include_header=False, quoting_style="none")
    with path.open("wb") as file:
        file.write((",".join(table.column_names) + "\n").encode())
        pa.csv.write_csv(table, file, options)


def main() -> int:
    """Write both files; 2 and one line on stderr when the data are not there."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("."), help="folder to write to")
    parser.add_argument("--data", type=Path, default=DATA, help="psn_irt.npz of the shared data")
    options = parser.parse_args()
    if not options.data.is_file():
        print(f"error: {options.data} is not there; give its place with --data", file=sys.stderr)
        return 2
    with np.load(options.data) as file:
        arrays = {name: file[name] for name in file.files}
    options.out.mkdir(parents=True, exist_ok=True)
    for name, part in PARTS.items():
        table = long_table(arrays, part)
        write_table(table, options.out / name)
        print(f"{options.out / name}: {table.num_rows:,} responses")
    return 0


if __name__ == "__main__":
    sys.exit(main())

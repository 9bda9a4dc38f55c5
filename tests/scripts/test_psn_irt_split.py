"""The script writes PSN-IRT's split as two long tables, or one line of error."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "psn_irt_split.py"


def _run(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.shared
def test_files_hold_every_cell_once(tmp_path: Path, shared_dir: Path):
    data = shared_dir / "data" / "psn_irt.npz"
    done = _run("--data", data, "--out", tmp_path / "new")
    assert done.returncode == 0, done.stderr
    with np.load(data) as arrays:
        responses, split = arrays["responses"], arrays["split"]
        models = {name: k for k, name in enumerate(arrays["models"].tolist())}
        benchmarks = arrays["benchmarks"][arrays["item_benchmark"]]
    item_ids = [f"{b}/{k}" for b, k in zip(benchmarks, _within(benchmarks), strict=True)]
    items = {name: k for k, name in enumerate(item_ids)}
    for name, part in {"train.csv": 0, "test.csv": 1}.items():
        lines = (tmp_path / "new" / name).read_text().splitlines()
        assert lines[0] == "model_id,item_id,benchmark,response"
        table = pd.read_csv(tmp_path / "new" / name)
        rows = table["model_id"].map(models).to_numpy()
        columns = table["item_id"].map(items).to_numpy()
        assert np.all(np.diff(columns * 12 + rows) > 0)
        assert len(table) == np.count_nonzero(split == part)
        assert np.all(split[rows, columns] == part)
        np.testing.assert_array_equal(table["response"], responses[rows, columns])
        np.testing.assert_array_equal(table["benchmark"].to_numpy(str), benchmarks[columns])


def _within(names: np.ndarray) -> list[int]:
    seen: dict[str, int] = {}
    return [seen.update({name: seen.get(name, -1) + 1}) or seen[name] for name in names.tolist()]


def test_absent_data_are_one_line_of_error(tmp_path: Path):
    done = _run("--data", tmp_path / "none.npz", "--out", tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert "none.npz is not there" in done.stderr
    assert not list(tmp_path.iterdir())

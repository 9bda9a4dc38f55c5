"""LSAT 6 and 7 as typed against the copies that R packages distribute."""

from pathlib import Path

import numpy as np
import pytest

from irtjax.data.tables import LSAT6_PATTERNS, LSAT7_PATTERNS, lsat6, lsat7

TABLES = {"LSAT6": (LSAT6_PATTERNS, lsat6), "LSAT7": (LSAT7_PATTERNS, lsat7)}


@pytest.mark.shared
@pytest.mark.parametrize("name", TABLES)
def test_counts_equal_the_distributed_data(name: str, shared_dir: Path):
    patterns, _ = TABLES[name]
    responses = np.load(shared_dir / "data" / "classical.npz")[name]
    rows, counts = np.unique(responses, axis=0, return_counts=True)
    found = {"".join(map(str, row)): int(n) for row, n in zip(rows, counts, strict=True)}
    assert found == patterns


@pytest.mark.parametrize("name", TABLES)
def test_rows_are_expanded_in_pattern_order(name: str):
    patterns, load = TABLES[name]
    assert list(patterns) == sorted(patterns)
    assert sum(patterns.values()) == 1000
    data = load()
    assert data.to_dense().dtype == np.int8
    rows = ["".join(map(str, row)) for row in data.to_dense()]
    assert rows == [pattern for pattern, n in patterns.items() for _ in range(n)]
    assert data.item_ids.tolist() == [f"{name}/{k}" for k in range(1, 6)]


@pytest.mark.parametrize(
    "name, right",
    [("LSAT6", [924, 709, 553, 763, 870]), ("LSAT7", [828, 658, 772, 606, 843])],
)
def test_number_right_of_each_item(name: str, right: list[int]):
    """The item totals that the cited papers and R's ltm and mirt print."""
    assert TABLES[name][1]().to_dense().sum(axis=0).tolist() == right

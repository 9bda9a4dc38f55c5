"""The drawn problems keep their shapes and, to the last cell, their draws."""

import zlib

import numpy as np
import pytest

from benchmarks.large_problems import metabench_problem, selection_items, sparse_problem
from benchmarks.problems import Problem

SUMS = [
    43349.221151613194,
    -140.7897696488749,
    6794.9746319987225,
    30891.317770666134,
]  # of selection_items


def checksum(problem: Problem) -> int:
    cells = problem.train.cells()
    parts = (cells.model_index, cells.item_index, cells.response.astype(np.int8))
    held_out = (problem.test.model_index, problem.test.item_index)
    return zlib.crc32(
        b"".join(np.ascontiguousarray(part).tobytes() for part in (*parts, *held_out))
    )


def test_sparse_problem_has_its_density_and_draws():
    problem = sparse_problem(n_models=200, n_items=3_000)
    assert (problem.train.n_models, problem.train.n_items) == (200, 3_000)
    n_cells = problem.train.n_responses + len(problem.test)
    assert 0.99 * 3_000 < n_cells <= 3_000
    assert 0.03 < len(problem.test) / n_cells < 0.07
    assert checksum(problem) == 2010432969


def test_sparse_problem_holds_no_cell_twice():
    problem = sparse_problem(n_models=50, n_items=400, density=0.5)
    seen = problem.train.cells()
    flat = np.concatenate(
        [
            seen.item_index * 50 + seen.model_index,
            problem.test.item_index * 50 + problem.test.model_index,
        ]
    )
    assert len(np.unique(flat)) == len(flat)


def test_metabench_problem_misses_exactly_its_held_out_cells():
    problem = metabench_problem(n_models=60, n_items=1_100)
    dense = problem.train.to_dense()
    assert dense.shape == (60, 1_100)
    assert (dense[problem.test.model_index, problem.test.item_index] == -1).all()
    assert (dense == -1).sum() == len(problem.test)
    assert 0.005 < len(problem.test) / dense.size < 0.015
    assert checksum(problem) == 2910871458


def test_selection_items_are_valid_four_parameter_items():
    items = selection_items()
    assert {name: len(value) for name, value in items.items()} == dict.fromkeys(items, 34_000)
    assert (items["slope"] > 0).all()
    assert ((items["guessing"] > 0) & (items["guessing"] < items["feasibility"])).all()
    assert (items["feasibility"] < 1).all()
    sums = [float(items[name].sum()) for name in ("slope", "difficulty", "guessing", "feasibility")]
    assert sums == pytest.approx(SUMS, rel=1e-9)

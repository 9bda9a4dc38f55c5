"""The counts of the roofline are those of the program that runs."""

import math
from collections import Counter
from typing import Any

import jax
import numpy as np
import pytest

from benchmarks.roofline import counted, logit_moment_flops, one_pass
from irtjax.data.responses import ResponseMatrix
from irtjax.parallel import items_mesh

MODELS, ITEMS = 9, 16


def brute_counts(function: Any, arguments: Any) -> Counter[str]:
    """Operations of the traced program: matrix products, and elementwise ones on all cells."""
    counts: Counter[str] = Counter()
    with jax.set_mesh(items_mesh(None)):
        jaxpr = jax.make_jaxpr(function)(*arguments)
    _add(counts, jaxpr.jaxpr, 1)
    return counts


def _add(counts: Counter[str], jaxpr: Any, times: int) -> None:
    for equation in jaxpr.eqns:
        name, params = equation.primitive.name, equation.params
        if name == "dot_general":
            (contracted, _), _ = params["dimension_numbers"]
            inner = math.prod(equation.invars[0].aval.shape[axis] for axis in contracted)
            counts["flops"] += 2 * times * inner * equation.outvars[0].aval.size
        elif equation.outvars and getattr(equation.outvars[0].aval, "shape", ()) == (MODELS, ITEMS):
            counts[name] += times * MODELS * ITEMS
        inner_times = times * params.get("length", 1)
        for value in params.values():
            if hasattr(value, "eqns"):
                _add(counts, value, inner_times)
            elif hasattr(value, "jaxpr"):
                _add(counts, value.jaxpr, inner_times)


@pytest.mark.parametrize("dims, n_nodes", [(1, 5), (2, 5), (3, 9)])
def test_counts_are_those_of_the_traced_pass(dims: int, n_nodes: int):
    rng = np.random.default_rng(0)
    data = ResponseMatrix.from_dense(rng.integers(0, 2, (MODELS, ITEMS)).astype(np.int8))
    function, arguments = one_pass(data, dims, n_nodes)
    brute = brute_counts(function, arguments)
    counts = counted(MODELS, ITEMS, dims, n_nodes)
    assert brute["tanh"] == counts.tangents
    assert brute["exp"] == counts.exponentials
    assert brute["log"] == counts.logarithms
    # As written: the logit's moments a third time, the prior's moments (one slot a block) and the
    # contraction of a models x dims x coordinates array.
    size = dims + 1
    pairs = size * (size + 1) // 2
    merged = MODELS * ITEMS * logit_moment_flops(dims)
    small = 2 * ITEMS * (size + pairs) + 2 * MODELS * dims * size
    assert brute["flops"] == counts.matrix_flops + merged + small
    blocks, items, _ = arguments
    read_and_written = sum(leaf.size for leaf in jax.tree.leaves(items))
    assert counts.bytes == blocks.response.nbytes + 2 * 4 * read_and_written

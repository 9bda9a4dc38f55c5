"""How close one pass of W2 at two dims comes to what the processor can do.

    python -m benchmarks roofline

`renew_items` (irtjax/fit/item_pass.py) visits every cell in blocks that stay in a core's cache.
With D dims, K = D + 1 coordinates, T = K (K + 1) / 2 packed pairs, S = D (D + 1) / 2 packed pairs
of slopes and Q Gauss-Hermite nodes, a cell of the 2PL without effects costs

- expected derivatives at the old and at the new posterior, and the evidence at the new one: three
  expectations over Q nodes. A derivative is a hyperbolic tangent, the evidence an exponential, with
  one logarithm for two nodes (irtjax/fit/expectations.py): 2 Q tangents, Q exponentials, Q / 2
  (rounded up) logarithms;
- matrix products, 2 operations a multiply-add: mean and variance of the logit `K + T + T` (the last
  of the abilities' own covariance), at the old and at the new posterior (it is written three times;
  the compiler merges the last two); precision and gradient of the items `T + K + T`; score and
  information of the abilities `D K + D + S`. In all `2 (2 (K + 2 T) + (2 T + K) + D K + D + S)`,
  112 at two dims;
- one byte of main memory: the response as int8. The posteriors add `8 (K + T + 1)` bytes an item,
  read and written once. The blocks' float32 intermediates stay in cache and are not counted.

Work an item (inverses of K x K matrices, divergences, moments of the prior) is 1 / models of the
cells' and left out, as are the additions and multiplications between the exponentials.

Rates are measured in the same run with CPU seconds of all threads, so they are a core's: float32
matrix product of 1,024 x 1,024, tangent, exponential and logarithm over an array that stays in
cache, and a copy of 256 MiB. Seconds at these rates, one kind after the other, are the floor.
"""

import dataclasses
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.problems import reference_problem_w2
from irtjax.data.blocks import Blocks, make_blocks
from irtjax.data.responses import ResponseMatrix
from irtjax.fit.item_pass import ItemPosteriors, PassContext, renew_items
from irtjax.fit.marginal_items import MarginalItems
from irtjax.model.priors import Priors
from irtjax.model.spec import ModelSpec
from irtjax.parallel import BLOCKED, items_mesh, place

__all__ = ["PassCounts", "counted", "logit_moment_flops", "one_pass", "run"]

_DIMS, _NODES = 2, 5
_REPEATS = 7
_IN_CACHE = 51_200  # floats, as many as a block has cells
_LOOPS = 200
_SIZE = 1024
_COPIED = 2**28


@dataclasses.dataclass(frozen=True)
class PassCounts:
    """Operations and bytes of main memory of one pass over all cells, padding included."""

    matrix_flops: int
    tangents: int
    exponentials: int
    logarithms: int
    bytes: int


def logit_moment_flops(dims: int) -> int:
    """Operations a cell of the mean and variance of a logit."""
    size = dims + 1
    return 2 * (size + size * (size + 1))


def counted(n_models: int, n_item_slots: int, dims: int, n_nodes: int) -> PassCounts:
    """The counts of the module's docstring.

    Args:
        n_models: number of models.
        n_item_slots: items with the padding of the last block.
        dims: dims of the 2PL.
        n_nodes: Gauss-Hermite nodes.
    """
    size = dims + 1
    pairs, slope_pairs = size * (size + 1) // 2, dims * size // 2
    updates = 2 * (2 * pairs + size + dims * size + dims + slope_pairs)
    cells = n_models * n_item_slots
    return PassCounts(
        matrix_flops=cells * (2 * logit_moment_flops(dims) + updates),
        tangents=2 * n_nodes * cells,
        exponentials=n_nodes * cells,
        logarithms=(n_nodes + 1) // 2 * cells,
        bytes=cells + 8 * n_item_slots * (size + pairs + 1),
    )


def one_pass(
    data: ResponseMatrix, dims: int, n_nodes: int
) -> tuple[Callable[..., Any], tuple[Blocks, ItemPosteriors, PassContext]]:
    """`renew_items` and its arguments after the start of a 2PL fit; call it within `set_mesh`."""
    mesh = items_mesh(None)
    blocks, _ = make_blocks(data, n_shards=mesh.size)
    blocks = place(blocks, mesh, BLOCKED)
    estimator = MarginalItems(n_nodes=n_nodes)
    with jax.set_mesh(mesh):
        state = estimator.init(blocks, ModelSpec("2pl", dims), Priors(), jax.random.key(0))
        context = estimator.context(state)
    return renew_items, (blocks, state.items, context)


def run(n_runs: int = _REPEATS) -> dict[str, float]:
    """Time a warm pass of W2 and each rate; seconds at these rates and their shares of the pass."""
    function, arguments = one_pass(reference_problem_w2().train, _DIMS, _NODES)
    with jax.set_mesh(items_mesh(None)):
        compiled = jax.jit(function).lower(*arguments).compile()
        measured = _seconds(lambda: compiled(*arguments), n_runs)
    blocks = arguments[0]
    counts = counted(blocks.n_models, blocks.n_blocks * blocks.items_per_block, _DIMS, _NODES)
    rates = _rates(n_runs)
    result = {"pass_cpu_seconds": measured, **dataclasses.asdict(counts)}
    floor = 0.0
    for name, amount in dataclasses.asdict(counts).items():
        seconds = amount / rates[name]
        floor += seconds
        result |= {
            f"{name}_per_second": rates[name],
            f"{name}_seconds": seconds,
            f"{name}_share": seconds / measured,
        }
    result |= {"floor_seconds": floor, "floor_share": floor / measured}
    analysis = compiled.cost_analysis() or {}
    for name in ("flops", "transcendentals", "bytes accessed"):
        # XLA counts the body of a loop once, so these are of one block.
        if name in analysis:
            result[f"xla_{name.replace(' ', '_')}_a_block"] = float(analysis[name])
    return result


def _rates(n_runs: int) -> dict[str, float]:
    """Operations (bytes) a CPU second of each kind."""
    key = jax.random.key(1)
    square = jax.random.normal(key, (_SIZE, _SIZE), jnp.float32)
    small = jnp.linspace(0.1, 1.0, _IN_CACHE, dtype=jnp.float32)
    large = jnp.ones(_COPIED // 4, jnp.float32)
    product = jax.jit(lambda a: a @ a)
    copy = jax.jit(lambda a: a + 1)
    elementwise = {
        "tangents": jnp.tanh,
        "exponentials": lambda x: jnp.exp(-x),
        "logarithms": lambda x: jnp.log(1 + x),
    }
    rates = {"matrix_flops": 2 * _SIZE**3 / _seconds(lambda: product(square), n_runs)}
    for name, function in elementwise.items():
        loop = jax.jit(
            lambda x, function=function: jax.lax.fori_loop(0, _LOOPS, lambda _, y: function(y), x)
        )
        rates[name] = _LOOPS * _IN_CACHE / _seconds(lambda loop=loop: loop(small), n_runs)
    rates["bytes"] = 2 * _COPIED / _seconds(lambda: copy(large), n_runs)
    return rates


def _seconds(function: Callable[[], Any], n_runs: int) -> float:
    """Median CPU seconds, warm."""
    jax.block_until_ready(function())
    taken = []
    for _ in range(n_runs):
        start = time.process_time()
        jax.block_until_ready(function())
        taken.append(time.process_time() - start)
    return float(np.maximum(statistics.median(taken), 1e-9))


def main() -> None:
    """Measure; JSON on the last line."""
    print(json.dumps(run()))


if __name__ == "__main__":
    main()

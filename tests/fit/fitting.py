"""Fits that several test files share: few shapes, each fitted once in a process."""

import functools
import warnings

import jax
import numpy as np

from benchmarks.problems import reference_problem_w2
from irtjax.data.blocks import make_blocks
from irtjax.data.simulate import simulate
from irtjax.errors import IrtjaxWarning
from irtjax.fit.api import fit
from irtjax.model.spec import ModelSpec
from irtjax.parallel import BLOCKED, items_mesh, place

# One block of 256 positions; the same shape everywhere, so that a kind compiles once.
N_MODELS, N_ITEMS, N_BENCHMARKS = 24, 240, 4

# Every family, with and without effects, one and more dims, the mixture.
KINDS = {
    "1pl": (ModelSpec("1pl"), {"group": "benchmark"}),
    "2pl": (ModelSpec("2pl"), {}),
    "2pl-2d": (ModelSpec("2pl", 2), {"group": "benchmark"}),
    "3pl": (ModelSpec("3pl"), {}),
    "4pl-2d": (ModelSpec("4pl", 2), {"group": "benchmark"}),
    "mixture": (
        ModelSpec("2pl"),
        {"group": "benchmark", "item_distribution": "mixture", "components": 2},
    ),
}


@functools.cache
def simulated(kind, seed=0):
    """Data of a kind with its truth, a tenth of the cells missing."""
    spec, settings = KINDS[kind]
    return simulate(
        spec,
        n_models=N_MODELS,
        n_items=N_ITEMS,
        n_benchmarks=N_BENCHMARKS,
        missing=0.1,
        effect_sd=0.3 if "group" in settings else 0.0,
        shared_asymptotes=True,
        seed=seed,
    )


def quiet_fit(*args, **settings):
    """`fit` without its warnings (a test that expects one asks for it)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IrtjaxWarning)
        return fit(*args, **settings)


@functools.cache
def fitted(kind):
    """The fit of `simulated(kind)`."""
    spec, settings = KINDS[kind]
    return quiet_fit(simulated(kind).data, spec, **settings)


@functools.cache
def w2():
    """W2 of the references, and its fit with the true number of dims."""
    problem = reference_problem_w2()
    return problem, quiet_fit(problem.train, ModelSpec("2pl", 2))


def leaves(tree):
    """Arrays of a pytree by their path."""
    named, _ = jax.tree_util.tree_flatten_with_path(tree)
    return {jax.tree_util.keystr(path): np.asarray(leaf) for path, leaf in named}


def assert_same_bits(one, other):
    """Every array of two pytrees is the same to the last bit (NaN equals NaN)."""
    one, other = leaves(one), leaves(other)
    assert one.keys() == other.keys()
    for name, value in one.items():
        assert value.dtype == other[name].dtype, name
        np.testing.assert_array_equal(value, other[name], err_msg=name)


def placed_blocks(data, devices=None, items_per_block=None):
    """Blocks on their mesh, the layout and the mesh, as `fit` makes them.

    Where the items have a benchmark they are blocked by it, also without effects (for the clustered
    errors): another structure would be another compilation.
    """
    mesh = items_mesh(devices)
    codes = data.groups("benchmark")[0] if "benchmark" in data.item_metadata else None
    blocks, layout = make_blocks(data, codes, n_shards=mesh.size, items_per_block=items_per_block)
    return place(blocks, mesh, BLOCKED), layout, mesh

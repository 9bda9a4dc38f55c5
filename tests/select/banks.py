"""Small banks of items, in one shape, so that a process compiles few programs."""

import functools

import numpy as np

from irtjax.model.curves import item_curves
from irtjax.model.spec import ModelSpec
from irtjax.select.bank import Bank
from irtjax.select.quotas import Quotas
from irtjax.select.target import Target
from tests.fit.fitting import N_BENCHMARKS, fitted

N_ITEMS, N_POINTS = 48, 4
SPEC = ModelSpec("2pl")


def drawn_bank(dims=2, seed=0, *, n_groups=0):
    """A bank of 4PL items; with groups, models have effects on them."""
    rng = np.random.default_rng((seed, dims))
    ids = np.array([f"item-{k:03d}" for k in range(N_ITEMS)])
    curves = item_curves(
        rng.normal(0.8, 0.7, (N_ITEMS, dims)),
        rng.normal(0, 1, N_ITEMS),
        rng.beta(3, 17, N_ITEMS),
        1 - rng.beta(2, 18, N_ITEMS),
    )
    group = rng.integers(0, n_groups, N_ITEMS) if n_groups else None
    prior = np.eye(dims) + 0.2 * (1 - np.eye(dims))
    return Bank(curves, ids, np.arange(N_ITEMS), prior, None, group, 0.4)


def drawn_target(dims=2, seed=0):
    """Four unequally weighted abilities."""
    rng = np.random.default_rng((seed, dims, 1))
    weight = rng.random(N_POINTS)
    return Target(rng.normal(size=(N_POINTS, dims)), weight / weight.sum(), "drawn")


def free(n_items=N_ITEMS):
    """Quotas that bound nothing."""
    return Quotas("", np.zeros(n_items, int), [""], np.zeros(1, int), np.array([n_items]))


@functools.cache
def run(kind="2pl"):
    """A fit of 24 models x 240 items in four benchmarks (shared with the tests of `fit`)."""
    return fitted(kind)


__all__ = [
    "N_BENCHMARKS",
    "N_ITEMS",
    "N_POINTS",
    "drawn_bank",
    "drawn_target",
    "free",
    "run",
]

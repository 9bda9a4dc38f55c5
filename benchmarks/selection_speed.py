"""CPU seconds of information and selection on a bank of 34,000 items, warm."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

import irtjax as ij
from benchmarks.large_problems import selection_items
from benchmarks.measure import Timing, peak_mebibytes, timed
from irtjax.model.curves import ItemCurves, item_curves
from irtjax.model.information import item_information, mean_information, total_information
from irtjax.select.bank import Bank
from irtjax.select.greedy import greedy
from irtjax.select.quotas import Quotas
from irtjax.select.target import Target

__all__ = ["measured_picks", "run"]

N_ABILITIES, N_SELECTED, DIMS, N_POINTS = 100, 1000, 2, 16
_ADAPTED = (
    ("", 1, None),
    ("_effects", 1, "benchmark"),
    ("_two_dims", 2, None),
    ("_two_dims_effects", 2, "benchmark"),
)


def run(n_runs: int = 7) -> dict[str, float]:
    """Information of all items at 100 abilities, and D-optimal sets of 1,000 items at two dims.

    `milliseconds` are CPU milliseconds; `*_one` for one target, `*_models` for a distribution of 16
    points. `adapt_seconds`: adaptive tests of 100 models, 100 items each out of all; with effects
    of eight benchmarks, and at two dims, beside.
    """
    rng = np.random.default_rng(0)
    one, bank = _curves(selection_items()), _bank(rng)
    n_items = one.n_items
    places = jnp.asarray(rng.normal(size=(N_ABILITIES, 1)), jnp.float32)
    weight = jnp.full(N_ABILITIES, 1 / N_ABILITIES)
    found = {
        "information_milliseconds": 1e3 * _warm(lambda: item_information(one, places), n_runs),
        "mean_information_milliseconds": 1e3
        * _warm(lambda: mean_information(one, places, weight), n_runs),
        "test_information_milliseconds": 1e3
        * _warm(lambda: total_information(one, places), n_runs),
    }
    free = Quotas("", np.zeros(n_items, int), [""], np.zeros(1, int), np.array([n_items]))
    for name, n_points in (("one", 1), ("models", N_POINTS)):
        target = Target(rng.normal(size=(n_points, DIMS)), np.full(n_points, 1 / n_points), name)
        for criterion in ("d-optimal", "a-optimal"):
            found[f"{criterion}_seconds_{name}"] = _warm(
                lambda target=target, criterion=criterion: greedy(
                    bank, target, free, N_SELECTED, criterion=criterion
                ),
                3,
            )
    for name, dims, group in _ADAPTED:
        found[f"adapt_seconds{name}"] = _adapt_seconds(n_items, dims, group)
    return found


def measured_picks(items: Mapping[str, np.ndarray], n_picks: int) -> dict[str, Any]:
    """Picks of the most informative item left, abilities given: what peers do on this bank."""
    curves = _curves(items)

    def picks() -> list[int]:
        is_free, taken = jnp.ones(curves.n_items, bool), []
        for ability in np.linspace(-2, 2, n_picks, dtype=np.float32):
            item, is_free = _picked(curves, ability, is_free)
            taken.append(int(item))
        return taken

    cold: Timing = timed(picks, 1)
    warm: Timing = timed(picks, 5)
    return {
        "cpu_seconds": warm.cpu_seconds,
        "wall_seconds": warm.wall_seconds,
        "cold_cpu_seconds": cold.cpu_seconds,
        "compile_seconds": cold.wall_seconds - warm.wall_seconds,
        "peak_mebibytes": peak_mebibytes(),
        "n_picks": n_picks,
        "ms_per_pick": 1e3 * warm.cpu_seconds / n_picks,
    }


@jax.jit
def _picked(
    curves: ItemCurves, ability: Float[Array, ""], is_free: Bool[Array, " items"]
) -> tuple[Int[Array, ""], Bool[Array, " items"]]:
    told = item_information(curves, ability[None, None])[0]
    item = jnp.argmax(jnp.where(is_free, told, -1))
    return item, is_free.at[item].set(False)


def _curves(items: Mapping[str, np.ndarray]) -> ItemCurves:
    slope = items["slope"]
    return item_curves(
        slope[:, None], -slope * items["difficulty"], items["guessing"], items["feasibility"]
    )


def _bank(rng: np.random.Generator) -> Bank:
    items = selection_items()
    n_items = len(items["slope"])
    slope = items["slope"][:, None] * rng.dirichlet(np.ones(DIMS), n_items)
    intercept = -items["slope"] * items["difficulty"]
    curves = item_curves(slope, intercept, items["guessing"], items["feasibility"])
    ids = np.char.zfill(np.arange(n_items).astype(str), 5)
    return Bank(curves, ids, np.arange(n_items), np.eye(DIMS))


def _adapt_seconds(n_items: int, dims: int, group: str | None) -> float:
    """Adaptive tests of as many models as the fit had, and as many items of each."""
    spec = ij.ModelSpec("2pl", dims)
    made = ij.simulate(
        spec,
        n_models=2 * N_ABILITIES,
        n_items=n_items,
        n_benchmarks=8,
        effect_sd=0.4 if group else 0.0,
        seed=1,
    ).data
    learnt, new = (
        ij.ResponseMatrix.from_dense(rows, item_ids=made.item_ids, item_metadata=made.item_metadata)
        for rows in np.split(made.to_dense(), [N_ABILITIES])
    )
    fit = ij.fit(learnt, spec, group=group)
    return _warm(lambda: ij.adapt(fit, new, max_items=N_ABILITIES).models["n_items"].to_numpy(), 3)


def _warm(function: Any, n_runs: int) -> float:
    """Median CPU seconds after a first call."""
    jax.block_until_ready(function())
    return timed(lambda: jax.block_until_ready(function()), n_runs).cpu_seconds

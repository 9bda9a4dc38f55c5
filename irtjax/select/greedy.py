"""Bayesian greedy selection: the next item is the one that narrows the posterior most.

With V the posterior covariance of what is unknown (abilities, and effects of the models on
benchmarks where the fit has them), an item of loadings a that tells g about its logit has
`q = a' V a`, and V becomes `V - g (V a)(V a)' / (1 + g q)`. With M the part that is measured (all
abilities, or their place along one direction) and `S = M V M'`:

    d-optimal: log det S falls by -log(1 - g w / (1 + g q)), w = a' V M' S^-1 M V a
               (log(1 + g q) where everything is measured, as then w = q)
    a-optimal: trace S falls by g w / (1 + g q), w = a' V M' M V a

Gains are averaged over the target. Source: Segall (1996) and van der Linden (1999) for one test
taker's next item; here for a fixed set.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from irtjax.model.pytree import pytree_dataclass, static_field
from irtjax.score.ties import least_equal
from irtjax.select.bank import Bank, padded, told_at
from irtjax.select.quotas import Quotas, room
from irtjax.select.target import Target, padded_target

__all__ = ["exchanged", "greedy"]

_MOST_SWEEPS = 10


@pytree_dataclass
class _Problem:
    """Items with what they tell at the points of the target, padded to few shapes."""

    slope: Float[Array, "items dims"]
    group: Int[Array, " items"] | None
    told: Float[Array, "points items"]
    weight: Float[Array, " points"]
    measured: Float[Array, "measured unknowns"] | None
    quota_group: Int[Array, " items"]
    least: Int[Array, " quotas"]
    most: Int[Array, " quotas"]
    is_d_optimal: bool = static_field()


@pytree_dataclass
class _State:
    """Covariance at every point, which items are left, how many of each quota are taken."""

    covariance: Float[Array, "points unknowns unknowns"]
    is_free: Bool[Array, " items"]
    count: Int[Array, " quotas"]


def greedy(
    bank: Bank,
    target: Target,
    quotas: Quotas,
    budget: int,
    *,
    criterion: str,
    direction: np.ndarray | None = None,
    among: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Items one after the other, each with the largest gain; the first id where they tie.

    Args:
        bank: the items.
        target: whom to measure.
        quotas: which the selection keeps.
        budget: how many.
        criterion: `d-optimal` or `a-optimal`.
        direction: measure the place along it only (of length 1).
        among: positions in the bank to take from; all without.

    Returns:
        Positions in the bank in the order of selection, and their gains (nats, or squared latent
        standard deviations).
    """
    problem, state = _prepared(bank, target, quotas, criterion, direction, among)
    order, gain = _greedy(problem, state, jnp.asarray(budget))
    return np.asarray(order)[:budget], np.asarray(gain, np.float64)[:budget]


def exchanged(
    bank: Bank,
    target: Target,
    quotas: Quotas,
    start: np.ndarray,
    *,
    criterion: str,
    direction: np.ndarray | None = None,
) -> np.ndarray:
    """A selection after swaps of single items (Fedorov's exchange) until none gains.

    Args:
        bank: the items.
        target: whom to measure.
        quotas: which the selection keeps.
        start: positions of a selection that keeps them.
        criterion: as in `greedy`.
        direction: as in `greedy`.
    """
    order = np.asarray(start)
    for _ in range(_MOST_SWEEPS):
        problem, state = _prepared(bank, target, quotas, criterion, direction, None)
        rows = np.zeros(len(state.is_free), np.int32)
        rows[: len(order)] = order
        moved = _sweep(problem, state, jnp.asarray(rows), jnp.asarray(len(order)))
        moved = np.asarray(moved)[: len(order)]
        if np.array_equal(moved, order):
            break
        order = moved
    return order


def _prepared(
    bank: Bank,
    target: Target,
    quotas: Quotas,
    criterion: str,
    direction: np.ndarray | None,
    among: np.ndarray | None,
) -> tuple[_Problem, _State]:
    n, curves = bank.curves.n_items, padded(bank.curves)
    n_rows, more = curves.n_items, curves.n_items - n
    target = padded_target(target)
    dtype, dims = curves.slope.dtype, curves.dims
    frame = np.eye(dims) if direction is None else np.asarray(direction)[None]
    measured = np.pad(frame, ((0, 0), (0, bank.n_groups)))
    is_all = direction is None and not bank.n_groups and criterion == "d-optimal"
    is_free = np.zeros(n_rows, bool)
    is_free[np.arange(n) if among is None else among] = True
    problem = _Problem(
        curves.slope,
        None if bank.group is None else jnp.asarray(np.pad(bank.group, (0, more)), jnp.int32),
        told_at(bank, target.ability),
        jnp.asarray(target.weight, dtype),
        None if is_all else jnp.asarray(measured, dtype),
        jnp.asarray(np.pad(quotas.group, (0, more)), jnp.int32),
        jnp.asarray(quotas.least, jnp.int32),
        jnp.asarray(np.minimum(quotas.most, n), jnp.int32),
        criterion == "d-optimal",
    )
    prior = jnp.asarray(bank.prior_covariance(), dtype)
    covariance = jnp.broadcast_to(prior, (len(target.weight), *prior.shape))
    return problem, _State(covariance, jnp.asarray(is_free), jnp.zeros_like(problem.least))


@jax.jit
def _greedy(
    problem: _Problem, state: _State, budget: Int[Array, ""]
) -> tuple[Int[Array, " items"], Float[Array, " items"]]:
    """Items and their gains in as many places as there are items: a program for every budget."""

    def step(k: Array, carry: tuple[_State, Array, Array]) -> tuple[_State, Array, Array]:
        state, order, gain = carry
        item, gained = _best(problem, state, budget - k)
        return _taken(problem, state, item, 1), order.at[k].set(item), gain.at[k].set(gained)

    n_items = len(state.is_free)
    empty = jnp.zeros(n_items, jnp.int32), jnp.zeros(n_items, problem.told.dtype)
    return jax.lax.fori_loop(0, budget, step, (state, *empty))[1:]


@jax.jit
def _sweep(
    problem: _Problem, state: _State, order: Int[Array, " items"], budget: Int[Array, ""]
) -> Int[Array, " items"]:
    """Every item of a selection in turn gives way to the best one, itself perhaps."""

    def take(k: Array, state: _State) -> _State:
        return _taken(problem, state, order[k], 1)

    def swap(k: Array, carry: tuple[_State, Array]) -> tuple[_State, Array]:
        state, order = carry
        without = _taken(problem, state, order[k], -1)
        best, gained = _best(problem, without, jnp.ones_like(budget))
        own = _gains(problem, without)[order[k]]
        item = jnp.where(least_equal(gained) > own, best, order[k])  # more than rounding does
        return _taken(problem, without, item, 1), order.at[k].set(item)

    whole = jax.lax.fori_loop(0, budget, take, state)
    return jax.lax.fori_loop(0, budget, swap, (whole, order))[1]


def _best(
    problem: _Problem, state: _State, left: Int[Array, ""]
) -> tuple[Int[Array, ""], Float[Array, ""]]:
    has_room = room(state.count, left, problem.least, problem.most)
    may = state.is_free & has_room[problem.quota_group]
    gain = jnp.where(may, _gains(problem, state), -1)
    best = jnp.max(gain)
    # XLA's argmax on CPU reduces pairs one by one; this does two reductions that are vectorised.
    place = jnp.arange(len(gain), dtype=jnp.int32)
    return jnp.min(jnp.where(gain >= least_equal(best), place, len(gain) - 1)), best


def _gains(problem: _Problem, state: _State) -> Float[Array, " items"]:
    """What each item would gain, averaged over the target."""
    along = jax.vmap(lambda form: _quadratic(form, problem.slope, problem.group))
    spread = problem.told * along(state.covariance)
    if problem.measured is None:
        return problem.weight @ jnp.log1p(spread)
    form = _form(problem.measured, state.covariance, problem.is_d_optimal)
    share = problem.told * along(form) / (1 + spread)
    return problem.weight @ (-jnp.log1p(-share) if problem.is_d_optimal else share)


def _form(
    measured: Float[Array, "measured unknowns"],
    covariance: Float[Array, "points unknowns unknowns"],
    is_d_optimal: bool,
) -> Float[Array, "points unknowns unknowns"]:
    """The matrix of w: `V M' S^-1 M V`, or `V M' M V`."""
    reach = covariance @ measured.T
    if not is_d_optimal:
        return reach @ reach.swapaxes(1, 2)
    return reach @ jnp.linalg.solve(measured @ reach, reach.swapaxes(1, 2))


def _quadratic(
    form: Float[Array, "unknowns unknowns"],
    slope: Float[Array, "items dims"],
    group: Int[Array, " items"] | None,
) -> Float[Array, " items"]:
    """`a' F a` of every item, a = its slopes and 1 at its benchmark.

    Written out: a matrix product in a loop is slow on CPU (`model/information.py`).
    """
    dims = slope.shape[1]
    total = jnp.zeros_like(slope[:, 0])
    for k in range(dims):
        inner = form[k, k] * slope[:, k]
        for m in range(k):
            inner += 2 * form[k, m] * slope[:, m]
        if group is not None:
            inner += 2 * form[k, dims:][group]
        total += inner * slope[:, k]
    return total if group is None else total + jnp.diagonal(form)[dims:][group]


def _taken(problem: _Problem, state: _State, item: Int[Array, ""], sign: int) -> _State:
    """After an item was taken (1), or given back (-1)."""
    loading = problem.slope[item]
    if problem.group is not None:
        n_groups = state.covariance.shape[1] - loading.shape[0]
        loading = jnp.concatenate([loading, jax.nn.one_hot(problem.group[item], n_groups)])
    loading = loading.astype(state.covariance.dtype)
    reach = state.covariance @ loading
    told = sign * problem.told[:, item]
    scale = told / (1 + told * (reach @ loading))
    covariance = state.covariance - scale[:, None, None] * reach[:, :, None] * reach[:, None]
    count = state.count.at[problem.quota_group[item]].add(sign)
    return _State(covariance, state.is_free.at[item].set(sign < 0), count)

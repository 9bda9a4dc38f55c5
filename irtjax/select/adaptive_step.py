"""One step of an adaptive test on the device, of many models at once: choose, then learn."""

import functools
from typing import Any, Protocol

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from irtjax.model.pytree import pytree_dataclass, static_field
from irtjax.score.ties import least_equal

__all__ = [
    "ENDINGS",
    "Answers",
    "BeliefItems",
    "Plan",
    "Proposal",
    "State",
    "keys_of",
    "learn",
    "placed",
    "propose",
    "start",
]

# Codes of endings, by position.
ENDINGS = ("open", "length", "standard_error", "nothing_left", "little_left")
_LENGTH, _SMALL_ERROR, _NOTHING_LEFT, _LITTLE_LEFT = range(1, 5)
# Errors up to this many times the one to stop at are computed exactly before they stop a test.
_NEAR = 1.02


class BeliefItems(Protocol):
    """Items with what an answer to them says about abilities: `GridItems`, `NormalItems`.

    A belief is a pytree with the models first; only the items that made it look into it.
    """

    @property
    def n_items(self) -> int:
        """Number of items, padding included."""
        ...

    def start(self, n_models: int) -> Any:
        """The prior, of each model."""
        ...

    def after(
        self,
        belief: Any,
        item: Int[Array, " models"],
        response: Float[Array, " models"],
        weight: Float[Array, " models"],
    ) -> Any:
        """With one more answer of each model, or nearly so; weight 0 changes nothing."""
        ...

    def settled(
        self,
        belief: Any,
        item: Int[Array, "models length"],
        response: Float[Array, "models length"],
        weight: Float[Array, "models length"],
        is_wanted: Bool[Array, " models"],
    ) -> Any:
        """Exactly that of all answers where that is wanted."""
        ...

    def place(self, belief: Any) -> tuple[Float[Array, "models dims"], Float[Array, "models dims"]]:
        """Abilities and their standard errors."""
        ...

    def gain(self, belief: Any, criterion: str) -> Float[Array, "models items"]:
        """Variance before over after each item's answer, minus 1."""
        ...


@pytree_dataclass
class Plan:
    """The rules as arrays, and those that decide what is computed.

    Attributes:
        pool: quota pool of each item.
        quota: most items of each pool.
        se: largest standard error to stop at; 0 never stops.
        least_gain: smallest share of the variance that an item must be expected to take away.
        max_items: most items.
        n_first: number of first items, chosen by `kl`.
        criterion: of the others.
        randomesque: number of best items to draw from.
    """

    pool: Int[Array, " items"]
    quota: Int[Array, " pools"]
    se: Float[Array, ""]
    least_gain: Float[Array, ""]
    max_items: Int[Array, ""]
    n_first: Int[Array, ""]
    criterion: str = static_field()
    randomesque: int = static_field()


@pytree_dataclass
class Answers:
    """What was asked and answered, in order; unused places hold item 0 and response 0."""

    item: Int[Array, "models length"]
    response: Float[Array, "models length"]
    weight: Float[Array, "models length"]
    count: Int[Array, " models"]


@pytree_dataclass
class State:
    """Adaptive tests in progress."""

    belief: Any
    answers: Answers
    is_left: Bool[Array, "models items"]
    asked: Int[Array, "models pools"]


@pytree_dataclass
class Proposal:
    """The next item of each model, its expected gain, and the ending's code (0: go on)."""

    item: Int[Array, " models"]
    gain: Float[Array, " models"]
    ending: Int[Array, " models"]


def start(
    items: BeliefItems, is_left: Bool[Array, "models items"], length: int, n_pools: int
) -> State:
    """Nothing asked yet.

    Args:
        items: of the test.
        is_left: items that may be asked.
        length: places for answers.
        n_pools: number of quota pools.
    """
    n_models = len(is_left)
    belief = items.start(n_models)
    dtype = jax.tree.leaves(belief)[0].dtype
    answers = Answers(
        jnp.zeros((n_models, length), jnp.int32),
        jnp.zeros((n_models, length), dtype),
        jnp.zeros((n_models, length), dtype),
        jnp.zeros(n_models, jnp.int32),
    )
    return State(belief, answers, is_left, jnp.zeros((n_models, n_pools), jnp.int32))


def keys_of(key: PRNGKeyArray, number: Int[Array, " models"]) -> PRNGKeyArray:
    """A key for the random choices of each model, by its number."""
    return jax.vmap(lambda k: jax.random.fold_in(key, k))(number)


@functools.partial(jax.jit)
def propose(items: BeliefItems, state: State, plan: Plan, key: PRNGKeyArray) -> Proposal:
    """Which item each model is asked next, or why none; a key a model for random choices."""
    count = state.answers.count
    gain = jax.lax.cond(
        jnp.max(count) < plan.n_first,
        lambda belief: items.gain(belief, "kl"),
        lambda belief: items.gain(belief, plan.criterion),
        state.belief,
    )
    gain = jnp.where(state.is_left & _in_turn(state, plan), gain, -1.0)
    item, best = _chosen(gain, plan.randomesque, key, count)
    share = best / (1 + best)
    largest = jnp.max(items.place(state.belief)[1], axis=1)
    ending = jnp.where(share < plan.least_gain, _LITTLE_LEFT, 0)
    ending = jnp.where(best < 0, _NOTHING_LEFT, ending)
    ending = jnp.where(largest <= plan.se, _SMALL_ERROR, ending)
    ending = jnp.where(count >= plan.max_items, _LENGTH, ending)
    return Proposal(item, share, ending)


@jax.jit
def placed(
    items: BeliefItems, belief: Any
) -> tuple[Float[Array, "models dims"], Float[Array, "models dims"]]:
    """Abilities and their standard errors, in one program."""
    return items.place(belief)


@functools.partial(jax.jit)
def learn(
    items: BeliefItems,
    state: State,
    plan: Plan,
    item: Int[Array, " models"],
    response: Float[Array, " models"],
    is_answered: Bool[Array, " models"],
    weight: Float[Array, " models"] | float = 1.0,
) -> State:
    """With an answer of each model for which there is one, as often as its weight says.

    Beliefs are exactly those of all answers where there is none, or the test may end by its error.
    """
    answers, dtype = state.answers, state.answers.response.dtype
    response = response.astype(dtype)
    weight = jnp.where(is_answered, jnp.asarray(weight, dtype), 0)
    row = jnp.arange(len(item))
    place = jnp.where(is_answered, answers.count, answers.item.shape[1])
    answers = Answers(
        answers.item.at[row, place].set(item, mode="drop"),
        answers.response.at[row, place].set(response, mode="drop"),
        answers.weight.at[row, place].set(weight, mode="drop"),
        answers.count + is_answered.astype(jnp.int32),
    )
    belief = items.after(state.belief, item, response, weight)
    is_wanted = ~is_answered | (jnp.max(items.place(belief)[1], axis=1) <= _NEAR * plan.se)
    belief = items.settled(belief, answers.item, answers.response, answers.weight, is_wanted)
    is_left = state.is_left.at[row, item].set(state.is_left[row, item] & ~is_answered)
    asked = state.asked.at[row, plan.pool[item]].add(is_answered.astype(jnp.int32))
    return State(belief, answers, is_left, asked)


def _in_turn(state: State, plan: Plan) -> Bool[Array, "models items"]:
    """Items of the pool with the largest share of its quota left, among those with items left."""
    if plan.quota.shape[0] == 1:
        return jnp.ones((1, 1), bool)
    n_pools = plan.quota.shape[0]
    one_hot = plan.pool[:, None] == jnp.arange(n_pools)
    has_item = (state.is_left.astype(jnp.float32) @ one_hot.astype(jnp.float32)) > 0
    left = (plan.quota - state.asked) / jnp.maximum(plan.quota, 1)
    turn = jnp.argmax(jnp.where(has_item, left, -jnp.inf), axis=1)
    is_open = jnp.take_along_axis(has_item & (left > 0), turn[:, None], axis=1)
    return (plan.pool == turn[:, None]) & is_open


def _chosen(
    gain: Float[Array, "models items"],
    randomesque: int,
    key: PRNGKeyArray,
    count: Int[Array, " models"],
) -> tuple[Int[Array, " models"], Float[Array, " models"]]:
    """The best item, or one of the best at random; the first of those equal up to `TIED`."""
    if randomesque == 1:
        # `argmax` costs four times as much on CPU: its reduction of pairs is not vectorised.
        best = jnp.max(gain, axis=1)
        position = jnp.arange(gain.shape[1], dtype=jnp.int32)
        is_best = gain >= least_equal(best)[:, None]
        return jnp.min(jnp.where(is_best, position, gain.shape[1] - 1), axis=1), best
    index = _first_best(gain, min(randomesque, gain.shape[1]))
    value = jnp.take_along_axis(gain, index, axis=1)
    # A model's draw of its n-th item is the same whoever else is tested.
    draws = jax.vmap(lambda k, n: jax.random.gumbel(jax.random.fold_in(k, n), value.shape[1:]))(
        key, count
    )
    drawn = jnp.argmax(jnp.where(value >= 0, draws, -jnp.inf), axis=1)[:, None]
    return (
        jnp.take_along_axis(index, drawn, axis=1)[:, 0],
        jnp.take_along_axis(value, drawn, axis=1)[:, 0],
    )


def _first_best(gain: Float[Array, "models items"], n_best: int) -> Int[Array, "models best"]:
    """The best items; of those equal to the last of them the first, and each in its own order."""
    last = jax.lax.top_k(gain, n_best)[0][:, -1:]
    least = least_equal(last)
    # Twice past the last's size, so that what is above it by rounding only counts as equal.
    is_better = gain > last + (last - least)
    n_items = gain.shape[1]
    rank = jnp.where(is_better, 2 * n_items, jnp.where(gain >= least, n_items, 0))
    return jax.lax.top_k(rank - jnp.arange(n_items), n_best)[1]

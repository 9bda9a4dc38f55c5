"""`adapt`: adaptive tests of many models at once, with answers that are known already."""

import dataclasses
import functools
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from irtjax.data.cells import Cells
from irtjax.fit.seen import seen_answers, warn_of_seen
from irtjax.model.pytree import pytree_dataclass
from irtjax.score.known import known_items
from irtjax.score.models import answered, flags
from irtjax.select.adaptive_plan import AskedItems, asked_items, candidate_items, places, plan_of
from irtjax.select.adaptive_rules import AdaptiveRules, Ending
from irtjax.select.adaptive_step import (
    ENDINGS,
    Answers,
    BeliefItems,
    Plan,
    keys_of,
    learn,
    propose,
    start,
)

if TYPE_CHECKING:
    from irtjax.data.responses import ResponseMatrix
    from irtjax.fit.result import FitResult

__all__ = ["AdaptiveRuns", "adapt"]

# Models tested together; few models are padded to one of these.
_MODELS_AT_A_TIME = (10, 30, 100)
_CELLS_AT_A_TIME = 2**25
_NOTHING_ANSWERED = "no answers to items that may be asked: the prior"


@dataclasses.dataclass(frozen=True, eq=False)
class AdaptiveRuns:
    """Adaptive tests of many models.

    Attributes:
        models: a row a model: `model_id`, `n_items`, abilities and their errors, `flags` (those of
            `score_models` for the answers asked for), `reason`.
        steps: a row an answer: `model_id`, `order` (from 1), `item_id`, `response`, and the
            abilities and errors after it.
    """

    models: pd.DataFrame
    steps: pd.DataFrame


@pytree_dataclass
class _Tested:
    """Tests that ended, with what was believed after every answer."""

    answers: Answers
    ability: Float[Array, "length models dims"]
    error: Float[Array, "length models dims"]
    ending: Int[Array, " models"]


def adapt(
    fit: "FitResult",
    responses: "ResponseMatrix",
    *,
    max_items: int = 50,
    se: float | None = None,
    criterion: str = "posterior",
    n_first: int = 5,
    least_gain: float = 0.0,
    randomesque: int = 1,
    quotas: Mapping[str, int] | None = None,
    quota_by: str | None = None,
    items: Iterable[str] | None = None,
    seed: int = 0,
) -> AdaptiveRuns:
    """What adaptive tests of models would have asked and found, from answers known already.

    Only items that a model answered are asked; all models are tested at once on the device.

    Args:
        fit: whose items are asked; the models need not have been in it.
        responses: answers of the models to items of the fit; others are left out.
        max_items: see `adaptive_test`, as for all that follow.
        se: standard error to stop at.
        criterion: `posterior`, `information` or `kl`.
        n_first: number of first items chosen by `kl`.
        least_gain: least share of the variance that an item must be expected to take away.
        randomesque: number of best items to draw from.
        quotas: most items of each value of `quota_by`.
        quota_by: item column, without it the fit's group or `benchmark`.
        items: ids of those that may be asked; all without.
        seed: of random choices.

    Returns:
        Abilities of each model and the items it was asked, in the responses' order of models. A
        model that was asked for all answers that it has in the fit has the fit's own estimate
        (`in_fit`). Warns of models whose answers the fit knows in part (`counted_twice`), or has
        otherwise (`differs_from_fit`).

    Raises:
        InputError: rules that make no sense, no item in common with the fit.
    """
    rules = AdaptiveRules(
        max_items, se, criterion, n_first, least_gain, randomesque, dict(quotas or {}), seed
    )
    asked = asked_items(fit)
    on_device, n_padded = asked.on_device, asked.n_padded
    allowed = candidate_items(asked, items)
    plan = plan_of(fit, asked, rules, quota_by, allowed)
    position = known_items(fit, responses, "adapt")
    known = position >= 0
    position[known] = np.argsort(asked.position)[position[known]]
    length = places(asked, rules)
    key = jax.random.key(seed)
    found = []
    for first, last, n_rows in _blocks(responses.n_models, n_padded):
        answer = np.full((n_rows, n_padded), -1, np.float32)
        rows, weights = _rows(responses, first, last)
        answer[: last - first, position[known]] = rows[:, known]
        weight = None
        if weights is not None:
            weight = np.ones_like(answer)
            weight[: last - first, position[known]] = weights[:, known]
        often = None if weight is None else jnp.asarray(weight)
        number = jnp.arange(n_rows) + first
        given = jnp.asarray(answer), jnp.asarray(allowed), plan, key, number, often
        tested = jax.tree.map(np.asarray, _tested(on_device, *given, length))
        found.append(_cut(tested, last - first))
    prior = on_device.place(on_device.start(1))
    return _tables(fit, asked, responses, found, tuple(np.asarray(each[0]) for each in prior))


def _rows(
    responses: "ResponseMatrix", first: int, last: int
) -> tuple[np.ndarray, np.ndarray | None]:
    """Responses of some models, -1 where missing, and their weights, None where all are 1."""
    if responses.dense is not None:
        weight = responses.dense_weight
        return responses.dense[first:last], None if weight is None else weight[first:last]
    cells = responses.cells()
    cells = cells.taken((cells.model_index >= first) & (cells.model_index < last))
    place = cells.model_index - first, cells.item_index
    rows = np.full((last - first, responses.n_items), -1, np.float32)
    rows[place] = cells.response
    if not responses.is_weighted:
        return rows, None
    weights = np.ones_like(rows)
    weights[place] = cells.weight
    return rows, weights


def _blocks(n_models: int, n_items: int) -> list[tuple[int, int, int]]:
    """First and last model of each block, and the rows that it is padded to."""
    most = max(_MODELS_AT_A_TIME[0], _CELLS_AT_A_TIME // n_items)
    sizes = [size for size in _MODELS_AT_A_TIME if size <= most]
    size = next((each for each in sizes if each >= n_models), sizes[-1])
    return [(k, min(k + size, n_models), size) for k in range(0, n_models, size)]


def _cut(tested: _Tested, n_models: int) -> _Tested:
    """Without the rows that a block was padded with, and without what nobody reads."""
    answers = jax.tree.map(lambda leaf: leaf[:n_models], tested.answers)
    return _Tested(
        answers, tested.ability[:, :n_models], tested.error[:, :n_models], tested.ending[:n_models]
    )


@functools.partial(jax.jit, static_argnames=("length",))
def _tested(
    items: BeliefItems,
    answer: Float[Array, "models items"],
    allowed: Bool[Array, " items"],
    plan: Plan,
    key: PRNGKeyArray,
    number: Int[Array, " models"],
    weight: Float[Array, "models items"] | None,
    length: int,
) -> _Tested:
    """All tests of a block of models, until the last has ended."""
    n_models = len(answer)
    key = keys_of(key, number)
    state = start(items, (answer >= 0) & allowed, length, plan.quota.shape[0])
    mean, sd = items.place(state.belief)
    path = (jnp.zeros((length, *mean.shape), mean.dtype), jnp.zeros((length, *sd.shape), sd.dtype))
    row = jnp.arange(n_models)

    def is_going_on(carried: tuple[Any, ...]) -> Bool[Array, ""]:
        was_open, proposal, _, _ = carried
        return was_open | jnp.any(proposal.ending == 0)

    def step(carried: tuple[Any, ...]) -> tuple[Any, ...]:
        # Once more after the last has ended: `learn` makes exact what is believed of those that
        # do not answer.
        _, proposal, state, path = carried
        is_open = proposal.ending == 0
        told = answer[row, proposal.item]
        often = 1.0 if weight is None else weight[row, proposal.item]
        state = learn(items, state, plan, proposal.item, told, is_open, often)
        last = jnp.maximum(state.answers.count - 1, 0), row
        now = items.place(state.belief)
        path = tuple(all_.at[last].set(each) for all_, each in zip(path, now, strict=True))
        return jnp.any(is_open), propose(items, state, plan, key), state, path

    first = (jnp.asarray(True), propose(items, state, plan, key), state, path)
    _, proposal, state, path = jax.lax.while_loop(is_going_on, step, first)
    return _Tested(state.answers, *path, proposal.ending)


def _tables(
    fit: "FitResult",
    asked: AskedItems,
    responses: "ResponseMatrix",
    found: list[_Tested],
    prior: tuple[np.ndarray, ...],
) -> AdaptiveRuns:
    count = np.concatenate([each.answers.count for each in found])
    length = int(count.max(initial=0))
    item, answer, weight = (
        np.concatenate([getattr(each.answers, name)[:, :length] for each in found])
        for name in ("item", "response", "weight")
    )
    ability, error = (
        np.concatenate([getattr(each, name)[:length] for each in found], axis=1, dtype=np.float64)
        for name in ("ability", "error")
    )
    ability, error = ability.swapaxes(0, 1), error.swapaxes(0, 1)
    ending = np.concatenate([each.ending for each in found])
    dims = ability.shape[2]
    is_given = np.arange(length) < count[:, None]
    model, order = np.nonzero(is_given)
    cells = Cells(model, asked.position[item[is_given]], answer[is_given], weight[is_given])
    seen = seen_answers(fit, responses.model_ids, cells)
    warn_of_seen(seen, responses.model_ids, "tested")
    own, last = np.flatnonzero(seen.is_fitted), np.maximum(count - 1, 0)
    ability[own, last[own]] = np.asarray(fit.parameters.ability)[seen.row[own]]
    covariance = np.asarray(fit.parameters.ability_covariance, np.float64)[seen.row[own]]
    error[own, last[own]] = np.sqrt(np.diagonal(covariance, axis1=1, axis2=2))
    steps: dict[str, Any] = {
        "model_id": responses.model_ids[model],
        "order": order + 1,
        "item_id": asked.item_ids[item[is_given]],
        "response": answer[is_given].astype(np.float64),
    }
    steps |= _named("ability", ability[is_given], dims) | _named(
        "ability_se", error[is_given], dims
    )
    row = np.arange(len(count))
    has_any = (count > 0)[:, None]
    start_mean, start_sd = (np.broadcast_to(each, (len(count), dims)) for each in prior)
    final = np.where(has_any, ability[row, last], start_mean) if length else start_mean
    final_error = np.where(has_any, error[row, last], start_sd) if length else start_sd
    models: dict[str, Any] = {"model_id": responses.model_ids, "n_items": count.astype(np.int64)}
    models |= _named("ability", final, dims) | _named("ability_se", final_error, dims)
    reasons = [Ending[ENDINGS[code]].value for code in ending]
    is_empty = (count == 0) & (ending == ENDINGS.index("nothing_left"))
    models["flags"] = flags(*answered(cells, len(count)), seen)
    models["reason"] = np.where(is_empty, _NOTHING_ANSWERED, np.array(reasons, object))
    return AdaptiveRuns(pd.DataFrame(models), pd.DataFrame(steps))


def _named(what: str, values: np.ndarray, dims: int) -> dict[str, np.ndarray]:
    return {f"dim{k + 1}_{what}": np.asarray(values[:, k], np.float64) for k in range(dims)}

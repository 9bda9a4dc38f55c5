"""`adaptive_test`: one model is asked item after item, each the best to ask next."""

import dataclasses
import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

from irtjax.checks import check_number, check_several, shown
from irtjax.errors import InputError
from irtjax.select.adaptive_plan import asked_items, candidate_items, places, plan_of
from irtjax.select.adaptive_rules import AdaptiveRules, Ending
from irtjax.select.adaptive_step import ENDINGS, State, keys_of, learn, placed, propose, start

if TYPE_CHECKING:
    from irtjax.fit.result import FitResult

__all__ = ["AdaptiveSession", "adaptive_test"]

_FORMAT = 1


class AdaptiveSession:
    """An adaptive test of one model; made by `adaptive_test` or `from_json`.

    Nothing is compiled again as answers come in. Abilities are on the scale of the fit; their prior
    is the population that the fit estimated. Benchmark effects of the new model are unknown, and
    integrated out.
    """

    def __init__(
        self,
        fit: "FitResult",
        rules: AdaptiveRules,
        items: Iterable[str] | None = None,
        quota_by: str | None = None,
    ) -> None:
        self._fit, self.rules, self._quota_by = fit, rules, quota_by
        self._candidates: list[str] | None = None
        if items is not None:
            self._candidates = [str(each) for each in check_several("items", items)]
        asked = asked_items(fit)
        self._item_ids, self._items = asked.item_ids, asked.on_device
        allowed = candidate_items(asked, self._candidates)
        self._plan = plan_of(fit, asked, rules, quota_by, allowed)
        n_pools = self._plan.quota.shape[0]
        self._state = start(self._items, jnp.asarray(allowed[None]), places(asked, rules), n_pools)
        self._key = keys_of(jax.random.key(rules.seed), jnp.zeros(1, jnp.int32))
        self._answers: list[tuple[str, float]] = []
        self._proposal: tuple[str | None, Ending] | None = None

    @property
    def answers(self) -> pd.DataFrame:
        """What was answered so far, in order: `item_id`, `response`."""
        return pd.DataFrame(self._answers, columns=["item_id", "response"])

    @property
    def ability(self) -> np.ndarray:
        """Posterior mean of the abilities, dims, as `score_models` has it."""
        return self._place()[0]

    @property
    def standard_error(self) -> np.ndarray:
        """Posterior standard deviations of the abilities, dims."""
        return self._place()[1]

    @property
    def is_finished(self) -> bool:
        """Whether a rule ends the test."""
        return self._next()[1] is not Ending.open

    @property
    def reason(self) -> str:
        """Why the test ended, in words; empty while it goes on."""
        return self._next()[1].value

    def next_item(self) -> str | None:
        """The id of the item to ask next, None when the test is finished.

        Asking again without an answer gives the same item.
        """
        return self._next()[0]

    def answer(self, item_id: str, response: float) -> None:
        """Take an answer: to the item proposed, or to any other of the fit not answered yet.

        Args:
            item_id: of the fit.
            response: 0 (wrong) or 1 (right); False and True are the same, and so are arrays
                without axes. A fraction between them counts as a fractional likelihood, as in a
                `ResponseMatrix` (the command's reader refuses one without `--fractional`).

        Raises:
            InputError: an id that was not in the fit, one answered before, another response, or
                no place for more answers.
        """
        value = _checked_response(response)
        position = int(pd.Index(self._item_ids).get_indexer([str(item_id)])[0])
        if position < 0:
            raise InputError(f"item {shown(item_id)} was not in the fit")
        if any(str(item_id) == given for given, _ in self._answers):
            raise InputError(f"item {shown(item_id)} was answered before; its answer stands")
        if len(self._answers) >= self.rules.max_items:
            raise InputError(f"the test is over: {Ending.length.value} ({self.rules.max_items:,})")
        self._state = self._learnt(position, value, is_answered=True)
        self._answers.append((str(item_id), value))
        self._proposal = None

    def to_json(self) -> str:
        """The session as text: its rules and answers, for `from_json` with the same fit."""
        rules = {**vars(self.rules), "quotas": dict(self.rules.quotas)}
        return json.dumps(
            {
                "irtjax_adaptive_session": _FORMAT,
                "fit": _digest(self._fit),
                "rules": rules,
                "items": self._candidates,
                "quota_by": self._quota_by,
                "answers": [{"item_id": name, "response": value} for name, value in self._answers],
            }
        )

    @classmethod
    def from_json(cls, fit: "FitResult", text: str) -> "AdaptiveSession":
        """Go on with a session; it proposes what it would have proposed.

        Raises:
            InputError: text that is no session, or one of another fit.
        """
        saved = _parsed(text)
        if saved["fit"] != _digest(fit):
            raise InputError(
                "this adaptive session is of another fit; load the run it was made with"
            )
        try:
            session = cls(fit, AdaptiveRules(**saved["rules"]), saved["items"], saved["quota_by"])
            for each in saved["answers"]:
                session.answer(each["item_id"], each["response"])
        except (KeyError, TypeError) as error:
            raise InputError(f"this adaptive session is damaged: {error}") from None
        return session

    def _next(self) -> tuple[str | None, Ending]:
        if self._proposal is None:
            proposal = propose(self._items, self._state, self._plan, self._key)
            if int(proposal.ending[0]):  # only what is exactly believed ends a test
                self._state = self._learnt(is_answered=False)
                proposal = propose(self._items, self._state, self._plan, self._key)
            ending = Ending[ENDINGS[int(proposal.ending[0])]]
            item = str(self._item_ids[int(proposal.item[0])])
            self._proposal = (item if ending is Ending.open else None, ending)
        return self._proposal

    def _place(self) -> tuple[np.ndarray, np.ndarray]:
        """Ability and error, exactly those of the answers."""
        found = placed(self._items, self._learnt(is_answered=False).belief)
        return np.asarray(found[0][0], np.float64), np.asarray(found[1][0], np.float64)

    def _learnt(self, position: int = 0, response: float = 0.0, *, is_answered: bool) -> State:
        """The state after an answer; without one the belief is made exact."""
        return learn(
            self._items,
            self._state,
            self._plan,
            jnp.asarray([position], jnp.int32),
            jnp.asarray([response], float),
            jnp.asarray([is_answered]),
        )


def adaptive_test(
    fit: "FitResult",
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
) -> AdaptiveSession:
    """Start an adaptive test of a new model with the items of a fit.

    Args:
        fit: whose items are asked.
        max_items: see `AdaptiveRules`, as for all that follow.
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
        A session: `next_item()`, `answer(item_id, response)`, `ability`, `standard_error`.

    Raises:
        InputError: rules that make no sense, ids or groups that were not in the fit.

    Source: Magis, Raiche (2012), catR, J. Stat. Softw. 48(8), for the rules; van der Linden (1999),
    D-optimality for several abilities.
    """
    rules = AdaptiveRules(
        max_items, se, criterion, n_first, least_gain, randomesque, dict(quotas or {}), seed
    )
    return AdaptiveSession(fit, rules, items, quota_by)


def _checked_response(response: Any) -> float:
    """A number from 0 to 1; of a truth value or an array without axes the one it stands for."""
    value = response
    if getattr(response, "shape", None) == () and hasattr(response, "item"):
        value = response.item()
    return check_number("a response", int(value) if isinstance(value, bool) else value, 0, 1)


def _digest(fit: "FitResult") -> str:
    """What tells the items of one fit from those of another."""
    found = hashlib.sha256("\n".join(map(str, fit.data.item_ids)).encode())
    parts = fit.parameters
    for values in (parts.mean, parts.covariance, parts.guessing, parts.feasibility):
        found.update(np.ascontiguousarray(values).tobytes())
    return found.hexdigest()


def _parsed(text: str) -> dict[str, Any]:
    """A session as it was saved: nothing missing, nothing of another kind."""
    try:
        saved = json.loads(text)
    except (TypeError, ValueError):
        raise InputError("this text is no adaptive session: not JSON") from None
    number = saved.get("irtjax_adaptive_session") if isinstance(saved, dict) else None
    if number != _FORMAT or isinstance(number, bool):
        raise InputError(
            f"this text is no adaptive session: it lacks irtjax_adaptive_session = {_FORMAT}"
        )
    kinds: dict[str, Any] = {"fit": str, "rules": dict, "items": list | None}
    kinds |= {"quota_by": str | None, "answers": list}
    damaged = [name for name, kind in kinds.items() if not isinstance(saved.get(name, ...), kind)]
    rules = {field.name for field in dataclasses.fields(AdaptiveRules)}
    if not damaged and set(saved["rules"]) != rules:
        damaged = ["rules"]
    if damaged:
        raise InputError(f"this adaptive session is damaged: {damaged[0]} is missing or changed")
    return saved

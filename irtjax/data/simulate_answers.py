"""Simulated answers to multiple-choice items, some of which have a wrong key."""

import dataclasses

import numpy as np
import pandas as pd
from scipy.special import expit

from irtjax.checks import check_number, check_whole
from irtjax.data.checks import check_seed
from irtjax.data.responses import ResponseMatrix
from irtjax.errors import InputError

__all__ = ["SimulatedAnswers", "drawn_options", "simulate_answers"]

_LOG_SLOPE_SD = 0.5
_FALLING_SHARE, _FALLING_SLOPE = 0.03, -0.3
_DIFFICULTY = (1.0, 1.5)  # mean and standard deviation
_GUESSING_BETA = (3, 27)
_POPULARITY = 0.3  # of the Dirichlet distribution of the wrong options
_ITEMS_AT_ONCE = 1 << 10


@dataclasses.dataclass(frozen=True, eq=False)
class SimulatedAnswers:
    """Responses, answers, and which keys are wrong.

    Attributes:
        data: the responses: whether the answer is the recorded key.
        answers: columns `model_id`, `item_id`, `answer`, `key`; answers are `A`, `B`, ...
        is_wrong_key: items, whether the recorded key is not the right option.
        ability: models.
    """

    data: ResponseMatrix
    answers: pd.DataFrame
    is_wrong_key: np.ndarray
    ability: np.ndarray


def simulate_answers(
    *,
    n_models: int,
    n_items: int,
    n_options: int = 10,
    wrong_share: float = 0.01,
    seed: int = 0,
) -> SimulatedAnswers:
    """Draw answers to 3PL items and record the wrong option as the key of some.

    Abilities are standard normal, slopes lognormal(0, .5), of which 3% are multiplied by -.3,
    difficulties N(1, 1.5), guessing Beta(3, 27). A model that misses an item takes a wrong option
    by the item's Dirichlet(.3) popularities; a wrong key is drawn by them too.

    Args:
        n_models: rows.
        n_items: columns.
        n_options: of each item, at most 26.
        wrong_share: chance of a key to be wrong.
        seed: of NumPy's default generator.

    Raises:
        InputError: sizes or shares out of range.

    >>> made = simulate_answers(n_models=4, n_items=30, wrong_share=0.5)
    >>> list(made.answers.columns), made.data.n_items
    (['model_id', 'item_id', 'answer', 'key'], 30)
    """
    check_whole("n_models", n_models, 1)
    check_whole("n_items", n_items, 1)
    check_whole("n_options", n_options, 3, 26)
    check_number("wrong_share", wrong_share)
    if not 0 <= wrong_share < 1:
        raise InputError(f"wrong_share must be a share in [0, 1), not {wrong_share}")
    check_seed(seed)
    rng = np.random.default_rng(seed)
    ability = rng.standard_normal(n_models)
    slope = rng.lognormal(0, _LOG_SLOPE_SD, n_items)
    slope = np.where(rng.random(n_items) < _FALLING_SHARE, _FALLING_SLOPE * slope, slope)
    difficulty = rng.normal(*_DIFFICULTY, n_items)
    guessing = rng.beta(*_GUESSING_BETA, n_items)
    p = guessing + (1 - guessing) * expit(slope * (ability[:, None] - difficulty))
    is_right = rng.random(p.shape) < p
    popularity = rng.dirichlet(np.full(n_options - 1, _POPULARITY), n_items)
    # Option 0 is the right one until the options are shuffled.
    option = np.where(is_right, 0, drawn_options(rng, popularity, n_models))
    is_wrong_key = rng.random(n_items) < wrong_share
    key = np.where(is_wrong_key, drawn_options(rng, popularity, 1)[0], 0)
    data = ResponseMatrix.from_dense((option == key).astype(np.int8))
    letter = rng.permuted(np.tile(np.arange(n_options), (n_items, 1)), axis=1)
    names = np.array([chr(ord("A") + k) for k in range(n_options)])
    items = np.arange(n_items)
    table = pd.DataFrame(
        {
            "model_id": np.repeat(data.model_ids, n_items),
            "item_id": np.tile(data.item_ids, n_models),
            "answer": names[letter[items, option]].ravel(),
            "key": np.tile(names[letter[items, key]], n_models),
        }
    )
    return SimulatedAnswers(data, table, is_wrong_key, ability)


def drawn_options(rng: np.random.Generator, popularity: np.ndarray, n_models: int) -> np.ndarray:
    """Wrong options of models x items, 1, 2, ... by each item's popularities (items x options)."""
    n_items, n_wrong = popularity.shape
    option = np.empty((n_models, n_items), np.int16)
    for start in range(0, n_items, _ITEMS_AT_ONCE):
        items = slice(start, start + _ITEMS_AT_ONCE)
        height = np.cumsum(popularity[items], axis=1)
        draw = rng.random((n_models, len(height), 1))
        option[:, items] = 1 + np.minimum(np.sum(draw > height, axis=2), n_wrong - 1)
    return option

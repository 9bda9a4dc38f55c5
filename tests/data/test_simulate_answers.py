"""Simulated answers agree with their responses, and have the shares asked for."""

import numpy as np
import pytest

from irtjax.data.simulate_answers import drawn_options, simulate_answers
from irtjax.errors import InputError


def test_responses_say_whether_the_answer_is_the_key():
    made = simulate_answers(n_models=20, n_items=50, n_options=4, wrong_share=0.2, seed=3)
    table = made.answers
    matched = (table["answer"] == table["key"]).to_numpy().reshape(20, 50)
    np.testing.assert_array_equal(made.data.to_dense(), matched)
    assert set(table["answer"]) <= set("ABCD")
    assert (table.groupby("item_id")["key"].nunique() == 1).all()


def test_wrong_keys_are_as_many_as_asked_and_rarely_the_answer():
    made = simulate_answers(n_models=50, n_items=4000, wrong_share=0.25, seed=1)
    share = made.is_wrong_key.mean()
    assert abs(share - 0.25) < 4 * np.sqrt(0.25 * 0.75 / 4000)
    right = made.data.totals("items")[1]
    assert right[made.is_wrong_key].mean() < right[~made.is_wrong_key].mean()
    again = simulate_answers(n_models=50, n_items=4000, wrong_share=0.25, seed=1)
    assert again.answers.equals(made.answers)


def test_options_follow_their_popularity():
    popularity = np.array([[0.7, 0.2, 0.1], [0.0, 1.0, 0.0]])
    drawn = drawn_options(np.random.default_rng(0), popularity, 20_000)
    shares = [(drawn[:, 0] == option).mean() for option in (1, 2, 3)]
    np.testing.assert_allclose(shares, popularity[0], atol=0.02)
    assert (drawn[:, 1] == 2).all()


@pytest.mark.parametrize(
    "changed", [{"n_models": 0}, {"n_options": 2}, {"n_options": 27}, {"wrong_share": 1.0}]
)
def test_bad_settings(changed):
    with pytest.raises(InputError):
        simulate_answers(**{"n_models": 2, "n_items": 3} | changed)

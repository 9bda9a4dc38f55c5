"""What a bootstrap draws from a fit has the moments and probabilities that the fit states."""

import numpy as np
import pytest

from irtjax.data.responses import ResponseMatrix
from irtjax.data.tables import lsat7
from irtjax.fit.bootstrap_draws import drawn_abilities, drawn_items, drawn_responses
from irtjax.model.spec import ModelSpec
from tests.fit.fitting import fitted, quiet_fit


def test_cells_of_several_answers_keep_their_number():
    rng = np.random.default_rng(1)
    n_answers = rng.integers(1, 6, (8, 24)).astype(np.float32)
    right = rng.binomial(n_answers.astype(int), 0.6)
    data = ResponseMatrix.from_dense(right / n_answers, weight=n_answers)
    result = quiet_fit(data, ModelSpec("2pl"))
    sample = drawn_responses(result, rng)
    np.testing.assert_array_equal(sample.dense_weight, n_answers)
    counts = sample.dense * n_answers
    np.testing.assert_allclose(counts, np.round(counts), atol=1e-5)
    assert np.any(sample.dense != data.dense)


def test_drawn_responses_have_the_probabilities_of_the_fit():
    result = quiet_fit(lsat7(), ModelSpec("2pl"))
    rng = np.random.default_rng(0)
    share = np.mean([drawn_responses(result, rng).dense for _ in range(40)], axis=(0, 1))
    items = result.item_parameters()
    ability = result.abilities().dim1_ability.to_numpy()
    logit = ability[:, None] * items.dim1_slope.to_numpy() + items.intercept.to_numpy()
    expected = np.mean(1 / (1 + np.exp(-logit)), axis=0)
    np.testing.assert_allclose(share, expected, atol=0.01)  # 40,000 draws: .0025


def test_drawn_items_and_abilities_have_the_moments_that_the_fit_states():
    rng = np.random.default_rng(0)
    result = fitted("mixture")
    draws = np.stack([drawn_items(result.parameters, rng) for _ in range(400)])
    items = result.item_parameters()
    error = items.intercept_se.to_numpy()
    away = (draws[:, :, -1].mean(axis=0) - items.intercept.to_numpy()) / error
    assert np.sqrt(np.mean(away**2)) == pytest.approx(1 / 20, rel=0.2)
    assert np.mean(draws[:, :, -1].std(axis=0) / error) == pytest.approx(1, abs=0.02)
    abilities = drawn_abilities(quiet_fit(lsat7(), ModelSpec("2pl")), rng)
    assert abilities.mean() == pytest.approx(0, abs=0.1)
    assert abilities.std() == pytest.approx(1, abs=0.08)

"""A change of scale: no probability moves, and every error goes along."""

import dataclasses

import numpy as np
import pytest

from irtjax.fit.scale_change import ScaleChange
from tests.fit.fitting import fitted

CHANGES = {
    "2pl": ScaleChange(np.array([[-1.4]]), np.array([0.7])),
    "2pl-2d": ScaleChange(np.array([[1.2, 0.3], [-0.5, 0.8]]), np.array([0.7, -0.4])),
}


def changed(kind):
    fit = fitted(kind)
    return fit, dataclasses.replace(fit, parameters=CHANGES[kind].apply_to_fit(fit.parameters))


@pytest.mark.parametrize("kind", CHANGES)
def test_probabilities_are_the_same_to_a_millionth(kind):
    fit, moved = changed(kind)
    models, items = np.indices((fit.data.n_models, fit.data.n_items)).reshape(2, -1)
    away = moved.predict_cells(models, items) - fit.predict_cells(models, items)
    assert np.abs(away).max() < 1e-6


def test_difficulties_and_errors_scale_as_abilities_do():
    fit, moved = changed("2pl")
    before, after = fit.item_parameters(), moved.item_parameters()
    known = before["difficulty_se"] < 2
    for name, expected in (
        ("difficulty", -1.4 * before["difficulty"] + 0.7),
        ("difficulty_se", 1.4 * before["difficulty_se"]),
        ("dim1_slope_se", before["dim1_slope_se"] / 1.4),
    ):
        np.testing.assert_allclose(after[name][known], expected[known], rtol=2e-4, atol=2e-4)
    one, other = fit.abilities(), moved.abilities()
    np.testing.assert_allclose(other["dim1_ability"], -1.4 * one["dim1_ability"] + 0.7, atol=1e-5)
    np.testing.assert_allclose(other["dim1_ability_se"], 1.4 * one["dim1_ability_se"], rtol=1e-5)


def test_covariances_are_those_of_the_transformed_draws():
    change, rng = CHANGES["2pl-2d"], np.random.default_rng(0)
    root = rng.normal(size=(3, 3))
    drawn = rng.normal(size=(200_000, 3)) @ root.T
    expected = np.cov(change.apply_to_coordinates(drawn).T)
    found = change.apply_to_item_covariance(root @ root.T)
    np.testing.assert_allclose(found, expected, rtol=0.03, atol=0.03 * np.abs(found).max())


def test_the_change_and_its_inverse_leave_every_estimate():
    fit, moved = changed("2pl-2d")
    back = np.linalg.inv(CHANGES["2pl-2d"].matrix)
    again = ScaleChange(back, -back @ CHANGES["2pl-2d"].shift).apply_to_fit(moved.parameters)
    for name in ("ability", "ability_covariance", "mean", "covariance", "item_spread"):
        one, other = (np.asarray(getattr(each, name)) for each in (fit.parameters, again))
        np.testing.assert_allclose(other, one, rtol=1e-4, atol=1e-5, err_msg=name)
    # Of errors without covariances nothing is left where dims are mixed.
    assert np.isnan(moved.parameters.ability_se_clustered).all()


def test_clustered_errors_and_their_freedom_move_with_their_dim():
    fit = fitted("2pl-2d")
    n = fit.data.n_models
    clustered = np.tile([0.1, np.nan], (n, 1)).astype(np.float32)
    freedom = np.tile([9.0, 0.5], (n, 1)).astype(np.float32)
    before = dataclasses.replace(
        fit.parameters, ability_se_clustered=clustered, clustered_degrees_of_freedom=freedom
    )
    swapped = ScaleChange(np.array([[0.0, 2.0], [-3.0, 0.0]]), np.zeros(2)).apply_to_fit(before)
    np.testing.assert_allclose(swapped.ability_se_clustered, np.tile([np.nan, 0.3], (n, 1)), 1e-6)
    np.testing.assert_allclose(swapped.clustered_degrees_of_freedom, np.tile([0.5, 9], (n, 1)))

"""Varimax against a grid over all angles; order and signs of the canonical frame."""

import numpy as np
import pytest

from irtjax.fit.rotation import canonical_rotation, loadings, varimax


def criterion(matrix):
    """Kaiser's: the variance of the squared loadings, summed over the dims."""
    return np.var(matrix**2, axis=0).sum()


def turn(angle):
    """The rotation by an angle."""
    return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])


def simple(rng, n_items, dims):
    """Loadings with simple structure: one large entry an item."""
    matrix = 0.15 * rng.normal(size=(n_items, dims))
    matrix[np.arange(n_items), rng.integers(0, dims, n_items)] += rng.uniform(0.4, 0.9, n_items)
    return matrix


@pytest.mark.parametrize("seed", range(8))
def test_varimax_at_two_dims_is_the_best_of_a_grid_of_angles(seed):
    rng = np.random.default_rng(seed)
    matrix = simple(rng, 200, 2) @ turn(rng.uniform(0, 2 * np.pi))
    rotation = varimax(matrix)
    # The criterion repeats every quarter turn; 0.01 degrees is finer than its curvature needs.
    best = max(criterion(matrix @ turn(angle)) for angle in np.linspace(0, np.pi / 2, 9001))
    assert np.allclose(rotation.T @ rotation, np.eye(2), atol=1e-12)
    assert criterion(matrix @ rotation) >= best * (1 - 1e-9)


@pytest.mark.parametrize("angle", [45.0, 44.999, 22.5, 0.0])
def test_varimax_leaves_a_frame_where_its_gradient_is_zero_but_nothing_is_simple(angle):
    # Perfect simple structure turned by 45 degrees: every squared loading is equal, the gradient
    # is exactly 0, and the criterion is at its minimum.
    matrix = np.kron(np.eye(2), np.ones((10, 1))) @ turn(np.deg2rad(angle))
    rotated = matrix @ varimax(matrix)
    assert criterion(rotated) == pytest.approx(2 * 0.25, rel=1e-6)


def test_varimax_at_three_dims_beats_random_rotations_and_finds_the_structure():
    rng = np.random.default_rng(3)
    truth = simple(rng, 300, 3)
    mixed = truth @ np.linalg.qr(rng.normal(size=(3, 3)))[0]
    rotated = mixed @ varimax(mixed)
    best = max(criterion(mixed @ np.linalg.qr(rng.normal(size=(3, 3)))[0]) for _ in range(2000))
    assert criterion(rotated) >= best
    match = np.abs(np.corrcoef(rotated.T, truth.T)[:3, 3:])
    assert np.all(np.sort(match, axis=1)[:, -1] > 0.99)


def test_loadings_are_correlations_with_the_latent_response():
    # y* = slope . theta + 1.702 e with a standard normal e: corr(y*, theta_k), by its definition.
    slope = np.array([[0.0, 0.0], [1.0, -2.0], [30.0, 0.1]])
    expected = slope / np.sqrt(1.702**2 + (slope**2).sum(axis=1, keepdims=True))
    np.testing.assert_allclose(loadings(slope), expected, rtol=1e-14)
    assert np.all(np.abs(loadings(slope)) < 1)
    rng = np.random.default_rng(0)
    theta = rng.normal(size=(400_000, 2))
    latent = theta @ slope[1] + 1.702 * rng.normal(size=len(theta))
    seen = [np.corrcoef(latent, theta[:, k])[0, 1] for k in range(2)]
    np.testing.assert_allclose(seen, loadings(slope)[1], atol=0.005)


def _frame(seed=0, n_models=50, n_items=300, dims=3):
    """Slopes with dims of different weight, abilities, accuracies that rise with all of them."""
    rng = np.random.default_rng(seed)
    slope = simple(rng, n_items, dims) * np.array([1.0, 3.0, 2.0])[:dims]
    ability = rng.normal(size=(n_models, dims))
    accuracy = ability.sum(axis=1) + 0.05 * rng.normal(size=n_models)
    return slope, ability, accuracy


def test_the_canonical_frame_does_not_depend_on_the_frame_it_is_found_from():
    slope, ability, accuracy = _frame()
    expected = slope @ canonical_rotation(slope, ability, accuracy)
    rng = np.random.default_rng(1)
    for _ in range(5):
        turned = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        rotation = canonical_rotation(slope @ turned, ability @ turned, accuracy)
        np.testing.assert_allclose(slope @ turned @ rotation, expected, atol=1e-4)
        np.testing.assert_allclose(rotation.T @ rotation, np.eye(3), atol=1e-10)


def test_dims_are_ordered_by_explained_variance_and_abilities_rise_with_accuracy():
    slope, ability, accuracy = _frame()
    rotation = canonical_rotation(slope, ability, accuracy)
    explained = (loadings(slope @ rotation) ** 2).sum(axis=0)
    assert np.all(np.diff(explained) < 0)
    turned = ability @ rotation
    assert all(np.corrcoef(turned[:, k], accuracy)[0, 1] > 0 for k in range(3))


def test_case_20_a_sign_does_not_depend_on_the_sign_it_is_found_from():
    slope, ability, accuracy = _frame(dims=2)
    expected = slope @ canonical_rotation(slope, ability, accuracy)
    for signs in ([1, -1], [-1, 1], [-1, -1]):
        flipped = slope * signs, ability * signs
        rotation = canonical_rotation(*flipped, accuracy)
        np.testing.assert_allclose(flipped[0] @ rotation, expected, atol=1e-6)


def test_models_without_responses_and_constant_accuracy_do_not_break_the_sign():
    slope, ability, accuracy = _frame()
    expected = canonical_rotation(slope, ability, accuracy)
    with_gap = np.vstack([ability, np.zeros((1, 3))])
    rotation = canonical_rotation(slope, with_gap, np.append(accuracy, np.nan))
    np.testing.assert_allclose(rotation, expected)
    # Accuracy says nothing: then the mean slope is positive.
    for constant in (np.full(len(accuracy), 0.5), np.full(len(accuracy), np.nan)):
        rotation = canonical_rotation(slope, ability, constant)
        assert np.all((slope @ rotation).mean(axis=0) > 0)


def test_one_dim_is_only_signed():
    slope, ability, accuracy = _frame(dims=1)
    np.testing.assert_allclose(canonical_rotation(slope, ability, accuracy), [[1.0]])
    np.testing.assert_allclose(canonical_rotation(-slope, -ability, accuracy), [[-1.0]])

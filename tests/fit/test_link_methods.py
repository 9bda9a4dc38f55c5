"""Linking against the textbook's criteria (Kolen & Brennan 2014, chapter 6), minimised by scipy."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.spatial.transform import Rotation
from scipy.special import expit

from irtjax.errors import InputError
from irtjax.fit.drift import linked_without_drift
from irtjax.fit.link_methods import (
    METHODS,
    ONE_DIM_METHODS,
    AnchorItems,
    matched_points,
    scale_nodes,
)
from irtjax.fit.scale_change import ScaleChange

TRUE = ScaleChange(np.array([[1.3]]), np.array([0.7]))
OBLIQUE = ScaleChange(np.array([[1.2, 0.3], [-0.2, 0.9]]), np.array([0.7, -0.4]))
NODES = scale_nodes(np.zeros(1), np.eye(1))


def items(n, dims=1, seed=0, noise=0.0):
    """The anchors as the run and as the reference have them, with errors of known size."""
    rng = np.random.default_rng(seed)
    change = TRUE if dims == 1 else OBLIQUE
    slope = np.exp(0.3 * rng.normal(size=(n, dims))) * (rng.random((n, dims)) < 0.8)
    slope[:, 0] = np.exp(0.3 * rng.normal(size=n))
    coordinates = np.concatenate([slope, rng.normal(size=(n, 1))], axis=1)
    covariance = np.broadcast_to(noise**2 * np.eye(dims + 1), (n, dims + 1, dims + 1))
    guessing, feasibility = 0.2 * rng.random(n), 1 - 0.1 * rng.random(n)
    sides = []
    for truth in (coordinates, change.apply_to_coordinates(coordinates)):
        found = truth + noise * rng.normal(size=truth.shape)
        sides.append(AnchorItems(found[:, :-1], found[:, -1], covariance, guessing, feasibility))
    return sides


def curve(side, slope, intercept, theta):
    return [
        c + (d - c) * expit(a * theta + b)
        for a, b, c, d in zip(slope, intercept, side.guessing, side.feasibility, strict=True)
    ]


def criterion(name, run, reference, scale, place):
    """Equations 6.13 and 6.15: slopes a / A, difficulties A b + B, by loops."""
    slope, total = run.slope[:, 0] / scale, 0.0
    difficulty = scale * -run.intercept / run.slope[:, 0] + place
    for theta in np.linspace(-4, 4, 41):
        weight = np.exp(-0.5 * theta**2)
        known = curve(reference, reference.slope[:, 0], reference.intercept, theta)
        away = np.subtract(curve(run, slope, -slope * difficulty, theta), known)
        total += weight * (np.sum(away**2) if name == "haebara" else np.sum(away) ** 2)
    return total


@pytest.mark.parametrize("name", ["haebara", "stocking-lord"])
def test_curve_methods_minimise_the_textbooks_criterion(name):
    run, reference = items(12, noise=0.15)
    found = METHODS[name](run, reference, np.ones(12), NODES, is_common=False)
    best = minimize(
        lambda p: criterion(name, run, reference, *p),
        [1.0, 0.0],
        method="Nelder-Mead",
        options={"xatol": 1e-8, "fatol": 1e-14, "maxiter": 2000},
    )
    np.testing.assert_allclose([found.matrix[0, 0], found.shift[0]], best.x, atol=1e-5)


def test_mean_sigma_is_the_textbooks():
    run, reference = items(12, noise=0.1)
    found = METHODS["mean-sigma"](run, reference, np.ones(12), NODES, is_common=False)
    one, other = (-side.intercept / side.slope[:, 0] for side in (run, reference))
    assert found.matrix[0, 0] == pytest.approx(np.std(other) / np.std(one))
    assert found.shift[0] == pytest.approx(other.mean() - found.matrix[0, 0] * one.mean())


@pytest.mark.parametrize("name", ONE_DIM_METHODS)
def test_exact_items_give_the_exact_link_in_one_dim(name):
    run, reference = items(15)
    found = METHODS[name](run, reference, np.ones(15), NODES, is_common=False)
    np.testing.assert_allclose(found.matrix, TRUE.matrix, rtol=1e-6)
    np.testing.assert_allclose(found.shift, TRUE.shift, rtol=1e-6)


def test_exact_items_give_the_exact_oblique_link():
    run, reference = items(15, dims=2)
    found = METHODS["oblique"](run, reference, np.ones(15), None, is_common=False)
    np.testing.assert_allclose(found.matrix, OBLIQUE.matrix, atol=1e-8)
    np.testing.assert_allclose(found.shift, OBLIQUE.shift, atol=1e-8)


def test_procrustes_turns_as_scipys_best_rotation_does():
    run, reference = items(20, dims=2, noise=0.1)
    found = METHODS["procrustes"](run, reference, np.ones(20), None, is_common=False)
    flat = [np.pad(side.slope, ((0, 0), (0, 1))) for side in (reference, run)]
    turn = Rotation.align_vectors(*flat)[0].as_matrix()[:2, :2]
    np.testing.assert_allclose(found.matrix, turn, atol=1e-8)


def test_matched_points_give_the_reference_its_moments():
    rng = np.random.default_rng(0)
    known = rng.normal(size=(30, 2))
    points = OBLIQUE.apply_to_abilities(known) + 0.05 * rng.normal(size=(30, 2))
    moved = matched_points(points, known).apply_to_abilities(points)
    np.testing.assert_allclose(moved.mean(axis=0), known.mean(axis=0), atol=1e-10)
    np.testing.assert_allclose(np.cov(moved.T), np.cov(known.T), atol=1e-10)
    assert np.sqrt(np.mean((moved - known) ** 2)) < 0.06


@pytest.mark.parametrize("name, dims", [*((name, 1) for name in ONE_DIM_METHODS), ("oblique", 2)])
def test_a_tenth_of_drifted_anchors_is_flagged_and_does_not_move_the_link(name, dims):
    n, noise = 100, 0.12
    run, reference = items(n, dims, seed=1, noise=noise)
    intercept = reference.intercept.copy()
    intercept[:10] += 1.5  # all the same way: the mean of the anchors moves by more than an error
    drifted = AnchorItems(reference.slope, intercept, *list(vars(reference).values())[2:])

    def method(one, other, weight):
        return METHODS[name](one, other, weight, NODES, is_common=False)

    change, drift = linked_without_drift(run, drifted, method, is_common=False)
    clean, _ = linked_without_drift(run.at(np.arange(n) >= 10), reference.at(np.arange(n) >= 10),
                                    method, is_common=False)  # fmt: skip
    assert drift.is_drifted[:10].all()
    assert np.count_nonzero(drift.is_drifted[10:]) <= 2
    true = TRUE if dims == 1 else OBLIQUE
    for found in (change, clean):
        np.testing.assert_allclose(found.matrix, true.matrix, atol=0.1)
        np.testing.assert_allclose(found.shift, true.shift, atol=0.1)
    np.testing.assert_allclose(change.shift, clean.shift, atol=0.03)
    plain = method(run, drifted, np.ones(n))
    assert np.abs(plain.shift - true.shift).max() > 2 * np.abs(change.shift - true.shift).max()


def test_without_drift_about_one_in_a_thousand_is_flagged():
    run, reference = items(3000, seed=3, noise=0.1)

    def method(one, other, weight):
        return METHODS["haebara"](one, other, weight, NODES, is_common=False)

    _, drift = linked_without_drift(run, reference, method, is_common=False)
    assert drift.inflation < 1.1
    assert np.count_nonzero(drift.is_drifted) <= 10


def test_a_common_slope_leaves_only_the_place():
    run, reference = items(20, noise=0.05)
    same = [
        AnchorItems(np.full((20, 1), slope), *list(vars(side).values())[1:])
        for side, slope in ((run, 1.3), (reference, 1.0))
    ]
    for name in ONE_DIM_METHODS:
        found = METHODS[name](*same, np.ones(20), NODES, is_common=True)
        assert found.matrix[0, 0] == pytest.approx(1.3)
        np.testing.assert_allclose(found.shift, TRUE.shift, atol=0.3)


def test_mean_sigma_refuses_flat_items():
    run, reference = items(4, noise=5.0)
    flat = AnchorItems(0.01 * run.slope, *list(vars(run).values())[1:])
    with pytest.raises(InputError, match="at least 2 anchors with slopes above"):
        METHODS["mean-sigma"](flat, reference, np.ones(4), NODES, is_common=False)

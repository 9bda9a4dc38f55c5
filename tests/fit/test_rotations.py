"""Gradient projection: published solutions, criteria by loops, minima against scipy's."""

import numpy as np
import pytest
from scipy.optimize import minimize

from irtjax.errors import InputError
from irtjax.fit.rotations import METHODS, Rotation, procrustes, rotation_of

# GPArotation's own test (tests/rotations.R, fuzz 1e-6): two factors of R's ability.cov by maximum
# likelihood, rotated by Varimax, quartimin, geominT and geominQ, all without Kaiser's weights.
VARIMAX = [
    [0.51586652, 0.52787948],
    [0.17505463, 0.61646023],
    [0.23205775, 0.85321159],
    [0.12282247, 0.46421324],
    [0.96137638, 0.15268986],
    [0.79129280, 0.20065343],
]
PUBLISHED = {
    "quartimin": [
        [0.38636159, 0.47451277],
        [-0.01100594, 0.64587208],
        [-0.02629263, 0.89611411],
        [-0.01802005, 0.48829283],
        [0.99009449, -0.03707183],
        [0.79056573, 0.05261096],
    ],
    "geomin-orthogonal": [
        [0.57219704, 0.46622479],
        [0.24357342, 0.59273884],
        [0.32695661, 0.82153526],
        [0.17447679, 0.44736673],
        [0.97247125, 0.04310916],
        [0.80889469, 0.10997938],
    ],
    "geomin": [
        [0.39672054, 0.47132960],
        [0.00424453, 0.63894660],
        [-0.00510977, 0.88645214],
        [-0.00646959, 0.48301018],
        [0.98709860, -0.03189600],
        [0.79011178, 0.05586896],
    ],
}


def by_loops(method, loading, target=None, gamma=0.0):
    """The criteria, mean over the items, written out."""
    n_items, dims = loading.shape
    total = 0.0
    if target is not None:
        away = [(a - b) ** 2 for a, b in zip(loading.ravel(), target.ravel(), strict=True)]
        return np.nansum(away) / loading.size
    if method.startswith("geomin"):
        return np.mean([np.prod(row**2 + 0.01) ** (1 / dims) for row in loading])
    for k in range(dims):
        for l in range(dims):
            if k != l:
                x, y = loading[:, k] ** 2, loading[:, l] ** 2
                total += np.sum(x * y) - gamma * np.sum(x) * np.sum(y) / n_items
    return total / (4 * n_items)


def rotated(matrix, found):
    return matrix @ np.linalg.inv(found.transform).T


def mixed(seed=0, n_items=60, dims=3):
    """Loadings with some structure, in a frame where none is to be seen."""
    rng = np.random.default_rng(seed)
    matrix = 0.15 * rng.normal(size=(n_items, dims))
    matrix[np.arange(n_items), rng.integers(0, dims, n_items)] += rng.uniform(0.3, 0.8, n_items)
    return matrix @ np.linalg.qr(rng.normal(size=(dims, dims)))[0]


@pytest.mark.parametrize("method", PUBLISHED)
def test_published_solutions_up_to_order_and_signs(method):
    matrix = np.array(VARIMAX)
    found = rotated(matrix, rotation_of(matrix, method))
    expected = np.array(PUBLISHED[method])
    products = found.T @ expected
    order = np.argmax(np.abs(products), axis=0)
    found = found[:, order] * np.sign(products[order, [0, 1]])
    # They stop at a gradient of 1e-5.
    np.testing.assert_allclose(found, expected, atol=2e-6)


@pytest.mark.parametrize("method", ["quartimin", "oblimin", "geomin", "geomin-orthogonal"])
def test_no_minimum_that_scipy_finds_is_lower(method):
    matrix, gamma = mixed(), -0.5 if method == "oblimin" else 0.0
    found = rotation_of(matrix, method, gamma=gamma)
    assert found.is_converged
    assert by_loops(method, rotated(matrix, found), gamma=gamma) == pytest.approx(
        found.criterion, rel=1e-12
    )
    assert found.criterion <= least_of_scipy(matrix, method, gamma=gamma) * (1 + 1e-6)


@pytest.mark.parametrize("method", ["target", "procrustes"])
def test_no_frame_that_scipy_finds_is_nearer_to_a_target_with_gaps(method):
    matrix = mixed(1)
    rng = np.random.default_rng(2)
    target = np.where(rng.random(matrix.shape) < 0.4, np.nan, rng.normal(0, 0.5, matrix.shape))
    found = rotation_of(matrix, method, target=target)
    assert by_loops(method, rotated(matrix, found), target) == pytest.approx(
        found.criterion, rel=1e-12
    )
    assert found.criterion <= least_of_scipy(matrix, method, target) * (1 + 1e-6)


def least_of_scipy(matrix, method, target=None, gamma=0.0):
    """Quasi-Newton over unconstrained matrices that are brought to the manifold, from 20 starts."""
    dims = matrix.shape[1]
    is_orthogonal = method in ("geomin-orthogonal", "procrustes")

    def objective(flat):
        point = flat.reshape(dims, dims)
        if is_orthogonal:
            left, _, right = np.linalg.svd(point)
            transform = left @ right
        else:
            transform = point / np.linalg.norm(point, axis=0)
        loading = matrix @ np.linalg.inv(transform).T
        return by_loops(method, loading, target, gamma)

    rng = np.random.default_rng(9)
    starts = (np.linalg.qr(rng.normal(size=(dims, dims)))[0] for _ in range(20))
    return min(minimize(objective, start.ravel(), method="BFGS").fun for start in starts)


def test_a_target_that_can_be_reached_is_reached():
    matrix = mixed(2)
    rng = np.random.default_rng(5)
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    np.testing.assert_allclose(procrustes(matrix, matrix @ turn), turn, atol=1e-12)
    transform = turn + 0.2 * rng.normal(size=(3, 3))
    transform /= np.linalg.norm(transform, axis=0)
    target = matrix @ np.linalg.inv(transform).T
    found = rotation_of(matrix, "target", target=target)
    np.testing.assert_allclose(found.transform, transform, atol=1e-5)


@pytest.mark.parametrize("method", ["quartimin", "geomin", "geomin-orthogonal"])
def test_the_solution_does_not_depend_on_the_frame_it_is_found_from(method):
    matrix = mixed(3)
    turn = np.linalg.qr(np.random.default_rng(6).normal(size=(3, 3)))[0]
    first = rotated(matrix, rotation_of(matrix, method))
    second = rotated(matrix @ turn, rotation_of(matrix @ turn, method))
    agreement = np.abs(np.corrcoef(first.T, second.T)[:3, 3:])
    np.testing.assert_allclose(agreement.max(axis=0), 1, atol=1e-8)


@pytest.mark.parametrize("method", [name for name in METHODS if name not in ("varimax",)])
def test_transformations_are_of_their_kind_and_the_same_at_every_call(method):
    matrix = mixed(4, n_items=2_000, dims=4)  # more items than starts look at
    target = np.abs(matrix) if method in ("target", "procrustes") else None
    found = rotation_of(matrix, method, target=target)
    again = rotation_of(matrix, method, target=target)
    np.testing.assert_array_equal(found.transform, again.transform)
    correlation = found.transform.T @ found.transform
    np.testing.assert_allclose(np.diagonal(correlation), 1, atol=1e-12)
    if method in ("geomin-orthogonal", "procrustes"):
        np.testing.assert_allclose(correlation, np.eye(4), atol=1e-12)


def test_oblimin_is_less_oblique_the_more_negative_gamma_is():
    matrix = mixed(7)
    largest = []
    for gamma in (0.0, -1.0, -10.0):
        found: Rotation = rotation_of(matrix, "oblimin", gamma=gamma)
        largest.append(np.abs(found.transform.T @ found.transform - np.eye(3)).max())
    assert largest[0] > largest[1] > largest[2]


@pytest.mark.parametrize(
    "arguments, message",
    [
        (("promax",), "rotation 'promax' is not known"),
        (("target",), "needs a target"),
        (("geomin", np.zeros((6, 2))), "has no use for a target"),
        (("target", np.zeros((5, 2))), r"shape \(5, 2\), the loadings \(6, 2\)"),
        (("target", np.full((6, 2), np.nan)), "finite number in every dim"),
        (("geomin", None, -1.0), "gamma belongs to rotation oblimin"),
        (("oblimin", None, 1.0), "gamma must be at most 0"),
    ],
)
def test_bad_input_is_refused_in_one_line(arguments, message):
    method, target, gamma = (*arguments, None, 0.0)[:3] if len(arguments) < 3 else arguments
    with pytest.raises(InputError, match=message):
        rotation_of(np.array(VARIMAX), method, target=target, gamma=gamma or 0.0)

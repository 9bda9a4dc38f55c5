"""Packed symmetric matrices against NumPy's linear algebra, one matrix at a time."""

import jax.numpy as jnp
import numpy as np
import pytest

from irtjax.fit.packed import (
    pack,
    pair_index,
    positive_definite_inverse,
    positive_definite_solve,
    products,
    quadratic,
    unpack,
    unpack_index,
)
from tests.tolerances import close


def _matrices(size, batch=7):
    root = np.random.default_rng(size).normal(size=(batch, size, size))
    return root @ root.swapaxes(1, 2) + 0.5 * np.eye(size)


@pytest.mark.oracle
@pytest.mark.parametrize("size", [1, 2, 3, 6])
def test_inverse_and_log_determinant(size):
    full = _matrices(size)
    packed = pack(jnp.asarray(full))
    inverse, log_determinant, is_positive = positive_definite_inverse(packed, size)
    close(unpack(inverse, size).transpose(2, 0, 1), np.linalg.inv(full), kind="solve")
    close(log_determinant, np.linalg.slogdet(full)[1], kind="solve")
    assert np.all(is_positive)


@pytest.mark.oracle
@pytest.mark.parametrize("size", [1, 2, 4])
def test_what_is_not_positive_definite_is_told(size):
    full = _matrices(size)
    value, vector = np.linalg.eigh(full)
    value[::2, 0] = -0.1  # every other matrix has one negative eigenvalue
    full = np.einsum("bij,bj,bkj->bik", vector, value, vector)
    inverse, log_determinant, is_positive = positive_definite_inverse(pack(jnp.asarray(full)), size)
    assert is_positive.tolist() == [k % 2 == 1 for k in range(len(full))]
    assert np.all(np.isfinite(inverse))
    assert np.all(np.isfinite(log_determinant))


@pytest.mark.oracle
@pytest.mark.parametrize("size", [1, 3, 6])
def test_systems_are_solved_and_by_the_diagonal_where_they_are_not_positive_definite(size):
    full, right = _matrices(size), np.random.default_rng(3).normal(size=(size, 7))
    full[2] = np.diag(np.arange(size) - 1.0) if size > 1 else -1.0
    solved = positive_definite_solve(pack(jnp.asarray(full)), size, jnp.asarray(right))
    expected = np.linalg.solve(np.delete(full, 2, 0), np.delete(right, 2, 1).T[..., None])[..., 0].T
    close(np.delete(solved, 2, 1), expected, kind="solve")
    assert np.isfinite(solved).all()
    if size > 1:
        close(solved[2:, 2], right[2:, 2] / full[2].diagonal()[2:], kind="solve")


@pytest.mark.oracle
def test_packing_round_trips_and_products_are_outer_products():
    size, rng = 4, np.random.default_rng(2)
    full = _matrices(size, 3)
    packed = pack(jnp.asarray(full))
    close(unpack(packed, size).transpose(2, 0, 1), full)
    rows, columns = pair_index(size)
    position = unpack_index(size)
    assert (position == position.T).all()
    assert (position[rows, columns] == np.arange(len(rows))).all()
    vectors = rng.normal(size=(5, size))
    outer = np.einsum("ba,bc->bac", vectors, vectors)
    close(products(jnp.asarray(vectors)), outer[:, rows, columns])
    # The quadratic form of every vector with every matrix.
    expected = np.einsum("va,bac,vc->vb", vectors, full, vectors)
    close(quadratic(jnp.asarray(vectors)) @ packed, expected, kind="reduction", scale=10)

"""Parts of the data that share no model and no item, against a plain search over the cells."""

import numpy as np
import pytest

from irtjax.data import parts
from irtjax.data.parts import n_parts
from irtjax.data.responses import ResponseMatrix


def _oracle(matrix):
    """Repeatedly join the labels of the models that an item connects."""
    label = {i: i for i in np.flatnonzero((matrix >= 0).any(axis=1)).tolist()}
    for column in (matrix >= 0).T:
        models = np.flatnonzero(column).tolist()
        joined = {label[i] for i in models}
        label = {i: min(joined) if each in joined else each for i, each in label.items()}
    return len(set(label.values()))


def _blocks(*shapes):
    """Matrices of ones on the diagonal, nothing observed beside them."""
    matrix = np.full(np.sum(shapes, axis=0), -1, np.int8)
    row = column = 0
    for n_models, n_items in shapes:
        matrix[row : row + n_models, column : column + n_items] = 1
        row, column = row + n_models, column + n_items
    return matrix


def _chain(n):
    """Model k answers items k and k + 1."""
    matrix = np.full((n, n + 1), -1, np.int8)
    matrix[np.arange(n), np.arange(n)] = matrix[np.arange(n), np.arange(n) + 1] = 1
    return matrix


MATRICES = {
    "whole": _blocks((5, 7)),
    "a large part and a small one": _blocks((18, 14), (2, 1)),
    "one cell apart": _blocks((30, 40), (1, 1)),
    "three": _blocks((4, 3), (3, 3), (2, 2)),
    "many": _blocks(*[(2, 3)] * 12),
    "chain": _chain(9),
    "long chain": _chain(60),
    "without models and items": np.pad(_blocks((3, 4), (3, 3)), 2, constant_values=-1),
    "nothing": np.full((3, 4), -1, np.int8),
}


@pytest.mark.parametrize("few_cells", [0, 1 << 20])
@pytest.mark.parametrize("name", MATRICES)
def test_parts_are_counted_exactly(name, few_cells, monkeypatch):
    # Below _FEW_CELLS the graph is searched, above the matrix is swept: both are exact.
    monkeypatch.setattr(parts, "_FEW_CELLS", few_cells)
    monkeypatch.setattr(parts, "_CELLS_AT_ONCE", 40)
    rng = np.random.default_rng(0)
    matrix = MATRICES[name]
    matrix = matrix[rng.permutation(len(matrix))][:, rng.permutation(matrix.shape[1])]
    data = ResponseMatrix.from_dense(matrix)
    assert n_parts(data) == _oracle(matrix)
    assert n_parts(data.transposed()) == _oracle(matrix)


@pytest.mark.parametrize("share", [0.03, 0.08, 0.2, 0.6])
def test_random_cells(share, monkeypatch):
    monkeypatch.setattr(parts, "_FEW_CELLS", 10)
    for seed in range(5):
        rng = np.random.default_rng(seed)
        matrix = np.where(rng.random((20, 25)) < share, 1, -1)
        assert n_parts(ResponseMatrix.from_dense(matrix)) == _oracle(matrix)

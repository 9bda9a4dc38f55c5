"""NumPy files."""

import numpy as np
import pytest

from irtjax.errors import IrtjaxWarning
from irtjax.io import read_responses

RESPONSES = np.int8([[1, 0, -1], [0, -1, 1]])


@pytest.fixture
def npz(tmp_path):
    def write(**arrays):
        np.savez(tmp_path / "r.npz", **arrays)
        return tmp_path / "r.npz"

    return write


@pytest.mark.parametrize("names", [("models", "items"), ("model_ids", "item_ids")])
def test_ids(npz, names):
    ids = {names[0]: ["b", "a"], names[1]: np.array([7, 8, 9])}
    matrix = read_responses(npz(responses=RESPONSES, **ids))
    assert list(matrix.model_ids) == ["b", "a"]
    assert list(matrix.item_ids) == ["7", "8", "9"]
    np.testing.assert_array_equal(matrix.to_dense(), RESPONSES)


def test_without_ids_they_are_numbered(npz):
    assert list(read_responses(npz(responses=RESPONSES)).item_ids) == ["item-0", "item-1", "item-2"]


def test_metadata_and_weight(npz):
    matrix = read_responses(
        npz(
            responses=RESPONSES,
            item_level=[1.5, 2.5, 3.5],
            item_benchmark=np.array([1, 0, 1]),
            benchmarks=["gsm", "mmlu"],
            model_family=np.array([b"x", b""]),
            weight=np.float32([[1, 2, 3], [4, 5, 6]]),
            split=np.zeros((2, 3)),
        )
    )
    assert list(matrix.item_metadata.columns) == ["benchmark", "level"]
    assert list(matrix.item_metadata["benchmark"]) == ["mmlu", "gsm", "mmlu"]
    assert matrix.model_metadata["family"].isna().tolist() == [False, True]
    assert matrix.cells().weight.tolist() == [1, 4, 2, 6]
    assert matrix.provenance.choices["arrays_not_kept"] == ["split"]


def test_items_in_rows(npz):
    path = npz(responses=RESPONSES.T, models=["b", "a"], items=["p", "q", "r"])
    assert "--items-in-rows" in _refusal(path)
    np.testing.assert_array_equal(read_responses(path, items_in_rows=True).to_dense(), RESPONSES)


def _refusal(path, **settings):
    with pytest.raises(ValueError) as caught:
        read_responses(path, **settings)
    return str(caught.value)


def test_looks_transposed(npz):
    with pytest.warns(IrtjaxWarning, match="transposed"):
        read_responses(npz(responses=np.ones((30, 2), np.int8)))


@pytest.mark.parametrize("kind", [bool, np.uint8, np.int64, np.float32, np.float64])
def test_types(npz, kind):
    np.testing.assert_array_equal(
        read_responses(npz(responses=np.eye(2, dtype=kind))).to_dense(), np.eye(2)
    )


@pytest.mark.parametrize("bad", [2, -2, 255, np.inf, -0.5])
def test_a_value_that_is_no_response(npz, refused, bad):
    responses = np.where(RESPONSES < 0, bad, RESPONSES.astype(float))
    message = refused(npz(responses=responses, models=["b", "a"], items=["p", "q", "r"]))
    assert "model 'b' to item 'r' (row 1" in message
    assert "2 such values" in message


@pytest.mark.parametrize(
    "arrays, said",
    [
        ({"answers": RESPONSES}, "'answers'"),
        ({"responses": RESPONSES[0]}, "shape (3,)"),
        ({"responses": np.zeros((0, 3))}, "shape (0, 3)"),
        ({"responses": np.array([["1", "0"]])}, "not numbers"),
        ({"responses": RESPONSES, "models": ["a"]}, "'models'"),
        ({"responses": RESPONSES, "models": ["a", ""]}, "empty id"),
        ({"responses": RESPONSES, "item_x": ["a"]}, "'item_x'"),
        ({"responses": RESPONSES, "weight": np.ones(3)}, "'weight'"),
        ({"responses": RESPONSES, "weight": np.zeros((2, 3))}, "positive"),
        ({"responses": np.array([[1, None]], object)}, "pickle"),
    ],
)
def test_arrays_that_do_not_fit(npz, refused, arrays, said):
    assert said in refused(npz(**arrays))


def test_repeated_ids_are_duplicates(npz, refused):
    path = npz(responses=np.int8([[1], [0]]), models=["a", "a"])
    assert "rows 1 and 2" in refused(path)
    assert read_responses(path, duplicates="mean").to_dense().tolist() == [[0.5]]


def test_sparse_cells(npz, refused):
    arrays = {
        "cell_model": [0, 2],
        "cell_item": [1, 1],
        "cell_response": [1, 0],
        "model_ids": ["a", "b", "c"],
        "item_ids": ["p", "q"],
        "model_family": ["x", "y", "x"],
        "item_level": [1, 2],
    }
    matrix = read_responses(npz(**arrays))
    assert list(matrix.model_ids) == ["a", "b", "c"]
    assert list(matrix.item_ids) == ["p", "q"]
    assert matrix.to_dense().tolist() == [[-1, 1], [-1, -1], [-1, 0]]
    assert list(matrix.model_metadata["family"]) == ["x", "y", "x"]
    assert matrix.item_metadata["level"].tolist() == [1, 2]
    assert "outside" in refused(npz(**{**arrays, "cell_model": [0, 3]}))
    assert "each cell" in refused(npz(**{**arrays, "cell_item": [0]}))
    assert "stands twice" in refused(npz(**{**arrays, "model_ids": ["a", "b", "a"]}))
    assert "[0, 1]" in refused(npz(**{**arrays, "cell_response": [0, 2]}))


@pytest.mark.shared
def test_the_shared_matrices(shared_dir):
    matrix = read_responses(shared_dir / "data" / "psn_irt.npz")
    assert (matrix.n_models, matrix.n_items) == (12, 41_871)
    assert matrix.item_metadata["benchmark"].nunique() == 11

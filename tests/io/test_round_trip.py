"""`write_responses` and back."""

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest

from irtjax.data.responses import ResponseMatrix
from irtjax.errors import InputError
from irtjax.io import read_responses, write_responses

IDS = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=8
)


@st.composite
def matrices(draw):
    models = draw(st.lists(IDS, min_size=1, max_size=5, unique=True))
    items = draw(st.lists(IDS, min_size=1, max_size=7, unique=True))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shape = len(models), len(items)
    dense = rng.integers(0, 2, shape).astype(np.float32)
    if draw(st.booleans()):
        dense = np.where(rng.random(shape) < 0.3, rng.random(shape), dense).astype(np.float32)
    dense[rng.random(shape) > draw(st.sampled_from([0.05, 0.5, 1.0]))] = -1
    weight = None
    if draw(st.booleans()):
        weight = rng.choice([1, 2, 0.3], shape).astype(np.float32)
    texts = st.one_of(st.none(), IDS)
    item_metadata = {"benchmark": draw(st.lists(IDS, min_size=shape[1], max_size=shape[1]))}
    if draw(st.booleans()):
        item_metadata["note"] = draw(st.lists(texts, min_size=shape[1], max_size=shape[1]))
    return ResponseMatrix.from_dense(
        dense,
        model_ids=models,
        item_ids=items,
        weight=weight,
        item_metadata=pd.DataFrame(item_metadata, dtype="str"),
        model_metadata=pd.DataFrame({"family": models[::-1]}, dtype="str"),
    )


def assert_same(one: ResponseMatrix, two: ResponseMatrix) -> None:
    assert list(one.model_ids) == list(two.model_ids)
    assert list(one.item_ids) == list(two.item_ids)
    np.testing.assert_array_equal(one.to_dense(), two.to_dense())
    np.testing.assert_array_equal(one.cells().weight, two.cells().weight)


@pytest.mark.parametrize("suffix", ["csv", "parquet", "npz", "csv.gz"])
@hypothesis.given(matrix=matrices())
@hypothesis.settings(max_examples=60)
def test_round_trip(tmp_path_factory, suffix, matrix):
    path = tmp_path_factory.mktemp("r") / f"r.{suffix}"
    write_responses(matrix, path)
    back = read_responses(path, fractional="likelihood")
    assert_same(matrix, back)
    if suffix.startswith("csv") and matrix.n_models == 1:
        return  # text cannot say that a column of one value describes models
    pd.testing.assert_frame_equal(matrix.item_metadata, back.item_metadata)
    pd.testing.assert_frame_equal(matrix.model_metadata, back.model_metadata)


@pytest.mark.parametrize("suffix", ["csv", "parquet", "npz"])
@pytest.mark.parametrize("density", [0.02, 0.6])
def test_many_chunks(tmp_path, monkeypatch, suffix, density):
    monkeypatch.setattr("irtjax.io.write_long._CELLS_AT_ONCE", 50)
    rng = np.random.default_rng(0)
    dense = np.where(rng.random((30, 90)) < density, rng.integers(0, 2, (30, 90)), -1)
    dense[:, [0, 40]] = -1
    dense[[3, 29]] = -1
    matrix = ResponseMatrix.from_dense(dense)
    assert (matrix.sparse is not None) == (density < 0.2)
    write_responses(matrix, tmp_path / f"r.{suffix}")
    assert_same(matrix, read_responses(tmp_path / f"r.{suffix}"))


@pytest.mark.parametrize("suffix", ["parquet", "npz"])
def test_typed_metadata(tmp_path, suffix):
    items = pd.DataFrame(
        {"benchmark": ["x", "y"], "level": [1, 2], "hard": [0.5, np.nan], "mc": [True, False]}
    )
    models = pd.DataFrame({"size": [7, 7], "open": [True, True]})
    matrix = ResponseMatrix.from_dense(
        [[1, 0], [0, -1]], item_metadata=items, model_metadata=models
    )
    write_responses(matrix, tmp_path / f"r.{suffix}")
    back = read_responses(tmp_path / f"r.{suffix}")
    pd.testing.assert_frame_equal(items, back.item_metadata)
    pd.testing.assert_frame_equal(models, back.model_metadata)


def test_more_arrays_in_an_npz(tmp_path):
    matrix = ResponseMatrix.from_dense([[1, 0]])
    write_responses(matrix, tmp_path / "r.npz", arrays={"heldout": np.array([[True, False]])})
    assert_same(matrix, read_responses(tmp_path / "r.npz"))
    assert np.load(tmp_path / "r.npz")["heldout"].tolist() == [[True, False]]
    with pytest.raises(InputError, match=r"\.npz"):
        write_responses(matrix, tmp_path / "r.csv", arrays={"x": np.zeros(1)})
    with pytest.raises(InputError, match="'responses'"):
        write_responses(matrix, tmp_path / "r.npz", arrays={"responses": np.zeros(1)})


@pytest.mark.parametrize(
    "item, model, said",
    [
        ({"response": ["x"]}, {}, "'response'"),
        ({"weight": ["x"]}, {}, "'weight'"),
        ({"x": ["1"]}, {"x": ["2"]}, "twice"),
        ({}, {"benchmark": ["x"]}, "describes items"),
    ],
)
def test_metadata_that_no_file_can_hold(tmp_path, item, model, said):
    matrix = ResponseMatrix.from_dense(
        [[1]],
        item_metadata=pd.DataFrame(item or {"a": ["b"]}),
        model_metadata=pd.DataFrame(model or {"c": ["d"]}),
    )
    with pytest.raises(InputError, match=said):
        write_responses(matrix, tmp_path / "r.csv")


@pytest.mark.parametrize("ids", [["a\x00"], ["\ud800"]])
@pytest.mark.parametrize("suffix", ["csv", "parquet", "npz"])
def test_ids_that_no_file_can_hold(tmp_path, ids, suffix):
    matrix = ResponseMatrix.from_dense([[1]], model_ids=ids)
    with pytest.raises(InputError):
        write_responses(matrix, tmp_path / f"r.{suffix}")
    assert not list(tmp_path.iterdir())


def test_a_suffix_without_writer(tmp_path):
    with pytest.raises(InputError, match=r"\.parquet"):
        write_responses(ResponseMatrix.from_dense([[1]]), tmp_path / "r.xlsx")

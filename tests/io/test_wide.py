"""Wide tables: CASES 10, headers, orientation."""

import numpy as np
import pytest

from irtjax.errors import IrtjaxWarning
from irtjax.io import read_responses


def test_rows_are_models_and_the_first_column_their_ids(save):
    matrix = read_responses(save("model,q1,007\nb,1.0,\na,0.0,true\n"))
    assert list(matrix.model_ids) == ["b", "a"]
    assert list(matrix.item_ids) == ["q1", "007"]
    np.testing.assert_array_equal(matrix.to_dense(), [[1, -1], [0, 1]])
    assert matrix.provenance.choices["format"] == "wide"
    assert matrix.provenance.choices["id_column"] == "model"


def test_without_header_ids_are_numbered(save):
    matrix = read_responses(save("1.0,0.0,\n0.0,,1.0\n"), no_header=True)
    assert list(matrix.model_ids) == ["model-0", "model-1"]
    assert list(matrix.item_ids) == ["item-0", "item-1", "item-2"]
    np.testing.assert_array_equal(matrix.to_dense(), [[1, 0, -1], [0, -1, 1]])


def test_no_header_is_asked_for_where_it_is_needed(save, refused):
    assert "--no-header" in refused(save("1.0,0.0,1.0\n0.0,1.0,1.0\n"))
    assert "--no-header" in refused(save("m,p\na,1\n"), no_header=True)


def test_items_in_rows(save):
    text = "item,b,a\nq1,1,0\nq2,,1\n"
    matrix = read_responses(save(text), items_in_rows=True)
    assert list(matrix.model_ids) == ["b", "a"]
    assert list(matrix.item_ids) == ["q1", "q2"]
    np.testing.assert_array_equal(matrix.to_dense(), [[1, -1], [0, 1]])
    bare = read_responses(save("1,0\n,1\n"), items_in_rows=True, no_header=True)
    np.testing.assert_array_equal(bare.to_dense(), matrix.to_dense())
    assert list(bare.model_ids) == ["model-0", "model-1"]


def test_a_table_that_looks_transposed_warns(save):
    text = "id,a,b\n" + "".join(f"q{k},1,0\n" for k in range(20))
    path = save(text)
    with pytest.warns(IrtjaxWarning, match="--items-in-rows"):
        matrix = read_responses(path)
    assert matrix.n_models == 20
    assert "transposed" in matrix.provenance.warnings[0]
    assert read_responses(path, items_in_rows=True).provenance.warnings == ()


CASE_10 = "".join(
    f"{line}\n" for line in ("i1,i2,i3,i4,i5,id", "1,0,1,1,0,101", "0,0,1,1,1,102", "1,,1,0,0,103")
)


def test_case_10_an_id_column_is_no_item(save, refused):
    message = refused(save("model,i1,id,i2\na,1,101,0\nb,0,102,1\n"))
    assert "column 'id'" in message
    assert "'101' on line 2" in message
    assert "--id-column" in message
    assert "'id'" in refused(save(CASE_10))
    matrix = read_responses(save(CASE_10), id_column="id")
    assert list(matrix.model_ids) == ["101", "102", "103"]
    assert list(matrix.item_ids) == ["i1", "i2", "i3", "i4", "i5"]


def test_every_column_that_is_not_01_is_named(save, refused):
    message = refused(save("model,age,q1,sex\na,34,1,f\nb,40,0,m\n"))
    assert "'age'" in message
    assert "'sex'" in message
    assert "2 such values" in message


def test_a_first_column_of_responses_is_no_id(save, refused):
    message = refused(save("q1,q2\n1,0\n0,1\n1,1\n"))
    assert "'q1'" in message
    assert "--id-column" in message


def test_a_long_table_read_as_wide_gets_a_hint(save, refused):
    message = refused(save("llm,question,score\na,what,1\n"))
    assert "--item-column" in message


def test_unknown_id_column_lists_the_columns(save, refused):
    message = refused(save("m,p\na,1\n"), id_column="x")
    assert "'m', 'p'" in message
    assert "--no-header" in refused(save("m,p\na,1\n"), id_column="m", no_header=True)


def test_a_repeated_model_is_a_duplicate(save, refused):
    path = save("model,p,q\na,1,0\nb,1,1\na,0,\n")
    message = refused(path)
    assert f"item 'p' has two responses of model 'a' (lines 2 and 4 of {path})" in message
    matrix = read_responses(path, duplicates="mean")
    assert matrix.cells().response.tolist() == [0.5, 1, 0, 1]
    assert list(matrix.model_ids) == ["a", "b"]


def test_an_empty_id_is_refused(save, refused):
    assert "line 3" in refused(save("model,p\na,1\n,0\n"))
    assert "column 2" in refused(save("model,,q\na,1,0\n"))


def test_all_missing_rows_and_columns_stay(save):
    matrix = read_responses(save("model,p,q\na,,\nb,,1\n"))
    assert matrix.to_dense().tolist() == [[-1, -1], [-1, 1]]


def test_many_batches_equal_one(save, monkeypatch):
    rng = np.random.default_rng(0)
    dense = rng.integers(-1, 2, (40, 7))
    text = "m," + ",".join(f"q{j}" for j in range(7)) + "\n"
    text += "".join(
        f"m{i}," + ",".join("" if y < 0 else str(y) for y in row) + "\n"
        for i, row in enumerate(dense)
    )
    monkeypatch.setattr("irtjax.io.wide._CELLS_AT_ONCE", 20)
    np.testing.assert_array_equal(read_responses(save(text)).to_dense(), dense)

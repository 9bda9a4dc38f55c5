"""The canonical long table: roles, aliases, ids, values, weights, several files."""

import gzip
import hashlib
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from irtjax.errors import IrtjaxWarning
from irtjax.io import read_responses, write_json

ROWS = "model_id,item_id,response\nb,007,1\na,007,0\nb,7,\na,x,1\n"


def test_ids_and_their_order_are_the_inputs(save):
    matrix = read_responses(save(ROWS))
    assert list(matrix.model_ids) == ["b", "a"]
    assert list(matrix.item_ids) == ["007", "7", "x"]
    np.testing.assert_array_equal(matrix.to_dense(), [[1, -1, -1], [0, -1, 1]])


def test_csv_ids_are_text_and_not_numbers(save):
    matrix = read_responses(save("model_id,item_id,response\n1,1.0,1\n1.0,1,0\n1e3,1.0,1\n"))
    assert list(matrix.model_ids) == ["1", "1.0", "1e3"]
    assert list(matrix.item_ids) == ["1.0", "1"]


def test_provenance_names_file_hash_and_columns(save):
    path = save(ROWS)
    provenance = read_responses(path).provenance
    assert provenance.files == ((str(path), hashlib.sha256(path.read_bytes()).hexdigest()),)
    assert provenance.choices["format"] == "long"
    assert provenance.choices["columns"]["item_column"] == "item_id"
    assert provenance.choices["rows_without_response"] == 1


@pytest.mark.parametrize("model", ["model", "model_name", "subject_id", "student_id", "source"])
def test_model_aliases(save, model):
    assert read_responses(save(f"{model},item_id,response\na,q,1\n")).model_ids[0] == "a"


@pytest.mark.parametrize("item", ["item", "question_id", "example_id", "doc_id"])
def test_item_aliases(save, item):
    assert read_responses(save(f"model_id,{item},response\na,q,1\n")).item_ids[0] == "q"


@pytest.mark.parametrize("name", ["correct", "is_correct", "resp", "score", "outcome", "acc"])
def test_response_aliases(save, name):
    assert read_responses(save(f"model_id,item_id,{name}\na,q,1\n")).to_dense()[0, 0] == 1


def test_canonical_name_wins_and_the_alias_is_metadata(save):
    text = "model_id,model,item_id,response,score\na,A,q,1,.5\nb,B,q,0,.5\n"
    matrix = read_responses(save(text))
    assert list(matrix.model_ids) == ["a", "b"]
    assert list(matrix.model_metadata["model"]) == ["A", "B"]
    assert list(matrix.item_metadata["score"]) == [".5"]


@pytest.mark.parametrize(
    "header, names, flag",
    [
        ("model,source,item_id,response", ("'model'", "'source'"), "--model-column"),
        ("model_id,item,doc_id,response", ("'item'", "'doc_id'"), "--item-column"),
        ("model_id,item_id,score,acc", ("'score'", "'acc'"), "--response-column"),
    ],
)
def test_two_aliases_of_a_role_are_refused(save, refused, header, names, flag):
    message = refused(save(header + "\na,b,c,1\n"))
    assert all(name in message for name in names)
    assert flag in message


def test_a_flag_decides_between_two_aliases(save):
    path = save("model_id,item_id,score,acc\na,q,0,1\n")
    matrix = read_responses(path, response_column="acc")
    assert matrix.to_dense()[0, 0] == 1
    assert matrix.provenance.choices["columns"]["response_column"] == "acc"


def test_a_flag_names_a_column_without_alias(save, refused):
    path = save("llm,q,right\na,x,1\n")
    matrix = read_responses(path, model_column="llm", item_column="q", response_column="right")
    assert list(matrix.item_ids) == ["x"]
    message = refused(path, model_column="nope", item_column="q", response_column="right")
    assert "'nope'" in message
    assert "'llm'" in message


def test_one_column_for_two_roles_is_refused(save, refused):
    message = refused(save(ROWS), model_column="item_id")
    assert "--model-column" in message


@pytest.mark.parametrize(
    "header, flag",
    [
        ("model_id,item_id,answer", "--response-column"),
        ("model_id,question,score", "--item-column"),
        ("llm,item_id,score", "--model-column"),
    ],
)
def test_missing_column_is_refused(save, refused, header, flag):
    assert flag in refused(save(header + "\na,b,1\n"))


def test_parquet_and_json_lines_equal_csv(save, tmp_path, cells_of):
    frame = pd.DataFrame(
        {
            "model_id": ["b", "a", "b", "a"],
            "item_id": ["007", "007", "7", "x"],
            "response": [1.0, 0.0, None, 1.0],
        }
    )
    frame.to_parquet(tmp_path / "r.parquet")
    frame.to_json(tmp_path / "r.jsonl", orient="records", lines=True)
    expected = read_responses(save(ROWS))
    for name in ("r.parquet", "r.jsonl"):
        matrix = read_responses(tmp_path / name)
        assert list(matrix.model_ids) == list(expected.model_ids)
        assert list(matrix.item_ids) == list(expected.item_ids)
        assert cells_of(matrix) == cells_of(expected)


def test_numbers_as_ids_become_their_text(save, tmp_path):
    rows = [
        {"model_id": 1, "item_id": 10**30, "response": True},
        {"model_id": 2, "item_id": 2, "response": False},
    ]
    matrix = read_responses(save(rows, "r.jsonl"))
    assert list(matrix.model_ids) == ["1", "2"]
    assert list(matrix.item_ids) == [str(10**30), "2"]
    pd.DataFrame({"model": [1, 2], "item": [1.5, 2.0], "acc": [True, False]}).to_parquet(
        tmp_path / "r.parquet"
    )
    assert list(read_responses(tmp_path / "r.parquet").item_ids) == ["1.5", "2.0"]


def test_json_ids_that_look_like_dates_or_mixed_numbers_stay(save):
    rows = [
        {"model_id": "2024-01-01", "item_id": 7, "response": 1},
        {"model_id": "2024-01-02", "item_id": 7.5, "response": "0"},
        {"model_id": "x", "item_id": "7", "response": None},
    ]
    matrix = read_responses(save(rows, "r.jsonl"))
    assert list(matrix.model_ids) == ["2024-01-01", "2024-01-02", "x"]
    assert list(matrix.item_ids) == ["7", "7.5"]


def test_json_nan_null_and_absent_are_missing(save):
    text = (
        '{"model_id": "a", "item_id": "p", "response": NaN}\n'
        '{"model_id": "a", "item_id": "q", "response": null}\n'
        '{"model_id": "a", "item_id": "r"}\n\n'
        '{"model_id": "a", "item_id": "s", "response": 1}\n'
    )
    assert read_responses(save(text, "r.jsonl")).to_dense().tolist() == [[-1, -1, -1, 1]]


def test_parquet_categories_keep_the_order_of_the_rows(tmp_path):
    models = pd.Categorical(["z", "a"], categories=["unused", "a", "z"])
    pd.DataFrame({"model_id": models, "item_id": ["q", "q"], "response": [1, 0]}).to_parquet(
        tmp_path / "r.parquet"
    )
    assert list(read_responses(tmp_path / "r.parquet").model_ids) == ["z", "a"]


def test_several_files_and_globs(save, tmp_path, cells_of):
    save("model_id,item_id,response\na,q1,1\na,q2,0\n", "parts/1.csv")
    save("model,item,score\nb,q3,1\nb,q1,0\n", "parts/2.csv")
    matrix = read_responses(tmp_path / "parts" / "*.csv")
    assert list(matrix.model_ids) == ["a", "b"]
    assert list(matrix.item_ids) == ["q1", "q2", "q3"]
    assert cells_of(matrix) == {("a", "q1"): 1, ("a", "q2"): 0, ("b", "q3"): 1, ("b", "q1"): 0}
    assert [Path(name).name for name, _ in matrix.provenance.files] == ["1.csv", "2.csv"]
    assert len(matrix.provenance.choices["columns"]) == 2


def test_files_keep_their_order_whatever_their_format(save):
    one, three = save("model,item,acc\na,p,1\n", "1.csv"), save("model,item,acc\nc,p,1\n", "3.csv")
    two = save("model,p\nb,1\n", "2.csv")
    matrix = read_responses([one, two, three])
    assert list(matrix.model_ids) == ["a", "b", "c"]
    assert [Path(name).name for name, _ in matrix.provenance.files] == ["1.csv", "2.csv", "3.csv"]


def test_provenance_is_json(save, tmp_path):
    text = "model_id,item_id,response,metric,x\na,p,.5,acc,1\na,p,1,acc,2\na,q,1,em,3\n"
    provenance = read_responses(
        save(text), fractional="likelihood", duplicates="mean", metric="acc"
    ).provenance
    write_json({"choices": provenance.choices, "files": provenance.files}, tmp_path / "f.json")
    assert json.loads((tmp_path / "f.json").read_text())["choices"] == dict(provenance.choices)


def test_a_file_given_twice_is_read_once(save, tmp_path):
    path = save(ROWS)
    matrix = read_responses([path, tmp_path / "*.csv", str(path)])
    assert matrix.n_responses == 3


def test_files_of_different_formats_are_one_matrix(save, tmp_path):
    wide = save("model,q1,q2\na,1,0\n", "w.csv")
    np.savez(tmp_path / "n.npz", responses=np.int8([[1]]), models=["b"], items=["q1"])
    matrix = read_responses([wide, tmp_path / "n.npz", save("model,item,acc\nc,q2,1\n")])
    assert list(matrix.model_ids) == ["a", "b", "c"]
    assert matrix.to_dense().tolist() == [[1, 0], [1, -1], [-1, 1]]
    assert matrix.provenance.choices["format"] == ["wide", "npz", "long"]


def test_compressed_and_tab_separated_files(save):
    assert read_responses(save(gzip.compress(ROWS.encode()), "r.csv.gz")).n_responses == 3
    assert read_responses(save(ROWS.replace(",", "\t"), "r.tsv")).n_responses == 3


def test_weights_are_kept(save):
    text = "model_id,item_id,response,weight\na,p,1,2\na,q,0,0.5\na,r,,\n"
    matrix = read_responses(save(text))
    assert matrix.cells().weight.tolist() == [2, 0.5]
    assert matrix.provenance.choices["weights"] == "column 'weight'"
    assert matrix.sum_of_weights == 2.5


def test_what_becomes_of_columns_that_are_no_metadata_is_told(save):
    text = "model_id,item_id,response,trial,\na,p,1,1,0\nb,p,0,1,1\n"
    matrix = read_responses(save(text))
    not_kept = matrix.provenance.choices["columns_not_kept"]
    assert list(not_kept) == ["trial", ""]
    assert "--duplicates" in not_kept["trial"]
    assert "weights" not in matrix.provenance.choices
    assert matrix.sum_of_weights is None


@pytest.mark.parametrize("weight", ["0", "-1", "", "nan", "inf", "many", "1e-60"])
def test_a_weight_that_is_not_positive_is_refused(save, refused, weight):
    text = f"model_id,item_id,response,weight\na,p,1,1\na,q,1,{weight}\n"
    message = refused(save(text))
    assert "line 3" in message
    assert "weight" in message


def test_case_08_all_missing_models_and_items_stay(save):
    text = "model_id,item_id,response\na,p,1\nb,p,\nb,q,NaN\na,q,NA\n"
    matrix = read_responses(save(text))
    assert list(matrix.model_ids) == ["a", "b"]
    assert list(matrix.item_ids) == ["p", "q"]
    assert matrix.n_responses == 1


def test_case_09_ids_come_back_as_strings(save):
    matrix = read_responses(save("model_id,item_id,response\n0,10,1\n1,11,0\n"))
    ids = [*matrix.model_ids, *matrix.item_ids]
    assert ids == ["0", "1", "10", "11"]
    assert all(type(each) is str for each in ids)


def test_setting_of_another_format_is_refused(save, refused):
    path = save(ROWS)
    assert "--runs" in refused(path, runs="all")
    assert "--items-in-rows" in refused(path, format="long", items_in_rows=True)
    assert "--metric" in refused(save("m,p,q\na,1,0\n", "w.csv"), metric="acc")


@pytest.mark.parametrize(
    "setting",
    [{"format": "x"}, {"duplicates": "x"}, {"runs": "x"}, {"fractional": "x"}],
)
def test_an_unknown_choice_is_refused(save, refused, setting):
    assert f"--{next(iter(setting))}" in refused(save(ROWS), **setting)


def test_no_warning_without_a_reason(save, recwarn):
    read_responses(save(ROWS))
    assert not [each for each in recwarn if issubclass(each.category, IrtjaxWarning)]

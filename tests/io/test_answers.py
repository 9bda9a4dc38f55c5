"""Files of answers, good and hostile."""

import numpy as np
import pandas as pd
import pytest

from irtjax.io import read_answers

EXPECTED = pd.DataFrame(
    {
        "model_id": ["a", "b"],
        "item_id": ["007", "007"],
        "answer": ["B", np.nan],
        "key": ["01", "01"],
    },
    dtype="str",
)


def test_strings_as_written_in_every_format(save, tmp_path):
    text = "model,question_id,answer,key,note\na,007,B,01,x\nb,007,,01,y\n"
    pd.testing.assert_frame_equal(read_answers(save(text)), EXPECTED)
    EXPECTED.to_parquet(tmp_path / "a.parquet")
    pd.testing.assert_frame_equal(read_answers(tmp_path / "a.parquet"), EXPECTED)
    EXPECTED.to_json(tmp_path / "a.jsonl", orient="records", lines=True)
    pd.testing.assert_frame_equal(read_answers(tmp_path / "a.jsonl"), EXPECTED)


def test_named_columns(save):
    text = "llm,q,answer,key\na,007,B,01\nb,007,,01\n"
    found = read_answers(save(text), model_column="llm", item_column="q")
    pd.testing.assert_frame_equal(found, EXPECTED)


def test_numbers_and_answers_that_look_like_missing_ones(save):
    found = read_answers(save("model,item,answer,key\na,p,3.10,NA\nb,p,None,NA\n"))
    assert found["answer"].tolist() == ["3.10", "None"]
    assert found["key"].tolist() == ["NA", "NA"]
    rows = [{"model_id": "a", "item_id": "p", "answer": 2, "key": 3}]
    assert read_answers(save(rows, "a.jsonl"))[["answer", "key"]].to_numpy().tolist() == [
        ["2", "3"]
    ]


HEAD = "model_id,item_id,answer,key\n"


@pytest.mark.parametrize(
    "text, said",
    [
        ("", "empty"),
        (HEAD, "no rows"),
        ("model_id,item_id,answer\na,p,B\n", "no column 'key'"),
        ("model_id,item_id,key\na,p,B\n", "no column 'answer'"),
        ("item_id,answer,key\np,B,B\n", "--model-column"),
        (HEAD + "a,p,B,B\nb,p,C,\n", "the key of item 'p' is missing (line 3"),
        (HEAD + "a,p,B,B\nb,q,C,\nc,q,C,\n", "and 1 row more); give each row"),
        (HEAD + ",p,B,B\n", "line 2"),
        (HEAD + "a,p,B,B\na,p,C,B\n", "line 2 of"),
        (HEAD + "a,p,B,B\nb,p,C,A\n", "two keys of one item"),
        (HEAD + "a,p,B\n", "line 2"),
        ("model_id,model_id,item_id,answer,key\na,a,p,B,B\n", "two columns"),
    ],
)
def test_bad_answers(save, refused, text, said):
    assert said in refused(save(text), reader=read_answers)


def test_hostile_files(save, refused, tmp_path):
    refused(tmp_path / "nothing.csv", reader=read_answers)
    refused(save(b"\x89PNG\r\n" + bytes(range(256)), "a.csv"), reader=read_answers)
    refused(save(b"PAR1" + bytes(50), "a.parquet"), reader=read_answers)
    refused(save("[1, 2]\n", "a.jsonl"), reader=read_answers)
    rows = [{"model_id": "a", "item_id": "p", "answer": ["B"], "key": "B"}]
    assert "not one value" in refused(save(rows, "b.jsonl"), reader=read_answers)

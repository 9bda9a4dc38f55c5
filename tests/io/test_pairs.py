"""Pairs to predict."""

import pandas as pd
import pytest

from irtjax.io import read_pairs

EXPECTED = pd.DataFrame({"model_id": ["b", "a", "b"], "item_id": ["007", "7", "007"]}, dtype="str")


@pytest.mark.parametrize("header", ["model_id,item_id", "model,question_id"])
def test_strings_in_input_order_with_repeats(save, header):
    pairs = read_pairs(save(header + "\nb,007\na,7\nb,007\n"))
    pd.testing.assert_frame_equal(pairs, EXPECTED)


def test_other_columns_are_ignored(save, tmp_path):
    text = "note,item,response,model\n,007,yes,b\nx,7,,a\n,007,1,b\n"
    pd.testing.assert_frame_equal(read_pairs(save(text)), EXPECTED)
    EXPECTED.assign(x=1).to_parquet(tmp_path / "p.parquet")
    pd.testing.assert_frame_equal(read_pairs(tmp_path / "p.parquet"), EXPECTED)
    EXPECTED.to_json(tmp_path / "p.jsonl", orient="records", lines=True)
    pd.testing.assert_frame_equal(read_pairs(tmp_path / "p.jsonl"), EXPECTED)


def test_named_columns(save):
    path = save("llm,q\nb,007\na,7\nb,007\n")
    pairs = read_pairs(path, model_column="llm", item_column="q")
    pd.testing.assert_frame_equal(pairs, EXPECTED)


@pytest.mark.parametrize(
    "text, said",
    [
        ("model_id,question\na,p\n", "--item-column"),
        ("model,source,item\na,b,p\n", "--model-column"),
        ("model_id,item_id\na,\n", "line 2"),
        ("model_id,item_id\n", "no rows"),
        ("model_id,item_id\na,p,q\n", "line 2"),
        ("model_id\na\n", "--item-column"),
        ("", "empty"),
    ],
)
def test_bad_pairs(save, refused, text, said):
    assert said in refused(save(text), reader=read_pairs)


def test_no_such_file(tmp_path, refused):
    refused(tmp_path / "x.csv", reader=read_pairs)

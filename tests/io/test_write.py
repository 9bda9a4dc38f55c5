"""Tables and JSON."""

import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from irtjax.data.responses import ResponseMatrix
from irtjax.errors import InputError
from irtjax.io import all_or_none, write_json, write_responses, write_table


def test_floats_read_back_to_the_same_bits(tmp_path):
    rng = np.random.default_rng(0)
    single = rng.integers(0, 2**32, 5000, dtype=np.uint32).view(np.float32)
    double = rng.integers(0, 2**64, 5000, dtype=np.uint64).view(np.float64)
    frame = pd.DataFrame({"s": single[np.isfinite(single)][:4000]})
    frame["d"] = double[np.isfinite(double)][:4000]
    write_table(frame, tmp_path / "t.csv")
    back = pd.read_csv(tmp_path / "t.csv", dtype="str")
    np.testing.assert_array_equal([np.float32(text) for text in back["s"]], frame["s"])
    np.testing.assert_array_equal([float(text) for text in back["d"]], frame["d"])


def test_numbers_are_short_and_nan_is_empty(tmp_path):
    frame = pd.DataFrame(
        {
            "item_id": ["q,1", None, "007"],
            "x": np.array([0.1, np.nan, 1], np.float32),
            "y": [1 / 3, np.nan, 1e-7],
            "n": [1, 2, 3],
            "flags": ["", "a;b", ""],
        }
    )
    write_table(frame, tmp_path / "t.csv")
    text = (tmp_path / "t.csv").read_text().replace('"', "")
    assert text.splitlines() == [
        "item_id,x,y,n,flags",
        "q,1,0.1,0.3333333333333333,1,",
        ",,,2,a;b",
        "007,1,1e-7,3,",
    ]


def test_text_is_quoted_only_where_needed(tmp_path):
    write_table(pd.DataFrame({"a": ["x"], "b": ["y z"]}), tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text() == "a,b\nx,y z\n"
    odd = pd.DataFrame({"a,b": ['x"y', "line\nend", "é"]})
    write_table(odd, tmp_path / "t.csv")
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "t.csv"), odd)


def test_categories_and_mixed_objects_become_text(tmp_path):
    frame = pd.DataFrame({"c": pd.Categorical(["x", None]), "o": pd.Series([1, "y"], dtype=object)})
    write_table(frame, tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text() == "c,o\nx,1\n,y\n"


def test_json_without_nan_and_numpy(tmp_path):
    value = {
        "nan": float("nan"),
        "array": np.array([1.5, np.inf]),
        "count": np.int64(3),
        "path": Path("x"),
        "nested": {"é": (np.float32(0.5), None, True)},
        2: "two",
    }
    write_json(value, tmp_path / "f.json")
    text = (tmp_path / "f.json").read_text(encoding="utf-8")
    assert json.loads(text) == {
        "nan": None,
        "array": [1.5, None],
        "count": 3,
        "path": "x",
        "nested": {"é": [0.5, None, True]},
        "2": "two",
    }
    assert text.endswith("}\n")


def test_a_failed_write_leaves_the_old_file(tmp_path):
    write_json({"a": 1}, tmp_path / "f.json")
    with pytest.raises(InputError, match="cannot write"):
        write_json({"a": object()}, tmp_path / "f.json")
    assert json.loads((tmp_path / "f.json").read_text()) == {"a": 1}
    assert os.listdir(tmp_path) == ["f.json"]


def test_a_folder_that_does_not_exist(tmp_path):
    with pytest.raises(InputError, match="No such file"):
        write_table(pd.DataFrame({"a": [1]}), tmp_path / "no" / "t.csv")
    with pytest.raises(InputError, match="cannot write"):
        write_json({}, tmp_path)


def test_a_link_stays_and_a_pipe_is_written_to(tmp_path):
    (tmp_path / "link.json").symlink_to(tmp_path / "target.json")
    write_json({"a": 1}, tmp_path / "link.json")
    assert (tmp_path / "link.json").is_symlink()
    assert json.loads((tmp_path / "target.json").read_text()) == {"a": 1}
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    write_table(pd.DataFrame({"a": [1]}), tmp_path / "pipe")
    assert os.read(reader, 100) == b"a\n1\n"
    os.close(reader)
    assert (tmp_path / "pipe").is_fifo()


def test_files_have_the_usual_rights(tmp_path):
    write_json({}, tmp_path / "f.json")
    (tmp_path / "plain").write_text("")
    assert (tmp_path / "f.json").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_what_is_no_matrix_or_path_is_refused(tmp_path):
    with pytest.raises(InputError, match="write_responses takes a ResponseMatrix, not ndarray"):
        write_responses(np.eye(3), tmp_path / "r.csv")
    with pytest.raises(InputError, match="the file to write must be a path, not None"):
        write_responses(ResponseMatrix.from_dense([[1]]), None)


def test_files_that_belong_together_are_all_written_or_none(tmp_path):
    (tmp_path / "old.csv").write_text("old")
    frame = pd.DataFrame({"a": [1]})

    def write_both() -> None:
        with all_or_none():
            write_table(frame, tmp_path / "old.csv")
            write_table(frame, "no/b.csv")

    with pytest.raises(InputError, match=r"cannot write no/b\.csv"):
        write_both()
    assert {each.name: each.read_text() for each in tmp_path.iterdir()} == {"old.csv": "old"}
    with all_or_none():
        write_table(frame, tmp_path / "old.csv")
        write_json({"b": 2}, tmp_path / "b.json")
        assert (tmp_path / "old.csv").read_text() == "old"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["b.json", "old.csv"]
    assert (tmp_path / "old.csv").read_text() == "a\n1\n"
    write_table(frame, tmp_path / "alone.csv")  # as ever
    assert (tmp_path / "alone.csv").is_file()


def test_a_file_that_cannot_take_its_place_leaves_no_temporary_one(tmp_path):
    (tmp_path / "b.csv").mkdir()
    with pytest.raises(InputError, match=r"cannot write .*b\.csv"), all_or_none():
        write_table(pd.DataFrame({"a": [1]}), tmp_path / "b.csv")
    assert [each.name for each in tmp_path.iterdir()] == ["b.csv"]

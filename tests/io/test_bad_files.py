"""Files that cannot be used: one line that says what, where and what to do (DESIGN section 6)."""

import gzip
import os
import socket

import numpy as np
import pandas as pd
import pytest

from irtjax.io import read_pairs, read_responses

GOOD = "model_id,item_id,response\na,p,1\nb,q,0\n"
SUFFIXES = ["csv", "tsv", "csv.gz", "parquet", "jsonl", "npz", "npy", "txt", "json"]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_empty_file(save, refused, suffix):
    assert "is empty" in refused(save("", f"r.{suffix}"))


@pytest.mark.parametrize("text", ["\n", "\n\r\n\n"])
def test_blank_lines_only(save, refused, text):
    assert "empty" in refused(save(text))
    assert "no objects" in refused(save(text, "r.jsonl"))


@pytest.mark.parametrize("end", ["", "\n", "\n\n", "\r\n"])
@pytest.mark.parametrize("header", ["model_id,item_id,response", "model,q1,q2"])
def test_header_only(save, refused, header, end):
    assert "no rows" in refused(save(header + end))


@pytest.mark.parametrize("head", ["\n\n", "\r\n", "\ufeff", "\ufeff\n"])
def test_lines_before_the_header(save, head):
    assert list(read_responses(save(head + GOOD)).model_ids) == ["a", "b"]
    assert list(read_pairs(save(head + GOOD))["model_id"]) == ["a", "b"]
    assert read_responses(save(head + "model,q\na,1\n")).n_models == 1


def test_parquet_without_rows(tmp_path, refused):
    frame = pd.DataFrame({"model_id": ["a"], "item_id": ["p"], "response": [1]})
    frame[:0].to_parquet(tmp_path / "r.parquet")
    assert "no rows" in refused(tmp_path / "r.parquet")


@pytest.mark.parametrize("name", ["nothing.csv", "no/folder/r.parquet", "x.npz"])
def test_a_path_that_does_not_exist(tmp_path, refused, name):
    assert "does not exist" in refused(tmp_path / name)


def test_a_glob_that_matches_nothing(tmp_path, refused):
    assert "no file matches" in refused(tmp_path / "*.csv")
    assert "no response files" in refused([])
    assert "empty path" in refused("")


def test_a_folder_without_samples(tmp_path, refused):
    (tmp_path / "r.csv").mkdir()
    assert "samples_*.jsonl" in refused(tmp_path / "r.csv")
    assert "is a folder" in refused(tmp_path / "r.csv", format="long")
    assert "is a folder" in refused(tmp_path / "r.csv", reader=read_pairs)


def test_something_that_is_no_regular_file(tmp_path, refused):
    os.mkfifo(tmp_path / "fifo.csv")
    assert "regular file" in refused(tmp_path / "fifo.csv")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "s.csv"))
        assert "regular file" in refused(tmp_path / "s.csv")


def test_a_link_to_nothing(tmp_path, refused):
    (tmp_path / "r.csv").symlink_to(tmp_path / "gone.csv")
    assert "No such file" in refused(tmp_path / "r.csv")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission(save, refused):
    path = save(GOOD)
    path.chmod(0)
    assert "Permission denied" in refused(path)


def test_permission_is_reported_by_its_reason(save, refused, monkeypatch):
    def denied(*args, **kwargs):
        raise PermissionError(13, "Permission denied")

    path = save(GOOD)
    monkeypatch.setattr("builtins.open", denied)
    assert "Permission denied" in refused(path)


def test_an_unknown_suffix(save, refused):
    path = save(GOOD, "r.dat")
    assert "--format" in refused(path)
    assert read_responses(path, format="long").n_responses == 2


@pytest.mark.parametrize("name", ["r.csv", "r.tsv"])
@pytest.mark.parametrize("line", ["a,p", "a,p,1,1", "a", ",,,,"])
def test_ragged_rows_name_the_line(save, refused, name, line):
    text = "model_id,item_id,response\na,p,1\n\n" + line + "\nb,p,1\n"
    if name == "r.tsv":
        text, line = text.replace(",", "\t"), line.replace(",", "\t")
    message = refused(save(text, name))
    assert "line 4 of" in message
    assert "3" in message


def test_ragged_wide_rows_name_the_line(save, refused):
    assert "line 3 of" in refused(save("model,p,q\na,1,0\nb,1\n"))


def test_repeated_names_in_a_header(save, refused):
    for header in ("model_id,item_id,response,x,x", "model,p,q,p,r"):
        message = refused(save(header + "\na,b,1,1,1\n"))
        assert "two columns named" in message
        assert "(columns 2 and 4)" in message or "(columns 4 and 5)" in message


@pytest.mark.parametrize("header", [b"model_id,item_id,response\n", b"model,p,q\n"])
def test_text_that_is_not_utf8_names_the_line(save, refused, header):
    message = refused(save(header + b"a,1,0\n" + "é,1,0\n".encode("latin-1")))
    assert "line 3 of" in message
    assert "0xe9" in message
    assert "UTF-8" in message


def test_other_encodings(save, refused):
    assert "UTF-16" in refused(save(GOOD.encode("utf-16")))
    assert "binary" in refused(save(GOOD.encode("utf-16-le")))
    assert "UTF-8" in refused(save('{"model_id": "é"}\n'.encode("latin-1"), "r.jsonl"))
    json = b'{"model_id": "a", "item_id": "p", "response": 1, "x": "\xff"}\n'
    assert "line 1 of" in refused(save(json, "r.jsonl"))


def test_truncated_parquet(tmp_path, refused):
    path = tmp_path / "r.parquet"
    pd.DataFrame({"model_id": ["a"] * 999, "item_id": range(999), "response": 1}).to_parquet(path)
    whole = path.read_bytes()
    for size in (3, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        assert "cannot read" in refused(path)
        assert "cannot read" in refused(path, reader=read_pairs)


def test_damaged_parquet_column(tmp_path, refused):
    path = tmp_path / "r.parquet"
    pd.DataFrame({"model_id": ["a"] * 999, "item_id": range(999), "response": 1}).to_parquet(path)
    whole = bytearray(path.read_bytes())
    whole[4:200] = b"\xff" * 196
    path.write_bytes(whole)
    assert "cannot read" in refused(path)


def test_truncated_numpy_files(tmp_path, refused):
    responses = np.random.default_rng(0).integers(0, 2, (50, 50)).astype(np.int8)
    np.savez_compressed(tmp_path / "r.npz", responses=responses)
    np.save(tmp_path / "r.npy", responses)
    for path in (tmp_path / "r.npz", tmp_path / "r.npy"):
        whole = path.read_bytes()
        for size in (1, 7, 60, len(whole) // 2, len(whole) - 1):
            path.write_bytes(whole[:size])
            refused(path)


def test_damaged_numpy_archive(tmp_path, refused):
    path = tmp_path / "r.npz"
    np.savez_compressed(path, responses=np.eye(50, dtype=np.int8))
    whole = bytearray(path.read_bytes())
    whole[70:90] = b"\x00" * 20
    path.write_bytes(whole)
    assert "cannot read" in refused(path)


@pytest.mark.parametrize(
    "field, value, reason",
    [
        (0, 1, "encrypted, password required"),
        (0, 0x41, "strong encryption"),
        (2, 97, "compression method is not supported"),
    ],
)
def test_numpy_archive_that_zipfile_cannot_open(tmp_path, refused, field, value, reason):
    path = tmp_path / "r.npz"
    np.savez(path, responses=np.eye(3, dtype=np.int8))
    damaged = bytearray(path.read_bytes())
    # Flags and compression method stand side by side, in the header of each file and in the list.
    for mark, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        damaged[damaged.index(mark) + place + field] = value
    path.write_bytes(damaged)
    assert reason in refused(path)


def test_truncated_gzip(save, refused):
    refused(save(gzip.compress((GOOD * 500).encode())[:-20], "r.csv.gz"))
    refused(save(b"not gzip", "r.csv.gz"))


GARBAGE = np.random.default_rng(0).integers(0, 256, 5000, dtype=np.uint8).tobytes()


@pytest.mark.parametrize(
    "head", [b"", b"PAR1", b"PK\x03\x04", b"\x93NUMPY", b"\x1f\x8b", b"\x89PNG"]
)
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_binary_garbage(save, refused, suffix, head):
    refused(save(head + GARBAGE, f"r.{suffix}"))


@pytest.mark.parametrize("format", ["long", "wide", "npz", "pyirt", "lm-eval"])
@pytest.mark.parametrize("suffix", ["csv", "parquet", "jsonl", "npz"])
def test_a_file_read_as_the_wrong_format(tmp_path, save, refused, format, suffix):
    path = save(GOOD.replace("response", "other"), f"r.{suffix}")
    if suffix == "parquet":
        pd.DataFrame({"a": [1]}).to_parquet(path)
    elif suffix == "npz":
        np.savez(path, a=[1])
    refused(path, format=format)


def test_an_open_quote_names_its_line(save, refused):
    head = "model_id,item_id,response\na,p,1\n"
    for tail in ('"b,p,1\nc,p,1\n', 'b,"p,1\nc,p,1\n', 'b,p,"1\nc,p,1\n'):
        assert "line 3" in refused(save(head + tail))
    swallowed = head + 'b,"p,1\nc,q,0\nd,"r,1\n'
    assert "line 3" in refused(save(swallowed))


@pytest.mark.parametrize(
    "text",
    ["[1, 2]\n", '[{"model_id": "a"}]', '{"model_id": "a"}\n3\n', '{"model_id": }\n', "{" * 9999],
)
def test_json_that_is_no_json_lines(save, refused, text):
    message = refused(save(text, "r.jsonl"))
    assert "one object a line" in message


def test_a_key_twice_in_an_object(save, refused):
    text = '{"model_id": "a", "item_id": "p", "response": 1, "response": 0}\n'
    assert "'response' stands twice" in refused(save(text, "r.jsonl"))


def test_an_empty_id_names_its_line(save, refused):
    for text, role in (("a,,1", "item"), (",p,1", "model"), ('a,"",1', "item")):
        message = refused(save(f"{GOOD}{text}\n{text}\n"))
        assert f"{role} id is empty" in message
        assert "line 4 of" in message
        assert "1 more" in message


def test_json_ids_that_are_null_or_nested(save, refused):
    row = {"model_id": "a", "item_id": None, "response": 1}
    assert "line 2 of" in refused(save([{**row, "item_id": "p"}, row], "r.jsonl"))
    assert "not one value" in refused(save([{**row, "item_id": ["p"]}], "r.jsonl"))
    rows = [{**row, "item_id": "p", "response": r} for r in (1, [1])]
    assert "not one value" in refused(save(rows, "r.jsonl"))


def test_a_table_with_other_separators(save, refused):
    for separator, said in ((";", "semicolons"), ("\t", "by commas"), ("|", "by commas")):
        assert said in refused(save(GOOD.replace(",", separator)))


def test_lines_count_blank_lines_and_quoted_line_ends(save, refused):
    text = 'model_id,item_id,response\n\n"a\nb",p,1\n\na,p,5\n'
    assert "line 6 of" in refused(save(text))
    assert "line 6 of" in refused(save(text.replace("\n", "\r\n")))
    wide = 'model,"p\nx",q\n\na,1,0\nb,5,1\n'
    assert "line 5" in refused(save(wide))


@pytest.mark.parametrize(
    "paths, said",
    [
        (None, "read from a path or several, not from NoneType"),
        (3, "not from int"),
        (pd.DataFrame({"a": [1]}), "not from DataFrame; for data in memory there is"),
        (np.eye(2), "not from ndarray"),
        (["r.csv", 3], "each of the paths must be a path, not 3"),
        ([b"r.csv"], "each of the paths must be a path, not b'r.csv'"),
    ],
)
def test_what_is_no_path(refused, paths, said):
    assert said in refused(paths)


def test_semicolons_are_named(save, refused):
    message = refused(save("model_id;item_id;response\na;p;1\n"))
    assert message.endswith("its columns are separated by semicolons; save it with commas")

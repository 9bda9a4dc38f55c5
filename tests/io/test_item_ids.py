"""`read_item_ids`: every file that `irtjax select` writes, plain lists, and what is refused."""

import json

import pytest

from irtjax.errors import InputError
from irtjax.io import read_item_ids

IDS = ["a,b/1", "\u00fcber/2", "c/30"]


@pytest.mark.parametrize(
    "name, text",
    [
        ("ids.txt", "\ufeffa,b/1\n\n\u00fcber/2 \r\nc/30\nc/30"),
        ("ids", "a,b/1\n\u00fcber/2\nc/30\n"),
        ("ids.csv", 'order,item_id,gain\n1,"a,b/1",.3\n2,\u00fcber/2,.2\n3,c/30,.1\n'),
        ("ids.json", json.dumps(IDS)),
        ("ids.json", json.dumps({"a,b": [1], "\u00fcber": 2, "c": [30]})),
        ("ids.jsonl", "".join(json.dumps({"item_id": each}) + "\n" for each in IDS)),
    ],
)
def test_ids_are_read_as_written(tmp_path, name, text):
    (tmp_path / name).write_text(text, "utf-8")
    assert read_item_ids(tmp_path / name) == IDS


@pytest.mark.parametrize(
    "name, text, message",
    [
        ("x.txt", "\n \n", "names no item"),
        ("x.json", "[]", "names no item"),
        ("x.json", "{", "is not JSON"),
        ("x.json", "3", "must have a list of ids"),
        ("x.json", "[[1]]", "must have ids of items"),
        ("x.json", '{"a": [1.5]}', "must have ids|names"),
        ("x.csv", "p,q\n1,2\n", "needs a column 'item_id'; columns: p, q"),
    ],
)
def test_other_content_is_refused_in_one_line(tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=message) as caught:
        read_item_ids(tmp_path / name)
    assert "\n" not in str(caught.value)


def test_a_file_that_cannot_be_read_is_refused(tmp_path):
    (tmp_path / "x.txt").write_bytes(b"\xff\xfe\x00")
    for name in ("x.txt", "absent.txt", "absent.csv", "absent.json"):
        with pytest.raises(InputError, match="cannot read .*" + name.replace(".", r"\.")):
            read_item_ids(tmp_path / name)

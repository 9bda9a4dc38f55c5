"""Reader of py-irt's JSON Lines: `{"subject_id": s, "responses": {item: 0 | 1}}`."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from irtjax.errors import InputError
from irtjax.io.coded import encode_texts
from irtjax.io.files import Place, check_readable
from irtjax.io.json_table import json_lines, refuse_repeated_keys
from irtjax.io.options import Options, Part
from irtjax.io.rows import Rows, explained
from irtjax.io.values import responses_of

__all__ = ["json_text", "read_pyirt"]


def read_pyirt(path: Path, options: Options) -> Part:
    """Read one model a line; null is missing, and so is an item that a line leaves out.

    Raises:
        InputError: a line without `subject_id` or `responses`, an unknown value, a repeated key.
    """
    check_readable(path)
    models: list[str] = []
    lines: list[int] = []
    sizes: list[int] = []
    items: list[str] = []
    values: list[str] = []
    for number, entry in json_lines(path, refuse_repeated_keys):
        model, responses = entry.get("subject_id"), entry.get("responses")
        if model in (None, "") or not isinstance(responses, Mapping):
            raise InputError(
                f"line {number} of {path} has no 'subject_id' with an object of 'responses'"
            )
        models.append(str(model))
        lines.append(number)
        sizes.append(len(responses))
        items.extend(responses)
        values.extend(json_text(value) for value in responses.values())
    if not items:
        raise InputError(f"{path} has no responses")
    line_of_row = np.repeat(np.arange(len(lines)), sizes)
    model_ids = encode_texts(models).take(line_of_row)
    item_ids = encode_texts(items)

    def place(row: int) -> Place:
        return Place("line", lines[line_of_row[row]], str(path))

    def explain(row: int) -> str:
        return explained(model_ids.text_at(row), items[row], place(row))

    if "" in set(items):
        raise InputError(f"item id is empty ({place(items.index(''))}); give each item an id")
    response = responses_of(encode_texts(values), explain)
    return Part(Rows(model_ids, item_ids, response, None, {}, place), {})


def json_text(value: object) -> str:
    """A JSON value as the text that a response is parsed from; null is empty."""
    return "" if value is None else str(value)

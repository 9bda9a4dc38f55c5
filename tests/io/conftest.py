"""Small files written by the tests, and what a refusal must look like."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from irtjax.data.responses import ResponseMatrix
from irtjax.errors import InputError
from irtjax.io import read_responses

Save = Callable[..., Path]
Refused = Callable[..., str]


@pytest.fixture
def save(tmp_path: Path) -> Save:
    """Write a file into the test's folder: text, bytes, or a list of objects as JSON Lines."""

    def write(content: str | bytes | list[Any], name: str = "r.csv") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, list):
            content = "".join(json.dumps(row) + "\n" for row in content)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


@pytest.fixture
def refused() -> Refused:
    """Read something that must be refused, with one line; returns the line."""

    def read(paths: Any, reader: Callable[..., Any] = read_responses, **settings: Any) -> str:
        with pytest.raises(InputError) as caught:
            reader(paths, **settings)
        message = str(caught.value)
        assert message
        assert len(message.splitlines()) == 1
        assert caught.value.__cause__ is None
        return message

    return read


@pytest.fixture
def cells_of() -> Callable[[ResponseMatrix], dict[tuple[str, str], float]]:
    """The observed cells of a matrix as (model, item) to response."""

    def cells(matrix: ResponseMatrix) -> dict[tuple[str, str], float]:
        dense = matrix.to_dense()
        return {
            (str(matrix.model_ids[i]), str(matrix.item_ids[j])): float(dense[i, j])
            for i, j in np.argwhere(dense >= 0)
        }

    return cells

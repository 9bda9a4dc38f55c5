"""Single values that a user gives: what they must be, and how messages show them.

The command line asks here before it needs NumPy, so NumPy's scalars are known by what they are:
they count as `numbers.Integral` and `numbers.Real`.
"""

import math
import numbers
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from irtjax.errors import InputError

__all__ = [
    "check_number",
    "check_path",
    "check_several",
    "check_text",
    "check_whole",
    "counted",
    "named_ids",
    "shown",
]

_LONGEST = 80
_SHOWN_IDS = 3


def shown(value: Any) -> str:
    """A value as a message shows it: on one line, not too long, NumPy's scalars as plain numbers.

    >>> import numpy as np
    >>> shown(np.int64(3)), shown("a"), shown(np.float32(0.5))
    ('3', "'a'", '0.5')
    """
    is_scalar = getattr(value, "shape", None) == () and hasattr(value, "item")
    text = " ".join(repr(value.item() if is_scalar else value).split())
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "..."


def counted(count: int, noun: str, plural: str = "") -> str:
    """A number of things in words.

    >>> counted(1, "item"), counted(2000, "item"), counted(0, "index", "indices")
    ('1 item', '2,000 items', '0 indices')
    """
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def named_ids(ids: Any, most: int = _SHOWN_IDS) -> str:
    """The first ids of an array or list, as a message names them.

    >>> named_ids(["a", "b", "c", "d"]), named_ids(["a", "b"], 1)
    ("'a', 'b', 'c', ...", "'a'")
    """
    text = ", ".join(repr(str(each)) for each in ids[:most])
    return f"{text}, ..." if len(ids) > most > 1 else text


def check_whole(
    what: str, value: Any, least: int | None = None, most: int | None = None, remedy: str = ""
) -> int:
    """A whole number within its bounds, as Python's own integer.

    Args:
        what: its name, as the message starts.
        value: as given; booleans, text and floats are no whole numbers.
        least: smallest that is allowed.
        most: largest that is allowed.
        remedy: what to do, as the message ends.

    Raises:
        InputError: it is none, or out of bounds.
    """
    is_whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not is_whole or not _is_within(value, least, most):
        raise _error(what, "a whole number", value, least, most, remedy)
    return int(value)


def check_number(
    what: str,
    value: Any,
    least: float | None = None,
    most: float | None = None,
    remedy: str = "",
) -> float:
    """A finite number within its bounds, as Python's own float; arguments as of `check_whole`.

    Raises:
        InputError: it is none, or out of bounds.
    """
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    try:
        number = float(value) if is_number else math.nan
    except OverflowError:  # of a whole number
        number = math.inf
    if not math.isfinite(number) or not _is_within(value, least, most):
        raise _error(what, "a number", value, least, most, remedy)
    return number


def check_text(what: str, value: Any) -> str:
    """Text, for a name or a path.

    Raises:
        InputError: something else.
    """
    if not isinstance(value, str):
        raise InputError(f"{what} must be text, not {shown(value)}")
    return value


def check_several(what: str, values: Any) -> list[Any]:
    """Several of something; a text would be taken letter by letter.

    Raises:
        InputError: one text, or nothing that has elements.
    """
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise InputError(f"{what} must be a list, not {shown(values)}")
    return list(values)


def check_path(what: str, value: Any) -> Path:
    """A path, given as text or as one.

    Raises:
        InputError: something else, or no text.
    """
    if not isinstance(value, str | os.PathLike) or not os.fspath(value):
        raise InputError(f"{what} must be a path, not {shown(value)}")
    return Path(value)


def _is_within(value: Any, least: float | None, most: float | None) -> bool:
    return (least is None or bool(value >= least)) and (most is None or bool(value <= most))


def _error(
    what: str, kind: str, value: Any, least: float | None, most: float | None, remedy: str
) -> InputError:
    low, high = (each if isinstance(each, int) else f"{each or 0:g}" for each in (least, most))
    if least is not None:
        bounds = f" of at least {low}" if most is None else f" from {low} to {high}"
    else:
        bounds = "" if most is None else f" of at most {high}"
    ending = f"; {remedy}" if remedy else ""
    return InputError(f"{what} must be {kind}{bounds}, not {shown(value)}{ending}")

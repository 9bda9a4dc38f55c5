"""What a response or a weight may be, and what is done with a fraction."""

import dataclasses
import math
import re
from collections import Counter
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from irtjax.errors import InputError
from irtjax.io.coded import Coded
from irtjax.io.files import quoted

__all__ = [
    "BAD",
    "REMEDY",
    "FractionalPolicy",
    "apply_fractional",
    "numbers_of",
    "responses_of",
    "weights_of",
]

# What pandas, R, Python and JSON themselves write for a missing value, and nothing else:
# a sentinel like -1, -9 or "missing" is refused, because the next file's may mean something.
MISSING_TEXTS = frozenset({"", "nan", "null", "na", "none", "<na>"})
BAD = math.inf
REMEDY = "a response is 0, 1, true or false, and a missing one is empty (or NaN, null, NA)"
_WORDS = {"true": 1.0, "false": 0.0}
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_SHOWN_VALUES = 3
_SMALLEST_WEIGHT = float(np.finfo(np.float32).tiny)
_LARGEST_WEIGHT = float(np.finfo(np.float32).max)
_COUNT_TOLERANCE = 1e-6  # float32 rounding of k / n, times n


@dataclasses.dataclass(frozen=True)
class FractionalPolicy:
    """What to do with a response between 0 and 1: `error`, `likelihood` or `threshold=T`."""

    kind: str
    threshold: float = math.nan

    @classmethod
    def parse(cls, text: str) -> "FractionalPolicy":
        """Read the setting of `--fractional`.

        >>> FractionalPolicy.parse("threshold=0.5")
        FractionalPolicy(kind='threshold', threshold=0.5)
        """
        if text in ("error", "likelihood"):
            return cls(text)
        kind, _, number = str(text).partition("=")
        if kind == "threshold" and _NUMBER.fullmatch(number) and 0 < float(number) <= 1:
            return cls(kind, float(number))
        raise InputError(
            f"--fractional is error, likelihood or threshold=T with T in (0, 1], not {quoted(text)}"
        )


def numbers_of(values: pa.Array) -> np.ndarray:
    """Distinct raw values as numbers: [0, 1], NaN where missing, `BAD` where neither.

    Args:
        values: booleans, numbers or text, of any flat Arrow type.
    """
    kind = values.type
    if pa.types.is_boolean(kind):
        return np.array(values.to_pylist(), float)
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        numbers = values.to_numpy(zero_copy_only=False).astype(float)
        return np.where((numbers >= 0) & (numbers <= 1) | np.isnan(numbers), numbers, BAD)
    return np.array([_number_of(str(value)) for value in values.to_pylist()], float)


def _number_of(text: str) -> float:
    text = text.strip()
    word = text.lower()
    if word in MISSING_TEXTS:
        return math.nan
    if word in _WORDS:
        return _WORDS[word]
    if not _NUMBER.fullmatch(text):
        return BAD
    number = float(text)
    return abs(number) if 0 <= number <= 1 else BAD


def responses_of(column: Coded, explain: Callable[[int], str]) -> np.ndarray:
    """The responses of a column, float64, NaN where missing.

    Args:
        column: raw values, a code a row.
        explain: says which model, item and place a row is.

    Raises:
        InputError: a value that is not in [0, 1] and not missing.
    """
    table = np.append(numbers_of(column.values), math.nan)
    responses = table[column.codes]
    bad = np.flatnonzero(np.isinf(responses))
    if len(bad):
        raise InputError(_bad_values(column, bad, explain))
    return responses


def _bad_values(column: Coded, bad: np.ndarray, explain: Callable[[int], str]) -> str:
    texts = column.texts()
    counts = Counter(texts[code] for code in column.codes[bad].tolist())
    first = texts[column.codes[bad[0]]]
    several = ""
    if len(bad) > 1:
        shown = ", ".join(f"{quoted(t)} x {n:,}" for t, n in counts.most_common(_SHOWN_VALUES))
        dots = ", ..." if len(counts) > _SHOWN_VALUES else ""
        several = f"; {len(bad):,} responses are like this ({shown}{dots})"
    return f"response {quoted(first)} of {explain(int(bad[0]))} is not usable{several}; {REMEDY}"


def weights_of(column: Coded, responses: np.ndarray, explain: Callable[[int], str]) -> np.ndarray:
    """The weights of a column, float64; those of missing responses are 1.

    Raises:
        InputError: a weight that is not a positive finite number.
    """
    table = np.array([_weight_of(text) for text in column.texts()] + [math.nan])
    weights = np.where(np.isnan(responses), 1.0, table[column.codes])
    bad = np.flatnonzero(np.isnan(weights))
    if len(bad):
        k = int(bad[0])
        more = f"; {len(bad):,} weights are like this" if len(bad) > 1 else ""
        raise InputError(
            f"weight {quoted(column.text_at(k))} of {explain(k)} is not a positive number{more}; "
            "give each response a weight, or drop the column"
        )
    return weights


def _weight_of(text: str) -> float:
    text = text.strip()
    number = float(text) if _NUMBER.fullmatch(text) else math.nan
    # Weights are kept in float32: what underflows or overflows there is refused, not rounded.
    return number if _SMALLEST_WEIGHT <= number <= _LARGEST_WEIGHT else math.nan


def apply_fractional(
    responses: np.ndarray,
    weights: np.ndarray | None,
    policy: FractionalPolicy,
    explain: Callable[[int], str],
) -> tuple[np.ndarray, int]:
    """Apply the policy to the responses strictly between 0 and 1.

    A fraction k / n with the whole number n >= 2 as its weight is a count of trials, not a
    fractional score, and stays.

    Args:
        responses: values in [0, 1]; NaN or negative where missing.
        weights: of the same shape, or None when all are 1.
        policy: what to do.
        explain: says which model, item and place a flat index is.

    Returns:
        The responses and how many fractions there were.

    Raises:
        InputError: there are fractions and the policy is `error`.
    """
    is_fraction = (responses > 0) & (responses < 1)
    if weights is not None and is_fraction.any():
        is_fraction &= ~_is_count(responses, weights)
    n_fractions = int(np.count_nonzero(is_fraction))
    if n_fractions == 0 or policy.kind == "likelihood":
        return responses, n_fractions
    if policy.kind == "error":
        first = int(np.flatnonzero(is_fraction)[0])
        value = float(responses.flat[first])
        n_observed = int(np.count_nonzero(responses >= 0))
        raise InputError(
            f"{n_fractions:,} of {n_observed:,} responses are fractions, the first {value:.6g} of "
            f"{explain(first)}; pass --fractional threshold=0.5 (that much or more is right) or "
            "--fractional likelihood (keep them)"
        )
    # In float32 on both sides: 0.7 stored as float32 reaches the threshold 0.7.
    is_right = np.float32(responses) >= np.float32(policy.threshold)
    return np.where(is_fraction, is_right.astype(responses.dtype), responses), n_fractions


def _is_count(responses: np.ndarray, weights: np.ndarray) -> np.ndarray:
    whole = (weights >= 2) & (weights == np.rint(weights))
    right = responses.astype(float) * weights
    return whole & (np.abs(right - np.rint(right)) <= _COUNT_TOLERANCE * weights)

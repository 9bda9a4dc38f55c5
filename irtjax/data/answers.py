"""`Answers`: which option each model gave, and which option the key names."""

import dataclasses
import warnings
from typing import Any

import numpy as np
import pandas as pd

from irtjax.checks import counted, shown
from irtjax.data.responses import ResponseMatrix
from irtjax.errors import InputError, IrtjaxWarning

__all__ = ["KEY", "NO_CELL", "UNKNOWN", "Answers", "coded_answers"]

COLUMNS = ("model_id", "item_id", "answer", "key")
KEY = 0  # the option that the key names
UNKNOWN = -1  # wrong, and not known which option
NO_CELL = -2
# As many distinct answers at most, over all items, are the options of multiple choice, and an item
# may have options that nobody chose. More are free answers.
_MOST_OPTIONS = 26
# Share of the right responses whose answer may differ from the key before a warning: a judge
# accepts 1/2 for 0.5.
_CONTRADICTIONS = 0.01


@dataclasses.dataclass(frozen=True, eq=False)
class Answers:
    """Coded answers in the order of a response matrix.

    Attributes:
        code: int16, models x items: `KEY`, 1, 2, ... for the other options of the item in order
            of appearance, `UNKNOWN`, or `NO_CELL`.
        n_options: items, int32: options that an item has at least, the key included.
        has_key: items, bool: the others have no answers and are judged by responses only.
        options: items, of tuples: texts of the options by code.
        is_answered: models x items, bool: False where all that is known is a response; None says
            that it is so at `UNKNOWN` only.
    """

    code: np.ndarray
    n_options: np.ndarray
    has_key: np.ndarray
    options: list[tuple[str, ...]]
    is_answered: np.ndarray | None = None


def coded_answers(table: Any, data: ResponseMatrix) -> Answers:
    """Answers of a table in the order of the responses.

    A right response stands for the key's option, whatever the answer's text (a judge accepts 1/2
    for 0.5) or without one; a wrong one without an answer, or whose answer is the key's text, is
    of an unknown option. Answers without a response count as they are.

    Args:
        table: columns `model_id`, `item_id`, `answer` (missing allowed), `key`.
        data: the responses.

    Raises:
        InputError: a missing column, a pair twice, two keys of an item, no pair of the data.
    """
    table = _checked_table(table)
    model = pd.Index(data.model_ids).get_indexer(table["model_id"].astype(str))
    item = pd.Index(data.item_ids).get_indexer(table["item_id"].astype(str))
    is_known = (model >= 0) & (item >= 0)
    if not is_known.any():
        raise InputError(
            "none of the answers is of a model and an item of the fit; the first is of "
            f"{shown(table['model_id'].iloc[0])} to {shown(table['item_id'].iloc[0])}"
        )
    if not is_known.all():
        _warn(f"{counted(int(np.sum(~is_known)), 'answer')} of other models or items left out")
    table, model, item = table[is_known], model[is_known], item[is_known]
    _refuse_repeated(table, model, item, data)
    option, options = _options(table, item, data)
    code = _codes(data, model, item, option)
    is_answered = np.zeros(code.shape, bool)
    is_answered[model, item] = option != UNKNOWN
    has_key = np.array([len(each) > 0 for each in options])
    seen = np.array([len(each) for each in options], np.int32)
    n_distinct = len({text for each in options for text in each})
    # One that nobody chose may always be there, unless all letters are known.
    least = n_distinct if n_distinct <= _MOST_OPTIONS else seen + 1
    n_options = np.maximum(np.maximum(seen, least), 2).astype(np.int32)
    return Answers(code, n_options, has_key, options, is_answered)


def _checked_table(table: Any) -> pd.DataFrame:
    if not isinstance(table, pd.DataFrame):
        raise InputError(
            f"answers must be a data frame with the columns {', '.join(COLUMNS)}, not "
            f"{type(table).__name__}; read_answers reads one from a file"
        )
    for column in COLUMNS:
        if column not in table:
            raise InputError(f"answers need a column {column!r}; columns: {', '.join(COLUMNS)}")
    if not len(table):
        raise InputError("the table of answers has no rows")
    for column in ("model_id", "item_id"):
        if table[column].isna().any():
            row = int(np.flatnonzero(table[column].isna().to_numpy())[0])
            raise InputError(f"{column} of row {row + 1} of the answers is empty")
    return table[list(COLUMNS)].reset_index(drop=True)


def _refuse_repeated(
    table: pd.DataFrame, model: np.ndarray, item: np.ndarray, data: ResponseMatrix
) -> None:
    cell = model.astype(np.int64) * data.n_items + item
    order = np.argsort(cell, kind="stable")
    same = np.flatnonzero(cell[order][1:] == cell[order][:-1])
    if len(same):
        row = table.iloc[int(order[same[0] + 1])]
        raise InputError(
            f"model {shown(row['model_id'])} has two answers to item {shown(row['item_id'])}; "
            "keep one of them"
        )


def _options(
    table: pd.DataFrame, item: np.ndarray, data: ResponseMatrix
) -> tuple[np.ndarray, list[tuple[str, ...]]]:
    """Code of each answer within its item, the key 0; and the items' options by code."""
    keys = _keys(table, item, data)
    has_key = np.array([key is not None for key in keys])
    answer = table["answer"].astype("str").str.strip()
    is_answer = (table["answer"].notna() & (answer != "")).to_numpy() & has_key[item]
    keyed = np.flatnonzero(has_key)
    # Keys first: they are the first option of their item, answered or not.
    texts = [keys[j] for j in keyed.tolist()] + answer[is_answer].tolist()
    text, vocabulary = pd.factorize(np.array(texts, object))
    pair = np.concatenate([keyed, item[is_answer]]).astype(np.int64) * len(vocabulary) + text
    distinct, first, which = np.unique(pair, return_index=True, return_inverse=True)
    owner = distinct // len(vocabulary)
    order = np.lexsort((first, owner))
    starts = np.searchsorted(owner, np.arange(data.n_items))
    rank = np.empty(len(distinct), np.int16)
    rank[order] = np.arange(len(distinct)) - starts[owner]
    option = np.full(len(table), UNKNOWN, np.int16)
    option[is_answer] = rank[which[len(keyed) :]]
    names = vocabulary[(distinct % len(vocabulary))[order]]
    ends = np.append(starts[1:], len(distinct))
    return option, [tuple(names[a:b]) for a, b in zip(starts, ends, strict=True)]


def _keys(table: pd.DataFrame, item: np.ndarray, data: ResponseMatrix) -> list[str | None]:
    """The key of each item, None where no row says one."""
    stated = pd.DataFrame({"item": item, "key": table["key"].to_numpy()}).dropna()
    stated = stated.assign(key=stated["key"].astype(str).str.strip())
    stated = stated[stated["key"] != ""].drop_duplicates()
    twice = stated["item"].duplicated()
    if twice.any():
        j = int(stated["item"][twice].iloc[0])
        both = stated["key"][stated["item"] == j].tolist()
        raise InputError(
            f"item {shown(data.item_ids[j])} has two keys, {shown(both[0])} and {shown(both[1])}; "
            "give each item one"
        )
    keys: list[str | None] = [None] * data.n_items
    for j, key in zip(stated["item"].tolist(), stated["key"].tolist(), strict=True):
        keys[j] = key
    return keys


def _codes(
    data: ResponseMatrix, model: np.ndarray, item: np.ndarray, option: np.ndarray
) -> np.ndarray:
    """The matrix of codes, with what the responses say."""
    code = np.full((data.n_models, data.n_items), NO_CELL, np.int16)
    code[model, item] = option
    cells = data.cells()
    row, column = cells.model_index, cells.item_index
    said = code[row, column]
    is_right, is_wrong = cells.response == 1, cells.response == 0
    n_other = int(np.sum(is_right & (said > KEY)))
    n_denied = int(np.sum(is_wrong & (said == KEY)))
    if n_other > _CONTRADICTIONS * max(np.sum(is_right), 1) or n_denied:
        _warn(
            f"{counted(n_other, 'right response')} with another answer than the key, "
            f"{counted(n_denied, 'wrong response')} with the key's; the responses are believed"
        )
    said = np.where(is_right, KEY, said)
    said = np.where(is_wrong & ((said == KEY) | (said == NO_CELL)), UNKNOWN, said)
    code[row, column] = said
    return code


def _warn(text: str) -> None:
    warnings.warn(f"answers: {text}", IrtjaxWarning, stacklevel=3)

"""`Answers`: which option each model gave, and which option the key names."""

import dataclasses
import re
import warnings
from collections.abc import Callable
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
# Free answers that are not known may each be one more option, up to so many in all.
_USUAL_OPTIONS = 10
# Share of the right responses whose answer may differ from the key before a warning: a judge
# accepts 1/2 for 0.5.
_CONTRADICTIONS = 0.01
# Where as large a share of so many contradict the key, the answers are coded otherwise than it.
_OTHER_CODING, _FEWEST_JUDGED = 0.9, 20
_WHOLE = re.compile(r"([+-]?\d+)\.0+")


@dataclasses.dataclass(frozen=True, eq=False)
class Answers:
    """Coded answers in the order of a response matrix.

    Attributes:
        code: int16, models x items: `KEY`, 1, 2, ... for the other options of the item in order
            of appearance, `UNKNOWN`, or `NO_CELL`.
        n_options: items, int32: options that an item has at least, the key included.
        has_key: items, bool: the others have no answers.
        options: items, of tuples: texts of the options by code.
        is_answered: models x items, bool: False where all that is known is a response; None says
            that it is so at `UNKNOWN` only.
    """

    code: np.ndarray
    n_options: np.ndarray
    has_key: np.ndarray
    options: list[tuple[str, ...]]
    is_answered: np.ndarray | None = None

    @property
    def is_telling(self) -> np.ndarray:
        """Items, bool: whether the answers say more than the responses, which options are wrong.

        Without any wrong option by name, an item tells no more than its responses; one that all
        models have right does, if the answers to others show what wrong ones look like.
        """
        names_wrong = (self.code > KEY).any(axis=0)
        has_gaps = (self.code == UNKNOWN).any(axis=0)
        return self.has_key & (names_wrong | (~has_gaps & names_wrong.any()))

    @property
    def is_judged(self) -> np.ndarray:
        """Items, bool: those with a key, if any of the answers are telling."""
        return self.has_key & self.is_telling.any()


def coded_answers(table: Any, data: ResponseMatrix) -> Answers:
    """Answers of a table in the order of the responses.

    A right response stands for the key's option, whatever the answer's text (a judge accepts 1/2
    for 0.5) or without one; a wrong one without an answer, or whose answer is the key's text, is
    of an unknown option. Answers without a response count as they are. Where no answer names a
    wrong option a warning says that they are of no use. 3.0 is 3, and `a` is `A`
    where no two keys of the table differ by that alone.

    Args:
        table: columns `model_id`, `item_id`, `answer` (missing allowed), `key`.
        data: the responses.

    Raises:
        InputError: a missing column, a pair twice, two keys of an item, no pair of the data;
            answers coded otherwise than the keys: nearly all right responses have another answer
            than the key, or nearly all wrong ones the key's.
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
    code = _codes(data, model, item, option, options)
    is_answered = np.zeros(code.shape, bool)
    is_answered[model, item] = option != UNKNOWN
    has_key = np.array([len(each) > 0 for each in options])
    seen = np.array([len(each) for each in options], np.int32)
    n_distinct = len({text for each in options for text in each})
    # One that nobody chose may always be there, unless all letters are known.
    n_unknown = np.sum(code == UNKNOWN, axis=0)
    unseen = np.maximum(np.minimum(n_unknown + 1, _USUAL_OPTIONS - seen), 1)
    least = n_distinct if n_distinct <= _MOST_OPTIONS else seen + unseen
    n_options = np.maximum(np.maximum(seen, least), 2).astype(np.int32)
    coded = Answers(code, n_options, has_key, options, is_answered)
    if not coded.is_telling.any():
        what = "names a wrong option" if has_key.any() else "has a key"
        _warn(f"none of them {what}, so that keys are judged by the responses alone")
    return coded


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
    compared = _comparable(table["key"])
    keys = _keys(table, item, data, compared)
    has_key = np.array([key is not None for key in keys])
    answer = table["answer"].astype("str").str.strip()
    is_answer = (table["answer"].notna() & (answer != "")).to_numpy() & has_key[item]
    keyed = np.flatnonzero(has_key)
    # Keys first: they are the first option of their item, answered or not.
    texts = [keys[j] for j in keyed.tolist()] + answer[is_answer].tolist()
    spelling, spelt = pd.factorize(np.array(texts, object))
    meaning, plain = pd.factorize(np.array([compared(each) for each in spelt], object))
    text, vocabulary = meaning[spelling], spelt[np.unique(meaning, return_index=True)[1]]
    pair = np.concatenate([keyed, item[is_answer]]).astype(np.int64) * len(plain) + text
    distinct, first, which = np.unique(pair, return_index=True, return_inverse=True)
    owner = distinct // len(plain)
    order = np.lexsort((first, owner))
    starts = np.searchsorted(owner, np.arange(data.n_items))
    rank = np.empty(len(distinct), np.int16)
    rank[order] = np.arange(len(distinct)) - starts[owner]
    option = np.full(len(table), UNKNOWN, np.int16)
    option[is_answer] = rank[which[len(keyed) :]]
    names = vocabulary[(distinct % len(plain))[order]]
    ends = np.append(starts[1:], len(distinct))
    return option, [tuple(names[a:b]) for a, b in zip(starts, ends, strict=True)]


def _comparable(keys: pd.Series) -> Callable[[str], str]:
    """What texts of options are compared by: whole numbers as such, and case where it matters."""
    stated = [_whole(each.strip()) for each in keys.dropna().astype(str).unique()]
    has_case = len(set(stated)) > len({each.casefold() for each in stated})
    return _whole if has_case else lambda text: _whole(text).casefold()


def _whole(text: str) -> str:
    """`3` for `3.0`; other texts as they are."""
    found = _WHOLE.fullmatch(text)
    return found[1] if found else text


def _keys(
    table: pd.DataFrame, item: np.ndarray, data: ResponseMatrix, compared: Callable[[str], str]
) -> list[str | None]:
    """The key of each item, None where no row says one."""
    stated = pd.DataFrame({"item": item, "key": table["key"].to_numpy()}).dropna()
    stated = stated.assign(key=stated["key"].astype(str).str.strip())
    stated = stated[stated["key"] != ""].drop_duplicates()
    stated = stated[~stated.assign(key=stated["key"].map(compared)).duplicated()]
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
    data: ResponseMatrix,
    model: np.ndarray,
    item: np.ndarray,
    option: np.ndarray,
    options: list[tuple[str, ...]],
) -> np.ndarray:
    """The matrix of codes, with what the responses say."""
    code = np.full((data.n_models, data.n_items), NO_CELL, np.int16)
    # A row without an answer and without a response says nothing.
    code[model, item] = np.where(option == UNKNOWN, NO_CELL, option)
    cells = data.cells()
    row, column = cells.model_index, cells.item_index
    said = code[row, column]
    is_right, is_wrong = cells.response == 1, cells.response == 0
    is_other, is_denied = is_right & (said > KEY), is_wrong & (said == KEY)
    if _is_most(is_other, is_right & (said >= KEY)):
        j, k = (int(each[np.argmax(is_other)]) for each in (column, said))
        raise InputError(
            f"answers: {int(is_other.sum()):,} of {int(np.sum(is_right & (said >= KEY))):,} right "
            f"responses have another answer than the key (item {shown(data.item_ids[j])}: answer "
            f"{shown(options[j][k])}, key {shown(options[j][KEY])}); write both alike, and "
            "check that the keys are those of these items"
        )
    if _is_most(is_denied, is_wrong & (said >= KEY)):
        raise InputError(
            f"answers: {int(is_denied.sum()):,} of {int(np.sum(is_wrong & (said >= KEY))):,} wrong "
            "responses have the key as their answer; column 'answer' must say which option each "
            "model chose"
        )
    n_other, n_denied = int(is_other.sum()), int(is_denied.sum())
    if n_other > _CONTRADICTIONS * max(np.sum(is_right), 1) or n_denied:
        _warn(
            f"{counted(n_other, 'right response')} with another answer than the key, "
            f"{counted(n_denied, 'wrong response')} with the key's; the responses are believed"
        )
    said = np.where(is_right, KEY, said)
    said = np.where(is_wrong & ((said == KEY) | (said == NO_CELL)), UNKNOWN, said)
    code[row, column] = said
    return code


def _is_most(contradicts: np.ndarray, judged: np.ndarray) -> bool:
    n = int(judged.sum())
    return n >= _FEWEST_JUDGED and int(contradicts.sum()) >= _OTHER_CODING * n


def _warn(text: str) -> None:
    warnings.warn(f"answers: {text}", IrtjaxWarning, stacklevel=3)

"""Answers in the order of a response matrix."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

from irtjax.data.answers import KEY, NO_CELL, UNKNOWN, Answers, coded_answers
from irtjax.data.responses import ResponseMatrix
from irtjax.errors import InputError, IrtjaxWarning

DATA = ResponseMatrix.from_dense(
    [[1, 0, 0], [0, 1, -1], [0, 0, 0]], model_ids=["a", "b", "c"], item_ids=["p", "q", "r"]
)


def table(rows):
    return pd.DataFrame(rows, columns=["model_id", "item_id", "answer", "key"])


GOOD = [
    ("a", "p", "B", "B"),
    ("b", "p", "C", "B"),
    ("c", "p", "A", "B"),
    ("a", "q", "x", "y"),
    ("b", "q", "y", "y"),
    ("c", "q", None, "y"),
]


def test_codes_the_key_first_and_others_by_appearance():
    answers = coded_answers(table(GOOD), DATA)
    expected = [[KEY, 1, UNKNOWN], [1, KEY, NO_CELL], [2, UNKNOWN, UNKNOWN]]
    assert answers.code.tolist() == expected
    assert answers.options == [("B", "C", "A"), ("y", "x"), ()]
    assert answers.has_key.tolist() == [True, True, False]
    # Five texts in all: options of multiple choice, some of which nobody chose.
    assert answers.n_options.tolist() == [5, 5, 5]


def test_the_order_of_the_rows_changes_names_only():
    first = coded_answers(table(GOOD), DATA)
    second = coded_answers(table(GOOD[::-1]), DATA)
    for j in range(3):
        for i in range(3):
            one, other = first.code[i, j], second.code[i, j]
            assert (one > 0) == (other > 0)
            if one > 0:
                assert first.options[j][one] == second.options[j][other]


def test_free_answers_leave_room_for_one_that_nobody_gave():
    rows = [("a", "p", "0", "k"), *((f"m{k}", "p", str(k), "k") for k in range(40))]
    data = ResponseMatrix.from_dense(
        np.zeros((41, 1), np.int8), model_ids=["a", *(f"m{k}" for k in range(40))], item_ids=["p"]
    )
    assert coded_answers(table(rows), data).n_options.tolist() == [42]


def test_free_answers_that_are_not_known_may_be_options():
    items = [f"i{k}" for k in range(30)]
    data = ResponseMatrix.from_dense(
        np.zeros((20, 30), np.int8), model_ids=[f"m{k}" for k in range(20)], item_ids=items
    )
    rows = [("m0", item, f"{item}x", f"{item}y") for item in items]
    rows += [(f"m{k}", "i0", f"other {k}", "i0y") for k in range(1, 18)]
    rows += [(f"m{k}", "i1", "i1x", "i1y") for k in range(1, 17)]
    # All but 2 models' are known, all but 3's, and one of 20.
    assert coded_answers(table(rows), data).n_options[:3].tolist() == [20, 6, 10]


def test_a_row_without_answer_and_response_says_nothing():
    rows = [("b", "r", None, "k"), ("a", "r", "x", "k")]
    assert coded_answers(table(rows), DATA).code[:, 2].tolist() == [1, NO_CELL, UNKNOWN]


def test_what_names_no_wrong_option_tells_nothing():
    answers = coded_answers(table(GOOD), DATA)
    assert answers.is_telling.tolist() == [True, True, False]
    # All of an item's responses are known, or one is of an unknown option.
    code = np.array([[KEY, KEY, 1, KEY], [KEY, UNKNOWN, UNKNOWN, KEY]], np.int16)
    has_key = np.array([True, True, True, False])
    some = Answers(code, np.full(4, 3, np.int32), has_key, [("A",)] * 4)
    assert some.is_telling.tolist() == [True, False, True, False]
    assert some.is_judged.tolist() == has_key.tolist()
    none = dataclasses.replace(some, code=np.minimum(code, KEY))
    assert not none.is_telling.any()
    assert not none.is_judged.any()


@pytest.mark.parametrize(
    "keep, what",
    [("key", "names a wrong option"), ("answer", "has a key"), ("right", "names a wrong option")],
)
def test_answers_that_tell_nothing_are_warned_of(keep, what):
    rows = table(GOOD)
    if keep == "right":
        rows.loc[rows["answer"] != rows["key"], "answer"] = None
    else:
        rows["key" if keep == "answer" else "answer"] = None
    with pytest.warns(IrtjaxWarning, match=f"none of them {what}, so that keys are judged by"):
        answers = coded_answers(rows, DATA)
    assert not answers.is_judged.any()


def test_responses_are_believed():
    rows = [("a", "p", "1/2", "0.5"), ("b", "p", "0.5", "0.5"), ("c", "p", "2", "0.5")]
    with pytest.warns(IrtjaxWarning, match="1 right response with another answer than the key, 1"):
        answers = coded_answers(table(rows), DATA)
    assert answers.code[:2, 0].tolist() == [KEY, UNKNOWN]


def test_whole_numbers_and_letters_are_compared_as_such():
    same = [(m, j, {"B": "2.0", "C": "3", "A": "a"}.get(a, a), k) for m, j, a, k in GOOD]
    same = [(m, j, a, {"B": "2"}.get(k, k)) for m, j, a, k in same]
    answers = coded_answers(table(same), DATA)
    assert answers.code.tolist() == coded_answers(table(GOOD), DATA).code.tolist()
    assert answers.options == [("2", "3", "a"), ("y", "x"), ()]
    lower = [(m, j, a and a.lower(), k) for m, j, a, k in GOOD]
    found = coded_answers(table(lower), DATA)
    assert found.code.tolist() == answers.code.tolist()
    assert found.options[0] == ("B", "c", "a")
    # Where keys differ by case alone, so do the options.
    apart = [("a", "p", "A", "A"), ("b", "p", "a", "A"), ("a", "q", "x", "a")]
    assert coded_answers(table(apart), DATA).options[0] == ("A", "a")
    # Rows that spell one key in two ways agree.
    twice = coded_answers(table([("a", "p", "3", "3.0"), ("b", "p", "4", "3")]), DATA)
    assert twice.code[:2, 0].tolist() == [KEY, 1]


@pytest.mark.parametrize(
    "coded, said",
    [
        (
            lambda y: ("H", "I"),
            "20 of 20 right responses have another answer than the key (item 'i",
        ),
        (lambda y: ("B", "B"), "20 of 20 wrong responses have the key as their answer"),
    ],
)
def test_answers_coded_otherwise_than_the_keys_are_refused(coded, said):
    y = np.array([[0, 1] * 20], np.int8)
    ids = [f"i{k}" for k in range(40)]
    data = ResponseMatrix.from_dense(y, model_ids=["a"], item_ids=ids)
    rows = [("a", name, *coded(each)) for name, each in zip(ids, y[0], strict=True)]
    with pytest.raises(InputError) as refused:
        coded_answers(table(rows), data)
    assert said in str(refused.value)
    # A tenth of them may be a judge's doing.
    for k in range(10):
        rows[k] = ("a", ids[k], "I" if y[0, k] else "Z", "I")
    with pytest.warns(IrtjaxWarning, match="the responses are believed"):
        coded_answers(table(rows), data)


def test_answers_of_others_are_left_out_with_a_count():
    with pytest.warns(IrtjaxWarning, match="1 answer of other models or items"):
        coded_answers(table([*GOOD, ("z", "p", "B", "B")]), DATA)


@pytest.mark.parametrize(
    "given, said",
    [
        (None, "data frame"),
        (table([]), "no rows"),
        (table(GOOD).drop(columns="key"), "column 'key'"),
        (table([("z", "p", "B", "B")]), "none of the answers"),
        (table([GOOD[0], GOOD[0]]), "two answers"),
        (table([GOOD[0], ("b", "p", "C", "A")]), "two keys, 'B' and 'A'"),
        (table([(None, "p", "B", "B")]), "row 1"),
    ],
)
def test_bad_answers(given, said):
    with pytest.raises(InputError, match=said) as caught:
        coded_answers(given, DATA)
    assert len(str(caught.value).splitlines()) == 1

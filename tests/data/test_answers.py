"""Answers in the order of a response matrix."""

import numpy as np
import pandas as pd
import pytest

from irtjax.data.answers import KEY, NO_CELL, UNKNOWN, coded_answers
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


def test_responses_are_believed():
    rows = [("a", "p", "1/2", "0.5"), ("b", "p", "0.5", "0.5")]
    with pytest.warns(IrtjaxWarning, match="1 right response with another answer than the key, 1"):
        answers = coded_answers(table(rows), DATA)
    assert answers.code[:2, 0].tolist() == [KEY, UNKNOWN]


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

"""Items by value: sorted, under quotas as good as the integer program, several columns by it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from irtjax.errors import InputError
from irtjax.select.quotas import Quotas, check_possible
from irtjax.select.ranked import best_first, best_set

N_GROUPS = 3


@st.composite
def problems(draw):
    n = draw(st.integers(6, 20))
    group = np.array(draw(st.lists(st.integers(0, N_GROUPS - 1), min_size=n, max_size=n)))
    value = np.array(draw(st.lists(st.integers(0, 9), min_size=n, max_size=n)), float)
    least = np.array([draw(st.integers(0, 3)) for _ in range(N_GROUPS)])
    most = least + np.array([draw(st.integers(0, 5)) for _ in range(N_GROUPS)])
    budget = draw(st.integers(1, n))
    return value, Quotas("kind", group, list("abc"), least, most), budget


@given(problems())
def test_under_one_column_the_greedy_sum_is_the_best_there_is(problem):
    value, quotas, budget = problem
    try:
        check_possible(quotas, budget)
    except InputError:
        with pytest.raises(InputError, match=r"no .* items keep the quotas"):
            best_set(value, [quotas], budget)
        return
    chosen = best_first(value, quotas, budget)
    assert len(set(chosen)) == budget
    count = np.bincount(quotas.group[chosen], minlength=N_GROUPS)
    assert (count >= quotas.least).all()
    assert (count <= quotas.most).all()
    assert value[chosen].sum() == pytest.approx(value[best_set(value, [quotas], budget)].sum())


def test_equal_values_go_by_position():
    quotas = Quotas("", np.zeros(5, int), [""], np.zeros(1, int), np.array([5]))
    assert best_first(np.array([1.0, 2, 1, 2, 1]), quotas, 4).tolist() == [1, 3, 0, 2]


def test_several_columns_bind_together():
    value = np.array([9.0, 8, 7, 6, 5, 4])
    one = Quotas(
        "one", np.array([0, 0, 0, 1, 1, 1]), ["a", "b"], np.zeros(2, int), np.array([2, 1])
    )
    two = Quotas(
        "two", np.array([0, 0, 1, 0, 1, 1]), ["c", "d"], np.zeros(2, int), np.array([1, 2])
    )
    # 0 and 2 of `a`, then of `b` one that is `d`.
    assert best_set(value, [one, two], 3).tolist() == [0, 2, 4]

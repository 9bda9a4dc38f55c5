"""Values that a user gives: what is taken as a number, and how messages show the rest."""

import numpy as np
import pytest

from irtjax.checks import check_number, check_text, check_whole, shown
from irtjax.errors import InputError


@pytest.mark.parametrize("value", [3, np.int8(3), np.int64(3)])
def test_whole_numbers_become_plain(value):
    assert check_whole("n", value, 1, 5) == 3
    assert type(check_whole("n", value)) is int


@pytest.mark.parametrize("value", [3, 3.0, np.float32(3), np.int64(3)])
def test_numbers_become_plain(value):
    assert type(check_number("x", value, 3, 3)) is float


@pytest.mark.parametrize("value", ["3", None, True, 2.5, 3.0, np.float64(3), [3], np.array([3, 4])])
def test_what_is_no_whole_number_is_refused(value):
    with pytest.raises(
        InputError, match=r"^n must be a whole number of at least 1, not "
    ) as caught:
        check_whole("n", value, 1)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("value", ["3", None, False, float("nan"), np.float32("inf"), [1.0], 1j])
def test_what_is_no_number_is_refused(value):
    with pytest.raises(InputError, match=r"^x must be a number, not "):
        check_number("x", value)


def test_bounds_and_remedy_are_told():
    with pytest.raises(
        InputError, match=r"^n must be a whole number from 0 to 4294967295, not -1$"
    ):
        check_whole("n", np.int64(-1), 0, 2**32 - 1)
    with pytest.raises(
        InputError, match=r"^n must be a number of at most 0.5, not 0.75; halve it$"
    ):
        check_number("n", np.float32(0.75), most=0.5, remedy="halve it")


def test_text_is_text():
    assert check_text("group", "benchmark") == "benchmark"
    with pytest.raises(InputError, match=r"^group must be text, not \['benchmark'\]$"):
        check_text("group", ["benchmark"])


def test_values_are_shown_on_one_short_line():
    assert shown(np.float64("nan")) == "nan"
    assert shown("two\nlines") == r"'two\nlines'"
    assert len(shown(np.zeros((99, 99)))) < 100
    assert "\n" not in shown(np.zeros((9, 9)))

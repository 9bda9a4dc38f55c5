"""Values that are equal up to rounding count as equal."""

import numpy as np

from irtjax.score.ties import TIED, first_of_equals, least_equal


def test_values_that_are_equal_up_to_rounding_are_the_largest_of_them():
    value = np.array([1.0, 3.0, 1.0 + TIED / 2, 2.0, -5.0, -5.0 - 2 * TIED, 0.0, 1e-9])
    found = first_of_equals(value)
    np.testing.assert_array_equal(found, [value[2], 3, value[2], 2, -5, -5, 0, 1e-9])
    assert np.argsort(-found, kind="stable").tolist() == [1, 3, 0, 2, 7, 6, 4, 5]
    np.testing.assert_array_equal(first_of_equals(found), found)


def test_the_least_equal_is_below_the_best_whatever_its_sign():
    for best in (2.0, -2.0):
        assert best - 3 * TIED < least_equal(best) < best

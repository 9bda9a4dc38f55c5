"""Discovery rates against loops, and where only the small p-values are at hand."""

import numpy as np
import pytest

from irtjax.audit.integrity.testing import discovery_rates


def rates_of(p):
    """Of each test: the least of `n p / (tests as unlikely)` over it and those less unlikely."""
    rates = [len(p) * each / np.sum(p <= each) for each in p]
    return np.array(
        [min(1, *(r for r, q in zip(rates, p, strict=True) if q >= each)) for each in p]
    )


@pytest.mark.parametrize("n_tests", [1, 7, 300])
def test_rates_are_benjamini_and_hochbergs(n_tests):
    p = np.random.default_rng(n_tests).random(n_tests) ** 3
    np.testing.assert_allclose(discovery_rates(p, n_tests), rates_of(p))


def test_large_p_values_need_not_be_given():
    p = np.sort(np.random.default_rng(0).random(300) ** 4)
    expected = rates_of(p)
    # The last of those given may profit from a later one: its rate is then an upper bound.
    found = discovery_rates(p[:100], len(p))
    assert (found >= expected[:100] - 1e-12).all()
    np.testing.assert_allclose(found[:50], expected[:50])


def test_no_tests_have_no_rates():
    assert discovery_rates(np.zeros(0), 0).shape == (0,)

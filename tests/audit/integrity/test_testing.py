"""Discovery rates against SciPy's, and where only the small p-values are at hand."""

import numpy as np
import pytest
from scipy.stats import false_discovery_control

from irtjax.audit.integrity.testing import discovery_rates


@pytest.mark.parametrize("n_tests", [1, 7, 300])
def test_rates_are_benjamini_and_hochbergs(n_tests):
    p = np.random.default_rng(n_tests).random(n_tests) ** 3
    np.testing.assert_allclose(discovery_rates(p, n_tests), false_discovery_control(p))


def test_large_p_values_need_not_be_given():
    p = np.sort(np.random.default_rng(0).random(300) ** 4)
    expected = false_discovery_control(p)
    # The last of those given may profit from a later one: its rate is then an upper bound.
    found = discovery_rates(p[:100], len(p))
    assert (found >= expected[:100] - 1e-12).all()
    np.testing.assert_allclose(found[:50], expected[:50])


def test_no_tests_have_no_rates():
    assert discovery_rates(np.zeros(0), 0).shape == (0,)

"""The cheap forms of the innermost expectations against the plain ones, in NumPy."""

import jax
import numpy as np
import pytest
from scipy.special import expit

from irtjax.fit import expectations
from tests.fit import reference
from tests.tolerances import close

expected_logistic = jax.jit(expectations.expected_logistic, static_argnums=2)
expected_softplus = jax.jit(expectations.expected_softplus, static_argnums=2)


@pytest.mark.oracle
@pytest.mark.parametrize("n_nodes", [4, 5, 9])
def test_expectations_are_gauss_hermite_sums(n_nodes):
    mean = np.concatenate([np.linspace(-12, 12, 101), [-300.0, 300.0]])
    variance = np.abs(np.sin(np.arange(len(mean)))) * 3
    variance[::7] = 0
    nodes, weights = reference.hermite(n_nodes)
    logit = mean + nodes[:, None] * np.sqrt(variance)
    known, curvature = expected_logistic(mean, variance, n_nodes)
    close(known, weights @ expit(logit))
    close(curvature, weights @ (expit(logit) * expit(-logit)))
    softplus = expected_softplus(mean, variance, n_nodes)
    close(softplus, weights @ np.logaddexp(0, logit), kind="reduction")


@pytest.mark.oracle
def test_extreme_logits_have_finite_values_and_gradients():
    for mean in (1e4, -1e4, 0.3):
        value, gradient = jax.value_and_grad(
            lambda m: expectations.expected_softplus(m, 0.01 + 0 * m, 5)
        )(mean)
        assert np.isfinite(value)
        np.testing.assert_allclose(gradient, expit(mean), rtol=1e-2)

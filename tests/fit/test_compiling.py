"""Programs compiled without fusion emitters give what others give."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from irtjax.fit import compiling
from irtjax.fit.compiling import compiled_soon


def _curve(scale, logit):
    return scale * jnp.log(jax.nn.sigmoid(logit)) @ jnp.ones(logit.shape[-1], logit.dtype)


@pytest.fixture
def forget():
    """Options are found anew, before and after."""
    compiling._known_options.cache_clear()
    compiling._jitted.cache_clear()
    yield
    compiling._known_options.cache_clear()
    compiling._jitted.cache_clear()


def test_it_is_the_same_function():
    logit = jnp.linspace(-50, 50, 4000).reshape(40, 100)
    soon = compiled_soon(0)(_curve)(2, logit)
    np.testing.assert_allclose(soon, jax.jit(_curve, static_argnums=0)(2, logit), rtol=1e-6)


def test_an_option_that_xla_does_not_know_is_left_out(forget, monkeypatch):
    monkeypatch.setattr(compiling, "_OPTIONS", {"xla_cpu_no_such_option": True})
    assert compiling._known_options() is None
    logit = jnp.linspace(-5, 5, 20).reshape(4, 5)
    found = compiled_soon(0)(_curve)(2, logit)
    np.testing.assert_allclose(found, _curve(2, logit), rtol=1e-6)


def test_the_option_is_known_here(forget):
    expected = {"xla_cpu_use_fusion_emitters": False} if jax.default_backend() == "cpu" else None
    assert compiling._known_options() == expected

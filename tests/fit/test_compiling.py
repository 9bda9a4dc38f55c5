"""Programs compiled without fusion emitters, or beside others, give what others give."""

import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from irtjax.data.responses import ResponseMatrix
from irtjax.fit import compiling
from irtjax.fit.compiling import compiled_beside, compiled_soon
from irtjax.model.spec import ModelSpec
from tests.fit.fitting import quiet_fit


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


@pytest.fixture
def compiled_by():
    """Names of the threads that compiled something, one for each program."""
    seen = []

    def listen(event, _duration, **_):
        if event == "/jax/core/compile/backend_compile_duration":
            seen.append(threading.current_thread().name)

    jax.monitoring.register_event_duration_secs_listener(listen)
    yield seen
    jax.monitoring.unregister_event_duration_listener(listen)


def test_what_was_compiled_beside_is_found_compiled(compiled_by):
    # A shape of its own: nothing else has compiled it.
    logit = jnp.asarray(np.linspace(-3, 3, 7 * 11 * 13, dtype=np.float32).reshape(7, -1))
    curve = jax.jit(_curve, static_argnums=0)
    compiled_by.clear()
    with compiled_beside(lambda: curve.lower(3, logit).compile()):
        pass
    found = curve(3, logit)
    assert len(compiled_by) == 1
    assert compiled_by[0].startswith("irtjax-compiling")
    np.testing.assert_allclose(found, _curve(3, logit), rtol=1e-6)


def test_a_program_that_fails_beside_fails_where_it_runs():
    with compiled_beside(lambda: jax.jit(_curve).lower("a", 1)):
        pass
    with pytest.raises(TypeError):
        jax.jit(_curve)("a", 1)


@pytest.mark.parametrize("is_x64", [False, True])
def test_what_was_compiled_beside_has_the_same_floats(compiled_by, is_x64):
    curve = jax.jit(_curve, static_argnums=0)
    with jax.enable_x64(is_x64):
        logit = jnp.asarray(np.linspace(-3, 3, 7 * 17).reshape(7, -1))
        compiled_by.clear()
        with compiled_beside(lambda: curve.lower(3, logit).compile()):
            pass
        assert curve(3, logit).dtype == (jnp.float64 if is_x64 else jnp.float32)
    assert len(compiled_by) == 1


def test_what_runs_beside_may_fail():
    ended = threading.Event()
    with pytest.raises(KeyboardInterrupt), compiled_beside(ended.set):
        raise KeyboardInterrupt
    assert ended.is_set()


@pytest.mark.parametrize("estimator", ["marginal-items", "marginal-models", "joint-map", "psn"])
def test_a_first_fit_compiles_its_end_in_another_thread(compiled_by, estimator):
    n_models, n_items = (311, 13) if estimator == "marginal-models" else (13, 311)
    rng = np.random.default_rng(0)
    dense = (rng.random((n_models, n_items)) < rng.uniform(0.2, 0.8, n_items)).astype(np.int8)
    data, asked = ResponseMatrix.from_dense(dense), {"estimator": estimator, "max_steps": 20}
    first = quiet_fit(data, ModelSpec("2pl"), **asked)
    assert any(name.startswith("irtjax-compiling") for name in compiled_by)
    n_compiled = len(compiled_by)
    again = quiet_fit(data, ModelSpec("2pl"), **asked)
    assert len(compiled_by) == n_compiled
    assert again.report["compile_seconds"] == 0 < first.report["compile_seconds"]
    np.testing.assert_array_equal(again.parameters.mean, first.parameters.mean)

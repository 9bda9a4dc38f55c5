"""The guard against a CPU compiler that computes wrong numbers."""

import jax
import jax.numpy as jnp
import jaxlib
import numpy as np
import pytest

from irtjax import compiler_check
from tests.tolerances import close


@pytest.fixture(autouse=True)
def _unchecked():
    compiler_check._check_cpu_compiler.cache_clear()
    yield
    compiler_check._check_cpu_compiler.cache_clear()


@pytest.mark.oracle
def test_weighted_sum_agrees_with_numpy_at_the_size_of_a_fit():
    """256 x 1,000 x 12 is where jaxlib 0.10.2 was found to be off by 27 (DESIGN section 3)."""
    rng = np.random.default_rng(1)
    dtype = jnp.zeros(()).dtype
    x = rng.normal(size=(256, 1000, 12)).astype(dtype)
    q = rng.normal(size=(256, 1000)).astype(dtype)
    w = rng.normal(size=(1000, 12)).astype(dtype)
    actual = jax.jit(lambda x, q, w: (w * x).sum(-1) + q)(x, q, w)
    close(actual, (w * x).sum(-1) + q, scale=10)


def test_this_compiler_passes_and_is_checked_once():
    compiler_check.require_correct_compiler()
    compiler_check.require_correct_compiler()
    assert compiler_check._check_cpu_compiler.cache_info().misses == 1


@pytest.mark.parametrize("wrong", [27.0, np.nan])
def test_a_wrong_result_is_an_error_that_names_version_and_remedy(monkeypatch, wrong):
    right = compiler_check._weighted_sum

    def wrong_second_tile(x, q, w):
        return right(x, q, w).at[32:].add(wrong)

    monkeypatch.setattr(compiler_check, "_weighted_sum", wrong_second_tile)
    for _ in range(2):  # not remembered as checked
        with pytest.raises(compiler_check.MiscompilationError) as caught:
            compiler_check.require_correct_compiler()
    message = str(caught.value)
    assert f"jaxlib {jaxlib.__version__} computes wrong numbers" in message
    assert "50%" in message
    assert f'pip install "jax!={jax.__version__}"' in message
    assert "XLA_FLAGS=--xla_cpu_experimental_ynn_fusion_type=" in message
    assert "\n" not in message


def test_other_backends_are_not_checked(monkeypatch):
    def unreachable(x, q, w):
        raise AssertionError("compiled for a backend that is not the CPU")

    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    monkeypatch.setattr(compiler_check, "_weighted_sum", unreachable)
    compiler_check.require_correct_compiler()

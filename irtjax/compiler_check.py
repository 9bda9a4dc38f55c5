"""A clear error instead of wrong numbers: is this jaxlib's CPU compiler one of the broken ones?

jaxlib 0.10.2 computes `(w * x).sum(-1) + q`, a masked log-likelihood, wrongly on CPU: the reduction
of a broadcast product, fused with an addition (its YNN fusion), is right in the first tile of rows
and wrong in all the others. The requirements exclude it, but an environment can still hold it.

Measured with 0.10.2: a tile is 32,768 results, whatever the shape, the number of threads and the
length of the sum (2 or more); within one tile, and in float64, all is right. So one row past the
first tile shows it (33 x 1,000 x 2); the check takes two tiles, of which 0.10.2 gets the second
wrong by up to 18, and costs 0.02 to 0.04 CPU seconds with its compilation. At 256 x 1,000 x 12,
87% of the entries are off by up to 27. Right are 0.10.0, 0.10.1, 0.11.2, 0.12.0.1, and 0.10.2
without that fusion.
"""

import functools

import jax
import jaxlib.version
import numpy as np
from jaxtyping import Array, Float

__all__ = ["MiscompilationError", "require_correct_compiler"]

_SHAPE = (64, 1024, 4)  # two tiles of results
_TOLERANCE = 1e-3  # correct float32 differs by 1e-6, a wrong tile by 1 to 20


class MiscompilationError(RuntimeError):
    """The installed jaxlib computes wrong numbers on CPU; the message names it and the remedy."""


def require_correct_compiler() -> None:
    """Checks, once in a process, that compiled code on CPU agrees with NumPy.

    Does nothing where the default backend is not the CPU.

    Raises:
      MiscompilationError: It does not agree.

    Example:
      >>> require_correct_compiler()
    """
    if jax.default_backend() == "cpu":
        _check_cpu_compiler()


@functools.cache  # keeps a success only: a failure raises again at the next call
def _check_cpu_compiler() -> None:
    n_rows, n_columns, n_terms = _SHAPE
    rng = np.random.default_rng(0)
    x = rng.standard_normal((n_rows, n_columns, n_terms), dtype=np.float32)
    q = rng.standard_normal((n_rows, n_columns), dtype=np.float32)
    w = rng.standard_normal((n_columns, n_terms), dtype=np.float32)
    error = np.abs(np.asarray(_weighted_sum(x, q, w)) - ((w * x).sum(-1) + q))
    is_wrong = ~(error <= _TOLERANCE)  # true for NaN too
    if is_wrong.any():
        other_version = f'"jax!={jax.__version__}" "jaxlib!={jaxlib.version.__version__}"'
        raise MiscompilationError(
            f"jaxlib {jaxlib.version.__version__} computes wrong numbers on this CPU "
            f"({is_wrong.mean():.0%} of a weighted sum, off by up to {error.max():.3g}); "
            f"install another version: pip install {other_version}; "
            "or start Python with XLA_FLAGS=--xla_cpu_experimental_ynn_fusion_type="
        )


@jax.jit
def _weighted_sum(
    x: Float[Array, "rows columns terms"],
    q: Float[Array, "rows columns"],
    w: Float[Array, "columns terms"],
) -> Float[Array, "rows columns"]:
    return (w * x).sum(-1) + q

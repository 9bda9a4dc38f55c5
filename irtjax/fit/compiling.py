"""How programs are compiled: which beside others, and XLA's options.

On CPU XLA compiles each fused loop through MLIR (its fusion emitters), 10 to 20 ms apiece, which
buys wide exponentials: a pass over 3.4 million cells takes a quarter of the time. Where the work is
in matrix products there is nothing to buy: `marginal-models` on shared nodes compiles in 3.5
instead of 6.3 CPU seconds and runs as fast without them (2,000 x 50) or faster (60,000 x 50: .95
instead of 1.08 CPU seconds a fit); with nodes of each model's own (300 x 2,000) it takes 1.9
instead of 5.0. The other estimators' passes would take up to 4.5 times as long, which matters
beyond some 50,000 cells.
"""

import concurrent.futures
import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp

from irtjax.fit.clock import waiting_for_compilation

__all__ = ["compiled_beside", "compiled_soon"]

_OPTIONS = {"xla_cpu_use_fusion_emitters": False}


def compiled_soon(*static_argnums: int) -> Callable[[Callable[..., Any]], Any]:
    """`jax.jit` for functions that spend their time in matrix products."""

    def decorate(function: Callable[..., Any]) -> Any:
        @functools.wraps(function)
        def run(*arguments: Any) -> Any:
            return _jitted(function, static_argnums)(*arguments)

        run.lower = lambda *arguments: _jitted(function, static_argnums).lower(*arguments)  # type: ignore[attr-defined]
        return run

    return decorate


@contextlib.contextmanager
def compiled_beside(programs: Callable[[], None] | None) -> Iterator[None]:
    """Compile programs in a thread while what is inside runs; wait for it at the end.

    XLA compiles a program on one core. What waits counts as compiling (see `clock`).

    Args:
        programs: lowers and compiles them; the calls that follow find them compiled. None for none.
    """
    if programs is None:
        yield
        return
    mesh = jax.sharding.get_mesh()
    is_x64 = jax.dtypes.canonicalize_dtype(float) == jnp.float64

    def as_here() -> None:
        # Both are of a thread. What fails here fails again, in view, where the program runs.
        under_mesh = contextlib.nullcontext() if mesh.empty else jax.set_mesh(mesh)
        with jax.enable_x64(is_x64), under_mesh, contextlib.suppress(Exception):
            programs()

    with concurrent.futures.ThreadPoolExecutor(1, "irtjax-compiling") as pool:
        compiled = pool.submit(as_here)
        yield
        with waiting_for_compilation():
            compiled.result()


@functools.cache
def _jitted(function: Callable[..., Any], static_argnums: tuple[int, ...]) -> Callable[..., Any]:
    return jax.jit(function, static_argnums=static_argnums, compiler_options=_known_options())


@functools.cache
def _known_options() -> dict[str, bool] | None:
    """The options, None where they are of no use or this XLA does not know them."""
    if jax.default_backend() != "cpu":
        return None
    try:
        jax.jit(lambda x: x, compiler_options=_OPTIONS).lower(jnp.zeros(())).compile()
    except jax.errors.JaxRuntimeError:
        return None
    return dict(_OPTIONS)

"""How long compilation took, from JAX's own events, and how long the rest."""

import contextlib
import functools
import threading
import time
from collections.abc import Iterator

import jax

__all__ = ["compile_seconds", "timed", "waiting_for_compilation"]

_EVENTS = (
    "/jax/core/compile/jaxpr_to_mlir_module_duration",
    "/jax/core/compile/backend_compile_duration",
)


class _Seconds(threading.local):
    """Seconds of one thread: another that compiles beside it doesn't hold it up."""

    total = 0.0


_compiling = _Seconds()


@contextlib.contextmanager
def timed() -> Iterator[dict[str, float]]:
    """Measure what is done inside.

    Yields:
        Filled at the end: `compile_seconds`, and `fit_seconds`, which are all others.
    """
    seconds: dict[str, float] = {}
    started, compiled = time.perf_counter(), compile_seconds()
    yield seconds
    seconds["compile_seconds"] = compile_seconds() - compiled
    all_seconds = time.perf_counter() - started
    seconds["fit_seconds"] = max(all_seconds - seconds["compile_seconds"], 0.0)


@contextlib.contextmanager
def waiting_for_compilation() -> Iterator[None]:
    """Count what is inside as compiling: it waits for a thread that compiles."""
    started = time.perf_counter()
    yield
    _compiling.total += time.perf_counter() - started


@functools.cache
def _listen() -> None:
    def on_event(event: str, duration_secs: float, **_: str | int) -> None:
        if event in _EVENTS:
            _compiling.total += duration_secs

    jax.monitoring.register_event_duration_secs_listener(on_event)


def compile_seconds() -> float:
    """Seconds this thread has spent in lowering and compiling since the first call.

    Take the difference of two calls. Tracing is not counted: its events nest and would count
    twice.
    """
    _listen()
    return _compiling.total

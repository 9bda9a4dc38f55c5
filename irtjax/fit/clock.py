"""How long compilation took, from JAX's own events, and how long the rest."""

import contextlib
import functools
import time
from collections.abc import Iterator

import jax

__all__ = ["timed"]

_EVENTS = (
    "/jax/core/compile/jaxpr_to_mlir_module_duration",
    "/jax/core/compile/backend_compile_duration",
)
_total = 0.0


@contextlib.contextmanager
def timed() -> Iterator[dict[str, float]]:
    """Measure what is done inside.

    Yields:
        Filled at the end: `compile_seconds`, and `fit_seconds`, which are all others.
    """
    seconds: dict[str, float] = {}
    started, compiled = time.perf_counter(), _compile_seconds()
    yield seconds
    seconds["compile_seconds"] = _compile_seconds() - compiled
    all_seconds = time.perf_counter() - started
    seconds["fit_seconds"] = max(all_seconds - seconds["compile_seconds"], 0.0)


@functools.cache
def _listen() -> None:
    def on_event(event: str, duration_secs: float, **_: str | int) -> None:
        global _total
        if event in _EVENTS:
            _total += duration_secs

    jax.monitoring.register_event_duration_secs_listener(on_event)


def _compile_seconds() -> float:
    """Seconds this process has spent in lowering and compiling since the first call.

    Take the difference of two calls. Tracing is not counted: its events nest and would count
    twice.
    """
    _listen()
    return _total

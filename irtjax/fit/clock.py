"""How long compilation took, from JAX's own events."""

import functools

import jax

__all__ = ["compile_seconds"]

_EVENTS = (
    "/jax/core/compile/jaxpr_to_mlir_module_duration",
    "/jax/core/compile/backend_compile_duration",
)
_total = 0.0


@functools.cache
def _listen() -> None:
    def on_event(event: str, duration_secs: float, **_: str | int) -> None:
        global _total
        if event in _EVENTS:
            _total += duration_secs

    jax.monitoring.register_event_duration_secs_listener(on_event)


def compile_seconds() -> float:
    """Seconds this process has spent in lowering and compiling since the first call.

    Take the difference of two calls. Tracing is not counted: its events nest and would count
    twice.
    """
    _listen()
    return _total

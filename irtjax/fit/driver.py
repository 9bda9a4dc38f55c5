"""The one loop that drives every estimator: steps on the device, looks from the host."""

import dataclasses
import enum
import functools
import math
from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from irtjax.data.blocks import Blocks
from irtjax.fit.compiling import compiled_soon
from irtjax.fit.estimator import Estimator, StepInfo
from irtjax.model.pytree import pytree_dataclass

__all__ = ["Look", "Progress", "Status", "Trace", "all_finite", "drive", "kept"]

_T = TypeVar("_T")


class Status(enum.Enum):
    """How a fit ended; the value is the sentence a user reads."""

    converged = "The estimates no longer move."
    max_steps = "Stopped at the step limit while abilities still moved; raise --max-steps."
    stalled = (
        "The objective no longer rises, but abilities still move along directions that the data "
        "hardly determine; take small differences with care, or fit a smaller model."
    )
    diverged = (
        "A value was not finite; the estimates are of the last good step. Check the data for "
        "extreme weights, or use fewer dims."
    )


# Steps over whose largest move the rate is taken at which moves shrink: one span against the one
# before it. Extrapolation makes single moves uneven, so no span is shorter; the long way of the
# first moves makes a rate look fast, so the short ones leave them out.
_SPANS = (3, 4, 5)
# Steps before a fit is called converged: two spans but for two first moves.
_FEWEST = 8
# Moves that fall below this share over half the window of a stall are still converging.
_SHRINKING = 0.7


@dataclasses.dataclass(frozen=True)
class Look:
    """When the host looks, and when it calls a fit finished.

    Attributes:
        every: steps to the first look; they run on the device without the host. From then on it
            looks after each: that costs some .2 ms, a step that is not needed ten times that on
            small data and hundreds of times on large.
        tolerance: converged when no ability is expected to move further than this (standard
            deviations) before it stops or within `horizon` steps, by the rate at which its moves
            shrink.
        horizon: steps that the expectation reaches. Without it, rounding (an ability of order 1
            flickers by 1e-7 for ever) would count as a move that never ends.
        stall_looks: stalled when, over the second half of this many looks, the objective gains
            less than its rounding and the abilities' moves do not shrink.
        max_steps: most steps.
    """

    every: int = 8
    tolerance: float = 1e-4
    horizon: int = 100
    stall_looks: int = 10
    max_steps: int = 1000


@dataclasses.dataclass(frozen=True)
class Trace:
    """Objective, largest ability move and damping of every step."""

    objective: tuple[float, ...] = ()
    change: tuple[float, ...] = ()
    damped: tuple[int, ...] = ()

    def extended(self, info: StepInfo, n_steps: int) -> "Trace":
        """The trace with the first `n_steps` rows of a look added."""
        steps = len(self.objective) + np.flatnonzero(np.asarray(info.was_damped)[:n_steps])
        return Trace(
            self.objective + tuple(float(v) for v in np.asarray(info.objective)[:n_steps]),
            self.change + tuple(float(v) for v in np.asarray(info.change)[:n_steps]),
            self.damped + tuple(int(v) for v in steps),
        )


@dataclasses.dataclass(frozen=True)
class Progress:
    """What the loop knows after a look; also what a checkpoint keeps beside the state.

    `not_finite` are the names of the parameters for which it is diverged.
    """

    trace: Trace = dataclasses.field(default_factory=Trace)
    status: Status | None = None
    reason: str = ""
    not_finite: tuple[str, ...] = ()

    @property
    def n_steps(self) -> int:
        """Steps done."""
        return len(self.trace.objective)


@pytree_dataclass
class _Advance:
    """Carry of the device loop."""

    state: Any
    info: StepInfo
    n_done: Int[Array, ""]
    is_finite: Bool[Array, ""]


def drive(
    estimator: Estimator,
    blocks: Blocks,
    state: Any,
    *,
    look: Look,
    progress: Progress | None = None,
    on_look: Callable[[Any, Progress], None] | None = None,
) -> tuple[Any, Progress]:
    """Step until converged, stalled, diverged or at the limit.

    Args:
        estimator: settings and pure functions.
        blocks: the responses on the devices; the items mesh is set by the caller.
        state: where to start (from `init` or a checkpoint).
        look: when to look and when to stop.
        progress: of the checkpoint that the state came from.
        on_look: called with the state and progress after each look (progress bar, checkpoint).

    Returns:
        The last good state, and how the loop ended.
    """
    progress = progress or Progress()
    while progress.status is None:
        n = min(max(look.every - progress.n_steps, 1), look.max_steps - progress.n_steps)
        if n <= 0:
            progress = dataclasses.replace(progress, status=Status.max_steps)
            progress = dataclasses.replace(progress, reason=Status.max_steps.value)
            break
        advanced = advance(estimator, look.every, blocks, state, n)
        state = advanced.state
        trace = progress.trace.extended(advanced.info, int(advanced.n_done))
        if not bool(advanced.is_finite):
            names = not_finite(estimator, blocks, state)
            reason = f"{Status.diverged.value} Not finite: {', '.join(names)}."
            progress = Progress(trace, Status.diverged, reason, names)
        else:
            status = _judge(trace, look, np.finfo(np.asarray(advanced.info.objective).dtype).eps)
            progress = Progress(trace, status, status.value if status else "")
        if on_look is not None:
            on_look(state, progress)
    return state, progress


def advance(
    estimator: Estimator, size: int, blocks: Blocks, state: Any, n_steps: Int[Array, ""] | int
) -> _Advance:
    """Up to `n_steps` steps on the device; stops before the first state that is not finite."""
    run = _advance_soon if estimator.compiles_soon else _advance
    return run(estimator, size, blocks, state, n_steps)


def _steps(
    estimator: Estimator, size: int, blocks: Blocks, state: Any, n_steps: Int[Array, ""] | int
) -> _Advance:

    def more(carry: _Advance) -> Bool[Array, ""]:
        return (carry.n_done < n_steps) & carry.is_finite

    def one(carry: _Advance) -> _Advance:
        new, info = estimator.step(blocks, carry.state)
        is_finite = all_finite(new, carry.state) & jnp.isfinite(info.objective)
        filled = jax.tree.map(lambda row, value: row.at[carry.n_done].set(value), carry.info, info)
        return _Advance(
            kept(is_finite, new, carry.state),
            filled,
            carry.n_done + is_finite.astype(jnp.int32),
            is_finite,
        )

    # By `jax.eval_shape` the step would be traced once more: a tenth of a first fit's seconds.
    empty = StepInfo(jnp.zeros(size), jnp.zeros(size), jnp.zeros(size, bool))
    start = _Advance(state, empty, jnp.zeros((), jnp.int32), jnp.array(True))
    return jax.lax.while_loop(more, one, start)


_advance = jax.jit(_steps, static_argnums=(0, 1))
_advance_soon = compiled_soon(0, 1)(_steps)


def all_finite(new: Any, old: Any) -> Bool[Array, ""]:
    """Whether every number of the new tree is finite, or infinite as in the old one."""
    pairs = zip(jax.tree.leaves(new), jax.tree.leaves(old), strict=True)
    found = [_is_valid(a, b) for a, b in pairs if a is not b]
    return functools.reduce(jnp.logical_and, found, jnp.array(True))


def kept(is_new: Bool[Array, ""], new: _T, old: _T) -> _T:
    """The new tree or the old one.

    What a step leaves as it was (the same leaf) needs no choice, nor a check in `all_finite`: each
    is a program of its own to compile.
    """
    return jax.tree.map(lambda a, b: a if a is b else jnp.where(is_new, a, b), new, old)


def _is_valid(new: Array, old: Array) -> Bool[Array, ""]:
    """Finite, or an infinity that was there before (an asymptote fixed at 0 or 1)."""
    if not jnp.issubdtype(new.dtype, jnp.floating):
        return jnp.array(True)
    return jnp.all(jnp.isfinite(new) | (new == old))


def not_finite(estimator: Estimator, blocks: Blocks, state: Any) -> tuple[str, ...]:
    """Names of the parameters that the next step from a state makes not finite."""
    new, info = jax.jit(estimator.step)(blocks, state)
    named, _ = jax.tree_util.tree_flatten_with_path(jax.tree.map(_is_valid, new, state))
    bad = [jax.tree_util.keystr(path).lstrip(".") for path, is_valid in named if not is_valid]
    if bad:
        return tuple(bad)
    return ("none",) if math.isfinite(float(info.objective)) else ("objective",)


def _judge(trace: Trace, look: Look, epsilon: float) -> Status | None:
    """Converged by the abilities' expected remaining way; stalled by the objective."""
    is_early = len(trace.change) < _FEWEST
    if trace.change and max(trace.change[-(2 if is_early else max(_SPANS)) :]) == 0:
        return Status.converged
    if is_early:
        return None
    is_damped = any(step >= len(trace.change) - 2 * max(_SPANS) for step in trace.damped)
    if not is_damped and _remaining(trace.change, look.horizon) < look.tolerance:
        return Status.converged
    window = trace.objective[-look.stall_looks * look.every :]
    if len(window) == look.stall_looks * look.every:
        half = len(window) // 2
        gained = max(window[half:]) - max(window[:half])
        changes = trace.change[-len(window) :]
        is_shrinking = np.median(changes[half:]) < _SHRINKING * np.median(changes[:half])
        if gained <= 4 * epsilon * abs(window[-1]) and not is_shrinking:
            return Status.stalled
    return None


def _remaining(change: tuple[float, ...], horizon: int) -> float:
    """The way that is left if moves go on shrinking as slowly as over any of the spans."""
    slowest = 0.0
    for span in (span for span in _SPANS if len(change) >= 2 * span):
        earlier, later = max(change[-2 * span : -span]), max(change[-span:])
        if later > 0:
            slowest = max(slowest, (later / earlier) ** (1 / span) if earlier > 0 else 1.0)
    n_left = horizon if slowest >= 1 else min(slowest / (1 - slowest), horizon)
    return change[-1] * n_left

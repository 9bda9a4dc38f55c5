"""The loop on small estimators whose course is known: statuses, trace, the first bad value."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from irtjax.fit.driver import Look, Progress, Status, Trace, _judge, drive
from irtjax.fit.estimator import StepInfo
from irtjax.model.pytree import pytree_dataclass


@pytree_dataclass
class Point:
    """An ability, something else that is estimated, a fixed infinity and the number of steps."""

    ability: jax.Array
    spread: jax.Array
    fixed: jax.Array
    count: jax.Array


@dataclasses.dataclass(frozen=True)
class Course:
    """Moves an ability by a known rule; at step `bad_step` it puts `bad_value` into `bad_leaf`.

    Args:
        rate: the distance to 0 shrinks by this factor a step.
        drift: what each step adds besides.
        flicker: what the steps add and take away in turn.
        is_flat: the objective is constant.
    """

    rate: float = 0.5
    drift: float = 0.0
    flicker: float = 0.0
    is_flat: bool = False
    damps: bool = False
    bad_step: int = -1
    bad_value: float = float("nan")
    bad_leaf: str = "spread"

    name = "course"
    objective_name = "joint"
    compiles_soon = False

    def step(self, blocks, state):
        """One step."""
        sign = jnp.where(state.count % 2 == 0, 1.0, -1.0)
        ability = state.ability * self.rate + self.drift + self.flicker * sign
        objective = -1e3 - (0 if self.is_flat else 1) * state.ability**2
        is_bad = state.count == self.bad_step
        new = Point(ability, state.spread + 1, state.fixed, state.count + 1)
        if self.bad_leaf == "objective":
            objective = jnp.where(is_bad, self.bad_value, objective)
        else:
            value = jnp.where(is_bad, self.bad_value, getattr(new, self.bad_leaf))
            new = dataclasses.replace(new, **{self.bad_leaf: value})
        return new, StepInfo(objective, jnp.abs(ability - state.ability), jnp.asarray(self.damps))


def start(ability=1.0):
    """A state; -inf in `fixed` is legal (an asymptote fixed at 0)."""
    return Point(
        jnp.asarray(ability), jnp.asarray(0.0), jnp.asarray(-jnp.inf), jnp.asarray(0, jnp.int32)
    )


def run(course, state=None, **look):
    """Drive, without data."""
    return drive(course, (), start() if state is None else state, look=Look(**look))


def test_case_14_converged_where_the_abilities_stop():
    state, progress = run(Course(rate=0.5))
    assert progress.status is Status.converged
    assert progress.reason == Status.converged.value
    assert abs(float(state.ability)) < 1e-3
    assert progress.n_steps == int(state.count) == len(progress.trace.objective)
    assert progress.n_steps >= 8


def test_case_14_started_at_the_optimum_is_converged_not_capped():
    state, progress = run(Course(), start(0.0))
    assert progress.status is Status.converged
    assert progress.n_steps <= 2 * Look().every
    assert set(progress.trace.change) == {0.0}
    assert float(state.ability) == 0


def test_case_14_rounding_at_the_optimum_is_converged_not_stalled():
    # float32 abilities of order 1 flicker by some 1e-7 for ever: they do not move.
    _, progress = run(Course(rate=0.0, flicker=3e-7, is_flat=True), start(0.0), max_steps=200)
    assert progress.status is Status.converged


def test_case_14_a_cap_of_one_step_is_max_steps():
    state, progress = run(Course(rate=0.99), max_steps=1)
    assert progress.status is Status.max_steps
    assert progress.n_steps == int(state.count) == 1
    assert "max-steps" in progress.reason


def test_case_14_a_cap_that_is_no_multiple_of_the_look():
    state, progress = run(Course(rate=0.99), max_steps=7)
    assert progress.status is Status.max_steps
    assert progress.n_steps == int(state.count) == 7


def test_case_14_an_ability_that_drifts_at_no_gain_is_stalled():
    look = Look(max_steps=1000)
    _, progress = run(Course(rate=1.0, drift=0.01, is_flat=True))
    assert progress.status is Status.stalled
    assert progress.n_steps == look.stall_looks * look.every
    assert "no longer rises" in progress.reason


def test_case_14_slow_but_steady_is_not_called_converged():
    # Each step gains a thousandth of the way: far from the optimum however small the step.
    _, progress = run(Course(rate=0.999), max_steps=60)
    assert progress.status is Status.max_steps


def test_case_14_a_damped_step_is_not_taken_for_convergence():
    _, progress = run(Course(rate=0.5, damps=True), max_steps=30)
    assert progress.status is Status.max_steps
    assert progress.trace.damped == tuple(range(30))


def test_case_14_what_no_longer_moves_is_converged_though_damped():
    moves = (0.1, *(0.05 * 0.5**k for k in range(10)), *(0.0,) * 5)
    trace = Trace((-1.0,) * len(moves), moves, tuple(range(len(moves))))
    assert _judge(trace, Look(), 1e-7) is Status.converged
    shorter = Trace(trace.objective[:-1], moves[:-1], trace.damped[:-1])
    assert _judge(shorter, Look(), 1e-7) is None


def test_case_14_the_criterion_is_in_the_trace():
    look = Look()
    _, progress = run(Course(rate=0.8))
    change = np.array(progress.trace.change)
    np.testing.assert_allclose(change, 0.2 * 0.8 ** np.arange(len(change)), rtol=1e-5)

    def remaining(steps):
        # The way that is left if the moves go on shrinking as over the last spans.
        recent = change[:steps]
        rates = [
            (recent[-span:].max() / recent[-2 * span : -span].max()) ** (1 / span)
            for span in (3, 4, 5)
        ]
        return recent[-1] * max(rates) / (1 - max(rates))

    assert progress.status is Status.converged
    assert remaining(progress.n_steps) < look.tolerance <= remaining(progress.n_steps - 1)


def test_case_14_a_long_first_way_does_not_make_slow_moves_converged():
    # At step 8 the last four moves are a thousandth of the first, and as long as each other.
    moves = (0.4, 0.05, 3e-4, 3e-4, 3e-4, 3e-4, 3e-4, 3e-4)
    trace = Trace(tuple(range(len(moves))), moves)
    assert _judge(trace, Look(), 1e-7) is None
    assert _judge(Trace(tuple(range(10)), (*moves[:2], *(3e-8,) * 8)), Look(), 1e-7) is (
        Status.converged
    )


@pytest.mark.parametrize("bad_step", [0, 3, 7])
@pytest.mark.parametrize("bad_leaf", ["ability", "spread"])
@pytest.mark.parametrize("bad_value", [float("nan"), float("inf"), -float("inf")])
def test_case_13_stops_at_the_first_value_that_is_not_finite(bad_step, bad_leaf, bad_value):
    course = Course(rate=0.9, bad_step=bad_step, bad_value=bad_value, bad_leaf=bad_leaf)
    state, progress = run(course)
    assert progress.status is Status.diverged
    # The last good state: that of the step before, with nothing of the bad step in it.
    assert progress.n_steps == int(state.count) == bad_step
    assert float(state.spread) == bad_step
    assert float(state.ability) == pytest.approx(0.9**bad_step, rel=1e-5)
    assert bad_leaf in progress.reason
    assert np.all(np.isfinite(progress.trace.objective))


def test_case_13_a_bad_objective_is_named():
    state, progress = run(Course(rate=0.9, bad_step=4, bad_leaf="objective"))
    assert progress.status is Status.diverged
    assert progress.n_steps == int(state.count) == 4
    assert "objective" in progress.reason


def test_case_13_a_legal_infinity_is_no_divergence():
    state, progress = run(Course())
    assert progress.status is Status.converged
    assert np.isneginf(float(state.fixed))


def test_the_host_looks_every_few_steps_and_at_the_end():
    seen = []
    _, progress = drive(
        Course(rate=0.9),
        (),
        start(),
        look=Look(every=4, max_steps=10),
        on_look=lambda state, progress: seen.append((int(state.count), progress.status)),
    )
    assert seen[:2] == [(4, None), (5, None)]
    assert seen[-1][0] == progress.n_steps == 10


def test_continued_from_a_trace_is_uninterrupted():
    whole_state, whole = run(Course(rate=0.8))
    state, part = run(Course(rate=0.8), max_steps=15)
    state, joined = drive(
        Course(rate=0.8), (), state, look=Look(), progress=Progress(Trace(*_fields(part.trace)))
    )
    assert joined == whole
    assert float(state.ability) == float(whole_state.ability)


def _fields(trace):
    return tuple(getattr(trace, field.name) for field in dataclasses.fields(trace))


def test_every_status_is_a_sentence_with_a_remedy():
    assert {status.name for status in Status} == {"converged", "max_steps", "stalled", "diverged"}
    for status in Status:
        assert status.value.endswith(".")
        assert status is Status.converged or ";" in status.value or "," in status.value

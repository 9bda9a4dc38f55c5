"""Fits from several starts: the best is kept, and how far they agree is reported."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from irtjax.data.blocks import Blocks
from irtjax.fit.compiling import compiled_beside
from irtjax.fit.driver import Look, Progress, drive
from irtjax.fit.result import FittedParameters
from irtjax.fit.routes import Route
from irtjax.fit.settings import FitSettings

__all__ = ["Start", "agreement_of", "best_of_starts", "run_start"]

# Log-likelihoods of starts that found the same optimum differ by less than this (nats).
_SAME = 0.01
# Starts disagree when a parameter of some item differs by more than this between them (logits,
# probabilities) although their log-likelihoods are the same.
_CLOSE = 0.05


@dataclasses.dataclass(frozen=True)
class Start:
    """What one start led to."""

    progress: Progress
    parameters: FittedParameters
    notes: dict[str, Any]

    @property
    def objective(self) -> float:
        """Of the last step."""
        return self.progress.trace.objective[-1]


def run_start(
    route: Route,
    blocks: Blocks,
    state: Any,
    look: Look,
    progress: Progress | None = None,
    on_look: Callable[[Any, Progress], None] | None = None,
    *,
    is_new: bool = False,
) -> Start:
    """Drive a state to its end, and bring the estimates back; runs under the mesh of the blocks.

    Args:
        route: of the fit.
        blocks: the data on the devices.
        state: first state, or a saved one.
        look: when to look and when to stop.
        progress: of the saved state.
        on_look: called with state and progress after each look.
        is_new: such a fit has not been compiled in this process: compile its end beside its steps.
    """
    estimator, first = route.estimator, state
    end = (lambda: estimator.compile_finish(blocks, first)) if is_new else None
    with compiled_beside(end):
        state, progress = drive(
            estimator, blocks, state, look=look, progress=progress, on_look=on_look
        )
    estimates = jax.block_until_ready(route.estimator.finish(blocks, state))
    return Start(progress, route.collect(blocks, estimates), route.notes(estimates))


def best_of_starts(
    route: Route, blocks: Blocks, first: Start, settings: FitSettings, look: Look
) -> tuple[Start, dict[str, Any]]:
    """Fit again from random starts beside the first; runs under the mesh of the first.

    Returns:
        The start with the highest objective, and what `agreement_of` says of all (nothing of one).
    """
    if settings.starts == 1:
        return first, {}
    jittered = dataclasses.replace(route.estimator, is_jittered=True)  # type: ignore[type-var]
    route.estimator = jittered  # type: ignore[misc]
    found = [first]
    for k in range(1, settings.starts):
        state = route.init(blocks, jax.random.key(settings.seed + k))
        found.append(run_start(route, blocks, state, look))
    best = max(found, key=lambda start: start.objective)
    return best, agreement_of(found)


def agreement_of(found: list[Start]) -> dict[str, Any]:
    """How far the starts agree, for the report, with a warning where they do not.

    `largest_spread` is the largest difference of an item's parameter between starts whose
    objective is within .01 of the best: slopes and intercepts in logits, asymptotes as
    probabilities.
    """
    objectives = np.array([start.objective for start in found])
    same = [s for s in found if s.objective >= objectives.max() - _SAME]
    values = {
        "slope": np.stack([s.parameters.mean[:, 0, :-1] for s in same]),
        "intercept": np.stack([s.parameters.mean[:, 0, -1] for s in same]),
        "guessing": np.stack([np.asarray(s.parameters.guessing) for s in same]),
        "feasibility": np.stack([np.asarray(s.parameters.feasibility) for s in same]),
    }
    spread = {name: float(np.ptp(value, axis=0).max()) for name, value in values.items()}
    told = {
        "starts": {
            "n": len(found),
            "n_at_the_best": len(same),
            "objectives": objectives.tolist(),
            "largest_spread": spread,
        }
    }
    warnings = []
    if len(same) < len(found):
        warnings.append(
            f"{len(found) - len(same)} of {len(found)} starts ended below the best, by up to "
            f"{objectives.max() - objectives.min():.2f} nats: the likelihood has several optima"
        )
    if max(spread.values()) > _CLOSE:
        worst = max(spread, key=lambda name: spread[name])
        warnings.append(
            f"starts with the same likelihood differ by up to {spread[worst]:.2f} in {worst}: the "
            "data do not determine it; see the standard errors, or fit a smaller family"
        )
    return told | {"warnings": warnings}

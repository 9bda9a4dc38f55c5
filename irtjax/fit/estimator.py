"""The contract of an estimator: settings, and pure functions `init`, `step`, `finish`."""

from typing import Any, Protocol

import jax
from jaxtyping import Array, Bool, Float

from irtjax.data.blocks import Blocks
from irtjax.model.priors import Priors
from irtjax.model.pytree import pytree_dataclass
from irtjax.model.spec import ModelSpec

__all__ = ["Estimator", "StepInfo"]


@pytree_dataclass
class StepInfo:
    """What a step reports, beside the state that continues.

    `objective` is what is maximised, of the state the step was given (nats; see
    `Estimator.objective_name`); `change` is the largest move of an ability, in standard
    deviations; `was_damped` says that the previous step had lowered the objective and was halved.
    """

    objective: Float[Array, ""]
    change: Float[Array, ""]
    was_damped: Bool[Array, ""]


class Estimator(Protocol):
    """A frozen dataclass of settings with pure functions; one driver owns the loop."""

    @property
    def name(self) -> str:
        """The name the command line uses."""

    @property
    def objective_name(self) -> str:
        """What `StepInfo.objective` is: `elbo`, `marginal` or `joint`."""

    @property
    def compiles_soon(self) -> bool:
        """Whether its loop spends its time in matrix products, or hardly any (see `compiling`)."""

    def init(self, blocks: Blocks, spec: ModelSpec, priors: Priors, key: jax.Array) -> Any:
        """The first state, a pytree."""

    def step(self, blocks: Blocks, state: Any) -> tuple[Any, StepInfo]:
        """One step, runs under jit."""

    def compile_finish(self, blocks: Blocks, state: Any) -> None:
        """Compile what `finish` will run, given any state; without, it is compiled when it runs."""

    def finish(self, blocks: Blocks, state: Any) -> Any:
        """Estimates from the last state."""

"""How networks are built and trained: settings a user may choose."""

import dataclasses
from typing import Any, Literal, get_args

from irtjax.errors import InputError

__all__ = ["Network", "Start", "StopBy", "parse_network"]

StopBy = Literal["log_loss", "f1", "auc"]
Schedule = Literal["constant", "cosine"]
Updates = Literal["touched", "dense"]
Start = Literal["apart", "near_zero"]
Lookup = Literal["both", "items", "models", "none"]

# Each layer is compiled on its own, and each epoch has a place in the curves.
_MOST = {"layers": 64, "epochs": 1_000_000}
_MOST |= dict.fromkeys(("embedding", "hidden", "batch_size", "patience"), 1_000_000_000)


@dataclasses.dataclass(frozen=True)
class Network:
    """Two towers and their training.

    Args:
        embedding: width of the rows looked up by id.
        hidden: width of the layer after it.
        layers: hidden layers of each tower after the embedding.
        learning_rate: of Adam; must be positive.
        schedule: `cosine` (down to 0 at the last epoch) or `constant`.
        weight_decay: added to the gradient, times the weights (Adam's L2, as in PSN-IRT).
        batch_size: responses a step.
        epochs: most passes over the training responses.
        validation: share of the responses kept for early stopping.
        stop_by: what the validation responses are scored by.
        patience: epochs without a better score before the training stops.
        refit: train again from the start on all responses, for as many epochs as were best; without
            the towers that scored best are kept, and the validation responses are never learnt.
        updates: `touched` moves the embedding rows of a batch only, `dense` all rows at every step
            (as the published network does, for three times the work).
        start: `apart` draws abilities about 1 apart, with guessing at .1 and feasibility at .95;
            `near_zero` draws all rows as the one-hot layer of the published network does, with
            guessing at .5 and feasibility at .75.
        lookup: the towers that look up a row for each id, `both`, `items`, `models` or `none`;
            one that does not has features instead of ids, and like features get like estimates.

    What the towers put out has the priors of the fit, each item's spread over its responses;
    `Priors.off()` and `published()` are the published network.

    Raises:
        InputError: a setting out of its range.
    """

    embedding: int = 64
    hidden: int = 64
    layers: int = 1
    learning_rate: float = 0.003
    schedule: Schedule = "cosine"
    weight_decay: float = 1e-4
    batch_size: int = 512
    epochs: int = 15
    validation: float = 0.1
    stop_by: StopBy = "log_loss"
    patience: int = 4
    refit: bool = True
    updates: Updates = "touched"
    start: Start = "apart"
    lookup: Lookup = "both"

    def __post_init__(self) -> None:
        for name in ("embedding", "hidden", "layers", "batch_size", "epochs", "patience"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise InputError(f"network {name} must be a whole number from 1, not {value!r}")
        for name, most in _MOST.items():
            if getattr(self, name) > most:
                raise InputError(
                    f"network {name} must be {most:,} at most, not {getattr(self, name):,}"
                )
        for name in ("learning_rate", "weight_decay", "validation"):
            value = getattr(self, name)
            if not isinstance(value, int | float) or isinstance(value, bool):
                raise InputError(f"network {name} must be a number, not {value!r}")
        if not 0 < self.learning_rate < float("inf"):
            raise InputError(f"network learning_rate must be above 0, not {self.learning_rate}")
        if not 0 <= self.weight_decay < float("inf"):
            raise InputError(f"network weight_decay must not be negative, not {self.weight_decay}")
        if not isinstance(self.refit, bool):
            raise InputError(f"network refit must be true or false, not {self.refit!r}")
        if not 0.01 <= self.validation <= 0.9:
            raise InputError(f"network validation must be .01 to .9, not {self.validation}")
        kinds = {
            "schedule": Schedule,
            "stop_by": StopBy,
            "updates": Updates,
            "start": Start,
            "lookup": Lookup,
        }
        for name, kind in kinds.items():
            value, known = getattr(self, name), get_args(kind)
            if value not in known:
                raise InputError(f"network {name} must be one of {', '.join(known)}, not {value!r}")

    def looks_up(self, side: str) -> bool:
        """Whether the tower of a side, `items` or `models`, has a row for each id."""
        return self.lookup in ("both", side)

    @classmethod
    def published(cls) -> "Network":
        """PSN-IRT's own training (to be used with `Priors.off()`)."""
        return cls(
            schedule="constant",
            epochs=50,
            validation=0.2,
            stop_by="f1",
            refit=False,
            updates="dense",
            start="near_zero",
        )


def parse_network(network: Network, text: str) -> Network:
    """Change one setting by `NAME=VALUE`, as the command line has it.

    Raises:
        InputError: no such setting, or a value that it cannot take.
    """
    name, mark, value = text.partition("=")
    fields = {field.name: field.type for field in dataclasses.fields(Network)}
    if not mark or name not in fields:
        raise InputError(
            f"network setting {text!r} is not known; write NAME=VALUE with one of "
            f"{', '.join(fields)}"
        )
    return dataclasses.replace(network, **{name: _value(name, fields[name], value)})


def _value(name: str, kind: Any, text: str) -> Any:
    if kind is bool:
        if text not in ("true", "false"):
            raise InputError(f"network {name} must be true or false, not {text!r}")
        return text == "true"
    if kind not in (int, float):
        return text
    try:
        return kind(text)
    except ValueError:
        what = "a whole number" if kind is int else "a number"
        raise InputError(f"network {name} must be {what}, not {text!r}") from None

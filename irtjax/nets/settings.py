"""How networks are built and trained: settings a user may choose."""

import dataclasses
from typing import Any, Literal, get_args

from irtjax.checks import check_number, check_whole
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

# Steps that an epoch is to have, by smaller batches where the responses are few. The noise of a
# smaller batch asks for shorter steps, or networks overfit: .001 for batches of 32. By the root of
# the size (.00075) one of four 4PLs of 12 x 200 had not left its start when its patience was over.
_STEPS, _LEAST_BATCH, _LARGEST_BATCH = 32, 32, 512
_RATE, _BY_SIZE = 0.003, 0.4
# What None leaves to the number of responses.
_CHOSEN = ("batch_size", "learning_rate")


@dataclasses.dataclass(frozen=True)
class Network:
    """Two towers and their training.

    Args:
        embedding: width of the rows looked up by id.
        hidden: width of the layer after it.
        layers: hidden layers of each tower after the embedding.
        learning_rate: of Adam; must be positive. None is .003, for batches below 512 times their
            share of it to the power of .4 (.001 for 32).
        schedule: `cosine` (down to 0 at the last epoch) or `constant`.
        weight_decay: added to the gradient, times the weights (Adam's L2, as in PSN-IRT).
        batch_size: responses a step; None is by the number of training responses: 512 from 16,384
            on, below a power of two of 32 at least that makes an epoch 32 steps or more.
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
    learning_rate: float | None = None
    schedule: Schedule = "cosine"
    weight_decay: float = 1e-4
    batch_size: int | None = None
    epochs: int = 15
    validation: float = 0.1
    stop_by: StopBy = "log_loss"
    patience: int = 4
    refit: bool = True
    updates: Updates = "touched"
    start: Start = "apart"
    lookup: Lookup = "both"

    def __post_init__(self) -> None:
        for name, most in _MOST.items():
            value = getattr(self, name)
            if value is not None or name not in _CHOSEN:
                object.__setattr__(self, name, check_whole(f"network {name}", value, 1, most))
        for name in ("learning_rate", "weight_decay", "validation"):
            value = getattr(self, name)
            if value is not None or name not in _CHOSEN:
                object.__setattr__(self, name, check_number(f"network {name}", value))
        if self.learning_rate is not None and self.learning_rate <= 0:
            raise InputError(f"network learning_rate must be above 0, not {self.learning_rate}")
        if self.weight_decay < 0:
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

    def for_responses(self, n_training: int) -> "Network":
        """The network for so many training responses: None is what they ask for."""
        size = self.batch_size or _batch_size(n_training)
        rate = self.learning_rate or _RATE * min(1.0, (size / _LARGEST_BATCH) ** _BY_SIZE)
        return dataclasses.replace(self, batch_size=size, learning_rate=rate)

    @property
    def steps(self) -> tuple[int, float]:
        """Batch size and learning rate, of many responses where they are not chosen yet."""
        return self.batch_size or _LARGEST_BATCH, self.learning_rate or _RATE

    def looks_up(self, side: str) -> bool:
        """Whether the tower of a side, `items` or `models`, has a row for each id."""
        return self.lookup in ("both", side)

    @classmethod
    def published(cls) -> "Network":
        """PSN-IRT's own training (to be used with `Priors.off()`)."""
        return cls(
            learning_rate=0.003,
            schedule="constant",
            batch_size=512,
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


def _batch_size(n_training: int) -> int:
    """The power of two, 32 to 512, that makes an epoch some `_STEPS` steps."""
    size = _LARGEST_BATCH
    while size > _LEAST_BATCH and n_training < _STEPS * size:
        size //= 2
    return size


def _value(name: str, kind: Any, text: str) -> Any:
    kind = next((each for each in (int, float) if kind == each | None), kind)
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

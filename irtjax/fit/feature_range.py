"""What features cannot say: outside the range that a fit has seen, or where all are the same."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from irtjax.checks import counted

__all__ = ["constant_note", "far_note"]

# Beyond the fitted range by this share of its width.
_FAR = 0.5
_NAMED = 3


def far_note(
    values: Float[np.ndarray, "rows features"], told: dict[str, Any], side: str
) -> str | None:
    """A sentence about rows far outside the range of the fitted ones; None without any.

    Args:
        values: not standardised.
        told: `names`, `low`, `high` and `scale` of the fit's features; a constant one says nothing
            anywhere.
        side: `item` or `model`.
    """
    if "low" not in told:  # fitted by an earlier version
        return None
    low, high = np.asarray(told["low"], np.float64), np.asarray(told["high"], np.float64)
    beyond = np.maximum(low - values, values - high)
    is_far = (beyond > _FAR * (high - low)) & (np.asarray(told["scale"]) != 0)
    columns = np.flatnonzero(is_far.any(axis=0))
    if not len(columns):
        return None
    named = []
    for column in columns[:_NAMED]:
        furthest = values[np.argmax(beyond[:, column]), column]
        named.append(
            f"{told['names'][column]!r} up to {furthest:.6g} (fitted {low[column]:.6g} to "
            f"{high[column]:.6g}, {counted(int(is_far[:, column].sum()), 'row')})"
        )
    more = f" and {len(columns) - _NAMED:,} more" if len(columns) > _NAMED else ""
    n_far = int(is_far.any(axis=1).sum())
    return (
        f"{n_far:,} of {counted(len(values), side)} without responses have features far outside "
        f"those that the fit has learnt from: {', '.join(named)}{more}; what the network says "
        "of them is extrapolated"
    )


def constant_note(names: Sequence[str], scale: Float[np.ndarray, " features"], side: str) -> str:
    """A sentence about features that are the same in all rows with responses; empty without any."""
    constant = [name for name, each in zip(names, scale, strict=True) if each == 0]
    if not constant:
        return ""
    shown = ", ".join(repr(name) for name in constant[:_NAMED])
    shown += f" and {len(constant) - _NAMED:,} more" if len(constant) > _NAMED else ""
    verb = "is" if len(constant) == 1 else "are"
    all_of_them = ""
    if len(constant) == len(names):
        all_of_them = f", and nothing can be told of a new {side}"
    return (
        f"{side} feature{'' if len(constant) == 1 else 's'} {shown} {verb} the same for all "
        f"{side}s with responses: nothing is learnt from that{all_of_them}"
    )

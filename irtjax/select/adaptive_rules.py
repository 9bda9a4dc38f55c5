"""How an adaptive test goes on: what is asked first, next and last, and when it stops."""

import dataclasses
import enum
from collections.abc import Mapping

from irtjax.checks import check_number, check_whole, shown
from irtjax.errors import InputError

__all__ = ["CRITERIA", "AdaptiveRules", "Ending"]

CRITERIA = ("posterior", "information", "kl")


class Ending(enum.Enum):
    """Why an adaptive test ended; the value is what a user reads."""

    open = ""
    length = "the most items that may be asked were answered"
    standard_error = "the standard error is small enough"
    nothing_left = "no item is left that may be asked"
    little_left = "no item left would narrow the ability by the least gain"


@dataclasses.dataclass(frozen=True)
class AdaptiveRules:
    """Rules of an adaptive test.

    Args:
        max_items: most items a model is asked.
        se: stop once the standard error of every ability is at most this, in latent standard
            deviations, above 0; None never.
        criterion: `posterior` (information averaged over where the ability may be), `information`
            (at the ability's mean) or `kl` (mutual information of answer and ability). With more
            dims the first two are Bayesian D-optimality.
        n_first: so many first items are chosen by `kl`, which also counts abilities far away.
        least_gain: stop when no item left is expected to lower the variance by this share.
        randomesque: choose at random among so many best items (exposure control); 1 the best.
        quotas: at most so many items of each group; the next item is of the group with the largest
            share of its quota left. Groups that are not named share what is left of `max_items`.
        seed: of the random choices.

    Raises:
        InputError: a number out of its bounds, a criterion that is not known, quotas that exceed
            `max_items`.
    """

    max_items: int = 50
    se: float | None = None
    criterion: str = "posterior"
    n_first: int = 5
    least_gain: float = 0.0
    randomesque: int = 1
    quotas: Mapping[str, int] = dataclasses.field(default_factory=dict)
    seed: int = 0

    def __post_init__(self) -> None:
        check_whole("max_items", self.max_items, 1)
        if self.se is not None:
            remedy = "leave it out to stop by other rules only"
            if not check_number("se", self.se, 0, remedy=remedy):
                raise InputError(f"se must be above 0, which no test reaches; {remedy}")
        if self.criterion not in CRITERIA:
            raise InputError(
                f"criterion {shown(self.criterion)} is not known; use one of {', '.join(CRITERIA)}"
            )
        check_whole("n_first", self.n_first, 0)
        check_number("least_gain", self.least_gain, 0, 1)
        check_whole("randomesque", self.randomesque, 1)
        check_whole("seed", self.seed, 0, 2**32 - 1)
        if not isinstance(self.quotas, Mapping):
            raise InputError(
                f"quotas must map groups to numbers of items, not {shown(self.quotas)}"
            )
        for name, quota in self.quotas.items():
            check_whole(f"the quota of {name!r}", quota, 0)
        total = sum(self.quotas.values())
        if total > self.max_items:
            raise InputError(
                f"quotas ask for {total:,} items, but max_items is {self.max_items:,}; lower them "
                "or raise max_items"
            )

"""Which item response model is fitted: its family and its number of dims."""

import dataclasses
from typing import Any

from irtjax.checks import check_whole, shown
from irtjax.errors import InputError

__all__ = ["FAMILIES", "ModelSpec", "check_spec"]

FAMILIES = ("rasch", "1pl", "2pl", "3pl", "4pl")


@dataclasses.dataclass(frozen=True)
class ModelSpec:
    """An item response model: its family and its number of dims.

    `P = guessing + (feasibility - guessing) * sigmoid(slope . theta + intercept)`.

    Every family is the 4PL with some parameters fixed: 1PL one common slope a dim, 2PL free
    slopes, 3PL also guessing, 4PL also feasibility. `rasch` is the 1PL on the scale where the
    slope is 1 and the abilities' standard deviation is free.

    Args:
        family: `rasch`, `1pl`, `2pl`, `3pl` or `4pl`.
        dims: number of latent dimensions, at least 1.

    Raises:
        InputError: for another family or fewer than one dim.

    >>> ModelSpec("3pl", dims=2).has_guessing
    True
    """

    family: str = "2pl"
    dims: int = 1

    def __post_init__(self) -> None:
        family = self.family.lower() if isinstance(self.family, str) else self.family
        if not isinstance(family, str) or family not in FAMILIES:
            raise InputError(
                f"family {shown(self.family)} is not known; use one of {', '.join(FAMILIES)}"
            )
        object.__setattr__(self, "dims", check_whole("dims", self.dims, 1))
        object.__setattr__(self, "family", family)

    @property
    def has_common_slope(self) -> bool:
        """Whether all items share one slope a dim (Rasch, 1PL)."""
        return self.family in ("rasch", "1pl")

    @property
    def has_guessing(self) -> bool:
        """Whether the lower asymptote is estimated (3PL, 4PL)."""
        return self.family in ("3pl", "4pl")

    @property
    def has_feasibility(self) -> bool:
        """Whether the upper asymptote is estimated (4PL)."""
        return self.family == "4pl"

    @property
    def has_asymptotes(self) -> bool:
        """Whether any asymptote is estimated; without, guessing is 0 and feasibility 1."""
        return self.has_guessing or self.has_feasibility

    def has_prior(self, name: str) -> bool:
        """Whether the family estimates what a prior of this name is of."""
        if name == "guessing":
            return self.has_guessing
        return name != "infeasibility" or self.has_feasibility


def check_spec(spec: Any) -> None:
    """Refuse what is no spec.

    Raises:
        InputError: one line says how to write one.
    """
    if not isinstance(spec, ModelSpec):
        example = shown(spec) if isinstance(spec, str) else "'2pl', dims=1"
        raise InputError(
            f"the spec must be a ModelSpec, not {shown(spec)}; write ModelSpec({example})"
        )

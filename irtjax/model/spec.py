"""Which item response model is fitted: its family and its number of dims."""

import dataclasses

from irtjax.errors import InputError

__all__ = ["FAMILIES", "ModelSpec"]

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
        if family not in FAMILIES:
            raise InputError(
                f"family {self.family!r} is not known; use one of {', '.join(FAMILIES)}"
            )
        if isinstance(self.dims, bool) or not isinstance(self.dims, int) or self.dims < 1:
            raise InputError(f"dims must be a whole number of at least 1, not {self.dims!r}")
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

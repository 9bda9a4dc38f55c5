"""The settings of `read_responses`, checked once and handed to every reader."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from irtjax.errors import InputError
from irtjax.io.choose import wanted_names
from irtjax.io.combine import DUPLICATES
from irtjax.io.files import quoted
from irtjax.io.rows import Grid, Rows
from irtjax.io.values import FractionalPolicy

__all__ = ["FORMATS", "Options", "Part"]

FORMATS = ("long", "wide", "npz", "pyirt", "lm-eval")
_RUNS = ("newest", "all")
# Settings that mean something for some formats only; elsewhere they are refused, not ignored.
_BELONGS = {
    "model_column": ("long",),
    "item_column": ("long",),
    "response_column": ("long",),
    "metric": ("long", "lm-eval"),
    "filter": ("long", "lm-eval"),
    "id_column": ("wide",),
    "no_header": ("wide",),
    "items_in_rows": ("wide", "npz"),
    "runs": ("lm-eval",),
}


@dataclasses.dataclass(frozen=True)
class Options:
    """Settings of `read_responses`; see there."""

    format: str | None = None
    model_column: str | None = None
    item_column: str | None = None
    response_column: str | None = None
    duplicates: str = "error"
    fractional: str = "error"
    items_in_rows: bool = False
    no_header: bool = False
    id_column: str | None = None
    metric: str | Sequence[str] | None = None
    filter: str | Sequence[str] | None = None
    runs: str = "newest"

    def check(self) -> None:
        """Refuse a setting that is not one of its choices."""
        for flag, value, allowed in (
            ("format", self.format, (None, *FORMATS)),
            ("duplicates", self.duplicates, DUPLICATES),
            ("runs", self.runs, _RUNS),
        ):
            if value not in allowed:
                names = ", ".join(name for name in allowed if name)
                raise InputError(f"--{flag} is one of {names}, not {quoted(value)}")
        if self.no_header and self.id_column is not None:
            raise InputError("--no-header and --id-column exclude each other: no column has a name")
        FractionalPolicy.parse(self.fractional)

    def check_used(self, formats: Sequence[str]) -> None:
        """Refuse a setting that none of the formats read has a use for."""
        default = Options()
        for name, belongs in _BELONGS.items():
            if getattr(self, name) != getattr(default, name) and not set(belongs) & set(formats):
                flag = "--" + name.replace("_", "-")
                raise InputError(
                    f"{flag} is for the format {' or '.join(belongs)}, but the input is "
                    f"{', '.join(sorted(set(formats)))}; drop it, or correct --format"
                )

    @property
    def overrides(self) -> dict[str, str | None]:
        """Role to the column that the user named."""
        return {
            "model": self.model_column,
            "item": self.item_column,
            "response": self.response_column,
        }

    @property
    def metrics(self) -> list[str]:
        """The metrics asked for, in order of preference."""
        return wanted_names(self.metric)

    @property
    def filters(self) -> list[str]:
        """The filters asked for, in order of preference."""
        return wanted_names(self.filter)


@dataclasses.dataclass(frozen=True)
class Part:
    """What a reader found: the responses, its choices for the provenance, its warnings."""

    found: Rows | Grid
    choices: dict[str, Any]
    notes: tuple[str, ...] = ()

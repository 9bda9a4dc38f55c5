"""What a part of an audit is: tables from a fit, and a section of the page from the tables."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence

import pandas as pd
from matplotlib.figure import Figure

from irtjax.fit.result import FitResult
from irtjax.report.blocks import Block, Guide, Picture
from irtjax.report.style import svg_of

__all__ = ["Part", "Request", "Tables", "drawn"]

Tables = Mapping[str, pd.DataFrame]


@dataclasses.dataclass(frozen=True, eq=False)
class Request:
    """What an audit is asked to do.

    Attributes:
        fit: the fit.
        group: item column of the benchmarks, None without.
        by: further item columns whose values are looked at like benchmarks.
        answers: which option each model gave (`model_id`, `item_id`, `answer`, `key`), or None.
        expected: item column that says which dim an item should measure, or None.
        published: declared averages (`model_id`, `benchmark`, `score`), or None.
        quick: fewer refits.
        seed: of everything that is random.
    """

    fit: FitResult
    group: str | None = None
    by: Sequence[str] = ()
    answers: pd.DataFrame | None = None
    expected: str | None = None
    published: pd.DataFrame | None = None
    quick: bool = False
    seed: int = 0

    @property
    def columns(self) -> list[str]:
        """The item columns to look at, that of the benchmarks first, each once."""
        first = [] if self.group is None else [self.group]
        return list(dict.fromkeys([*first, *self.by]))


def _nothing_against(request: Request) -> str:
    return ""


def _nothing_to_close(request: Request, tables: Tables) -> dict[str, pd.DataFrame]:
    return {}


@dataclasses.dataclass(frozen=True)
class Part:
    """One part of an audit.

    Attributes:
        name: anchor of its section, and what progress shows.
        title: heading of its section.
        guide: what the section shows, how to read it, what to do next.
        tables: computes its tables, by the names of their CSV files (without `.csv`).
        blocks: its section, made of nothing but these tables (and ids, names and settings of the
            request), so that every number on the page is in a file.
        reason_against: why it cannot be done here, in a sentence; empty where it can.
        closing: its tables that sum up those of all parts, made once these are there.
    """

    name: str
    title: str
    guide: Guide
    tables: Callable[[Request], dict[str, pd.DataFrame]]
    blocks: Callable[[Request, Tables], list[Block]]
    reason_against: Callable[[Request], str] = _nothing_against
    closing: Callable[[Request, Tables], dict[str, pd.DataFrame]] = _nothing_to_close


def drawn(figure: Figure, name: str, description: str, *csv: str) -> Picture:
    """A figure as a block.

    Args:
        figure: the figure.
        name: unique in the page.
        description: what it shows, for those who cannot see it.
        csv: names of the tables that hold its numbers.
    """
    return Picture(svg_of(figure, name, description), [f"{each}.csv" for each in csv])

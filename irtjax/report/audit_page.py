"""`audit`: all parts of an audit, their tables and the page that shows them."""

import dataclasses
import importlib.metadata
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from irtjax.audit.integrity.blocks import chosen_group
from irtjax.audit.integrity.published import check_published
from irtjax.checks import check_path, check_text
from irtjax.data.answers import coded_answers
from irtjax.data.checks import check_seed
from irtjax.errors import InputError
from irtjax.fit.result import FitResult
from irtjax.io import write_json, write_table
from irtjax.io.write import atomic_path
from irtjax.report.blocks import Section, Words
from irtjax.report.page import render_page
from irtjax.report.part import Part, Request
from irtjax.report.parts.benchmarks import BENCHMARKS
from irtjax.report.parts.course import COURSE
from irtjax.report.parts.dimensions import DIMENSIONS
from irtjax.report.parts.flags import FLAGS
from irtjax.report.parts.integrity import INTEGRITY
from irtjax.report.parts.items import ITEMS
from irtjax.report.parts.models import MODELS
from irtjax.report.parts.overview import OVERVIEW
from irtjax.report.parts.precision import PRECISION
from irtjax.report.parts.prediction import PREDICTION
from irtjax.report.parts.shorter import SHORTER

__all__ = ["PARTS", "Audit", "OnPart", "audit"]

# In the order of the page. A part more is an entry more.
PARTS: tuple[Part, ...] = (
    OVERVIEW,
    INTEGRITY,
    MODELS,
    DIMENSIONS,
    BENCHMARKS,
    ITEMS,
    FLAGS,
    PRECISION,
    SHORTER,
    PREDICTION,
    COURSE,
)

# Called before each part with its title, how many are done, and how many there are.
OnPart = Callable[[str, int, int], None]


@dataclasses.dataclass(frozen=True, eq=False)
class Audit:
    """What an audit found: made by `irtjax.audit`.

    Attributes:
        tables: data frames by the names of their CSV files (without `.csv`).
        html: the page, one file that needs no network.
        report: settings, versions, and for each part its seconds, or why it was left out.
    """

    tables: Mapping[str, pd.DataFrame]
    html: str
    report: dict[str, Any]

    def save(self, folder: str | Path) -> None:
        """Write a CSV a table, `report.html` and, last, `audit.json`.

        Raises:
            InputError: the folder cannot be written.
        """
        home = check_path("the folder to save to", folder)
        try:
            home.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"cannot make the folder {home}: {error.strerror}") from None
        for name, table in self.tables.items():
            write_table(table, home / f"{name}.csv")
        with atomic_path(home / "report.html") as temporary:
            temporary.write_text(self.html, encoding="utf-8")
        files = [f"{name}.csv" for name in self.tables] + ["report.html", "audit.json"]
        write_json(self.report | {"files": files}, home / "audit.json")

    def __repr__(self) -> str:
        return f"Audit({', '.join(self.tables)})"


def audit(
    fit: FitResult,
    *,
    group: str | None = None,
    by: Sequence[str] = (),
    answers: pd.DataFrame | None = None,
    expected: str | None = None,
    published: pd.DataFrame | None = None,
    quick: bool = False,
    seed: int = 0,
    on_part: OnPart | None = None,
) -> Audit:
    """Everything there is to say about a fit, its data and its items, as tables and as a page.

    Args:
        fit: the fit.
        group: item column of the benchmarks; `none` for all items as one; `benchmark` without,
            where each item has it.
        by: further item columns to look at like benchmarks.
        answers: which option each model gave: `model_id`, `item_id`, `answer`, `key`.
        expected: item column that says what an item should measure.
        published: declared averages: `model_id`, `benchmark`, `score` (shares or percentages).
        quick: fewer refits.
        seed: of everything that is random.
        on_part: called before each part.

    Raises:
        InputError: a column that the items do not have, answers that do not fit.

    >>> import irtjax as ij
    >>> data = ij.simulate(ij.ModelSpec(), n_models=20, n_items=60, n_benchmarks=2).data
    >>> found = ij.audit(ij.fit(data), quick=True)
    >>> found.tables["trust"]["check"][0]
    'convergence'
    """
    request = _checked(Request(fit, group, by, answers, expected, published, quick, seed))
    tables, sections, told = _run(request, on_part)
    report = {
        "versions": {"irtjax": importlib.metadata.version("irtjax")},
        "settings": {
            "group": request.group,
            "by": list(request.by),
            "answers": answers is not None,
            "expected": expected,
            "published": published is not None,
            "quick": quick,
            "seed": seed,
        },
        "parts": told,
    }
    return Audit(tables, render_page(_title(request), _subtitle(fit), sections), report)


def _checked(request: Request) -> Request:
    """The request with its defaults, once it is known to be possible."""
    fit: Any = request.fit
    if not isinstance(fit, FitResult):
        raise InputError(f"audit takes a FitResult, not {type(fit).__name__}")
    by = [request.by] if isinstance(request.by, str) else list(request.by)
    group = chosen_group(fit.data, request.group)
    if group is not None and request.group is None:
        group = fit.group or group
    for column in (group, *by, request.expected):
        if column is not None:
            fit.data.groups(check_text("a column", column))
    check_seed(request.seed)
    if request.answers is not None:
        coded_answers(request.answers, fit.data)
    if request.published is not None:
        check_published(request.published)
    return dataclasses.replace(request, group=group, by=tuple(by), quick=bool(request.quick))


def _run(
    request: Request, on_part: OnPart | None
) -> tuple[dict[str, pd.DataFrame], list[Section], dict[str, Any]]:
    """Tables and sections of all parts, and what the report says of each part."""
    tables: dict[str, pd.DataFrame] = {}
    own: dict[str, dict[str, pd.DataFrame]] = {}
    told: dict[str, Any] = {}
    for k, part in enumerate(PARTS):
        if on_part is not None:
            on_part(part.title, k, len(PARTS))
        start = time.perf_counter()
        reason = part.reason_against(request)
        own[part.name] = {} if reason else part.tables(request)
        assert not set(own[part.name]) & set(tables), "two parts have a table of one name"
        tables |= own[part.name]
        told[part.name] = {"seconds": time.perf_counter() - start}
        if reason:
            told[part.name]["left_out"] = reason
    sections = []
    for part in PARTS:
        start = time.perf_counter()
        if "left_out" not in told[part.name]:
            own[part.name] |= part.closing(request, tables)
        tables |= own[part.name]
        sections.append(_section(part, request, own[part.name], told[part.name]))
        told[part.name]["seconds"] += time.perf_counter() - start
        told[part.name]["tables"] = list(own[part.name])
    return tables, sections, told


def _section(
    part: Part, request: Request, tables: dict[str, pd.DataFrame], told: dict[str, Any]
) -> Section:
    """The section of a part; a part that cannot be done says why."""
    if "left_out" in told:
        return Section(part.name, part.title, [Words(told["left_out"])])
    return Section(part.name, part.title, part.blocks(request, tables), part.guide)


def _title(request: Request) -> str:
    if request.group is None:
        return "Audit of the items"
    names = request.fit.data.groups(request.group)[1]
    return f"Audit of {names[0]}" if len(names) == 1 else f"Audit of {len(names):,} benchmarks"


def _subtitle(fit: FitResult) -> str:
    dims = "1 dim" if fit.spec.dims == 1 else f"{fit.spec.dims} dims"
    return (
        f"{fit.data.n_models:,} models x {fit.data.n_items:,} items, {fit.spec.family.upper()}, "
        f"{dims}; every number stands in a CSV file beside this page"
    )

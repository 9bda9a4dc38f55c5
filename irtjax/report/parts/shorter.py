"""How well shorter versions of the benchmarks rank models that they were not chosen by."""

import pandas as pd

from irtjax.audit.filtering import FEWEST_MODELS, n_removed, validate_filters
from irtjax.checks import counted
from irtjax.report.blocks import Block, Guide, TableView
from irtjax.report.part import Part, Request, Tables

__all__ = ["SHORTER"]

_GUIDE = Guide(
    shows="How well fewer items rank models that had no part in choosing them: items are chosen by "
    "a fit of half of the models, and judged by the other half.",
    reading="r and rho (Pearson, Spearman) of the averages over the items kept: full, with those "
    "over all items; ability, with the ability in the dim. filter keeps the most discriminating of "
    "every difficulty (BenchMIRT's), selection is irtjax select, random as many at random.",
    action="To keep the ranking by the average, take the version with the highest rho full; to "
    "measure one dim, the highest r ability. `irtjax filter` and `irtjax select` write them.",
)

_HALVES, _QUICK_HALVES = 3, 2
_REMOVED, _QUICK_REMOVED = (0.5, 0.9), (0.9,)


def _tables(request: Request) -> dict[str, pd.DataFrame]:
    found = validate_filters(
        request.fit,
        dims=range(1, request.fit.spec.dims + 1),
        by=request.group,
        removed=_QUICK_REMOVED if request.quick else _REMOVED,
        halves=_QUICK_HALVES if request.quick else _HALVES,
        seed=request.seed,
    )
    return {"shorter_versions": found}


def _blocks(request: Request, tables: Tables) -> list[Block]:
    table = tables["shorter_versions"]
    shown = [name for name in table if not str(name).endswith("_se")]
    return [
        TableView(
            table[shown],
            "shorter_versions.csv",
            "By dim and share removed",
            len(table),
            choices=["method"],
        ),
    ]


def _reason_against(request: Request) -> str:
    if "dim_names" in request.fit.report or "anchors" in request.fit.report:
        return "Confirmatory and anchored fits are not fitted again without models."
    n_items, most = request.fit.data.n_items, max(_REMOVED)
    if n_removed(n_items, most) >= n_items:
        return f"A version without {most:.0%} of {counted(n_items, 'item')} would have none."
    n_models = int((request.fit.data.totals("models")[0] > 0).sum())
    if n_models < FEWEST_MODELS:
        return f"Half of the models choose the items; that needs {FEWEST_MODELS} models at least."
    return ""


SHORTER = Part("shorter", "Shorter versions", _GUIDE, _tables, _blocks, _reason_against)

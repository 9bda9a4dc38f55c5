"""What was fitted, and whether to trust it."""

import pandas as pd

from irtjax.fit.report import steps_taken
from irtjax.fit.result import FitResult
from irtjax.report.blocks import Block, Guide, TableView, Words
from irtjax.report.part import Part, Request, Tables
from irtjax.report.trust import trust_checks

__all__ = ["OVERVIEW", "fit_facts"]

_GUIDE = Guide(
    shows="Whether to believe this page, the doubts first, and what was fitted.",
    reading="good: nothing to do. look: it may change what you conclude. bad: do not quote results "
    "that rest on it.",
    action="Work through bad and look from the top; each finding names what to change. With more "
    "than one bad, mend and fit again before you read on.",
)
_WORST_FIRST = ("bad", "look", "good")


def fit_facts(fit: FitResult) -> pd.DataFrame:
    """What was fitted: `fact`, `value` (text)."""
    report, data = fit.report, fit.data
    facts = {
        "models": f"{data.n_models:,}",
        "items": f"{data.n_items:,}",
        "responses": f"{data.n_responses:,} ({data.density:.1%} of the matrix)",
        "family": fit.spec.family.upper(),
        "dims": str(fit.spec.dims),
        "benchmark effects": fit.group or "none",
        "estimator": f"{report.get('estimator', '')}: {report.get('estimator_reason', '')}",
        "status": f"{fit.status} after {steps_taken(report)}",
        "held-out responses": f"{report['heldout']['n']:,}" if "heldout" in report else "none",
        "irtjax": str(report.get("versions", {}).get("irtjax", "")),
    }
    for k, each in enumerate(report.get("inputs", [])):
        facts[f"input {k + 1}"] = f"{each['path']} (SHA-256 {each['sha256'][:12]}…)"
    return pd.DataFrame({"fact": list(facts), "value": list(facts.values())})


def _tables(request: Request) -> dict[str, pd.DataFrame]:
    warnings = pd.DataFrame({"warning": list(request.fit.report.get("warnings", []))}, dtype=object)
    return {"fit": fit_facts(request.fit), "warnings": warnings}


def _closing(request: Request, tables: Tables) -> dict[str, pd.DataFrame]:
    return {"trust": trust_checks(request.fit, tables)}


def _blocks(request: Request, tables: Tables) -> list[Block]:
    facts, checks, warnings = tables["fit"], tables["trust"], tables["warnings"]
    worst_first = checks["verdict"].map(_WORST_FIRST.index).sort_values(kind="stable").index
    return [
        TableView(
            checks.loc[worst_first],
            "trust.csv",
            "Checks",
            len(checks),
            long_text=["finding"],
            verdicts=["verdict"],
        ),
        *(Words(f"The fit warns: {text}", is_warning=True) for text in warnings["warning"]),
        TableView(facts, "fit.csv", "What was fitted", len(facts), long_text=["value"]),
    ]


OVERVIEW = Part("overview", "Whether to trust it", _GUIDE, _tables, _blocks, closing=_closing)

"""Whether the responses are what they say: shifted, misordered, copied and filled blocks."""

import pandas as pd

from irtjax.audit.integrity.blocks import NO_GROUP
from irtjax.audit.integrity.check import audit_data
from irtjax.checks import counted
from irtjax.fit.all_responses import all_responses
from irtjax.report.blocks import Block, Guide, TableView, Words
from irtjax.report.part import Part, Request, Tables

__all__ = ["INTEGRITY"]

_GUIDE = Guide(
    shows="Blocks (what one model answered of one benchmark) that do not agree with those of the "
    "other models, or agree too well with one.",
    reading="The explanation says what was seen; z is how many standard errors it lies from what "
    "the other models lead to expect, p adjusted the chance of it in clean data, over all tests. "
    "Lag is how many items (columns of the matrix) to the right the shifted answers belong; "
    "negative: to the left.",
    action="Before anything below: compare each accused block with its source. Shifted, misordered "
    "and copied blocks are faults of files: correct them, or leave the block out, and fit again. "
    "Of copied models keep one.",
)

_FEWEST_MODELS = 3
_MOST_ROWS = 200
_COLUMNS = [
    "model_id",
    "explanation",
    "kind",
    "benchmark",
    "partner_id",
    "lag",
    "n_responses",
    "z",
    "p_adjusted",
]


def _tables(request: Request) -> dict[str, pd.DataFrame]:
    # What was held out of the fit is evidence all the same, and part of every published average.
    data = all_responses(request.fit)
    # The request has its default by now: None is all items as one.
    found = audit_data(data, group=request.group or NO_GROUP, published=request.published)
    summary = {
        "n_models": found.n_answering,
        "n_without_responses": len(found.models) - found.n_answering,
        "effective_models": found.effective_models,
        "n_blocks": len(found.blocks),
        "n_accusations": len(found.accusations),
    }
    tables = {
        "accusations": found.accusations,
        "blocks": found.blocks,
        "model_evidence": found.models,
        "data_summary": pd.DataFrame([summary]),
    }
    if found.published is not None:
        tables["published"] = found.published
    return tables


def _blocks(request: Request, tables: Tables) -> list[Block]:
    accusations, summary = tables["accusations"], tables["data_summary"].iloc[0]
    n_silent = int(summary["n_without_responses"])
    with_responses = " with responses" if n_silent else ""
    silent = f", and {n_silent:,} more have none" if n_silent else ""
    n_models, effective = int(summary["n_models"]), summary["effective_models"]
    blocks: list[Block] = [
        Words(
            f"{counted(int(summary['n_accusations']), 'accusation')} in "
            f"{counted(int(summary['n_blocks']), 'block')}. If whole models that are copies or "
            f"near-copies count as one, {effective:.1f} of {n_models:,} models{with_responses} "
            f"remain{silent}; a copied block is an accusation, and its model counts "
            "(data_summary.csv; each model in model_evidence.csv, each block in blocks.csv).",
            is_warning=bool(summary["n_accusations"]),
        ),
    ]
    if len(accusations):
        shown = accusations[_COLUMNS].head(_MOST_ROWS)
        blocks.append(
            TableView(
                shown,
                "accusations.csv",
                "Accused blocks",
                len(accusations),
                is_searchable=True,
                choices=["kind"],
                long_text=["explanation"],
                is_cards=True,
            )
        )
    if "published" in tables:
        declared = tables["published"]
        title = "Declared scores beside those of the data"
        shown = declared.head(_MOST_ROWS)
        blocks.append(TableView(shown, "published.csv", title, len(declared), True))
    return blocks


def _reason_against(request: Request) -> str:
    if request.fit.data.n_models < _FEWEST_MODELS:
        return "Blocks are judged by the other models, and there are fewer than three."
    return ""


INTEGRITY = Part("data", "Are the data what they say", _GUIDE, _tables, _blocks, _reason_against)

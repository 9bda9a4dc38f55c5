"""How the fit proceeded."""

import pandas as pd

from irtjax.report.blocks import Block, Guide
from irtjax.report.part import Part, Request, Tables, drawn
from irtjax.report.trace import draw_trace, trace_table

__all__ = ["COURSE"]

_GUIDE = Guide(
    shows="The objective and the largest move of an ability, step by step.",
    reading="The objective (log-likelihood or its bound, nats) should level off, the moves fall.",
    action="If they still change at the end, fit again with more `--max-steps`; if they jump, with "
    "fewer dims or a simpler family.",
)


def _tables(request: Request) -> dict[str, pd.DataFrame]:
    return {"trace": trace_table(request.fit)}


def _blocks(request: Request, tables: Tables) -> list[Block]:
    text = "The objective and the largest move of an ability by step."
    figure = draw_trace(tables["trace"], request.fit.status)
    return [drawn(figure, "course-trace", text, "trace")]


def _reason_against(request: Request) -> str:
    trace = request.fit.report.get("trace") or {}
    return "" if trace.get("objective") else "The fit's report has no trace."


COURSE = Part("course", "Course of the fit", _GUIDE, _tables, _blocks, _reason_against)

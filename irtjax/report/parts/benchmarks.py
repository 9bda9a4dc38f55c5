"""What each benchmark measures, and what its items are worth."""

import pandas as pd

from irtjax.audit.quality import INDICATORS, item_quality, ranked_means
from irtjax.report.blocks import Block, TableView, Words
from irtjax.report.heatmap import draw_loadings, mean_loadings
from irtjax.report.part import Part, Request, Tables, drawn

__all__ = ["BENCHMARKS"]

_MOST_ROWS = 200


def _tables(request: Request) -> dict[str, pd.DataFrame]:
    quality, ranks = item_quality(request.fit), []
    for column in request.columns:
        found = ranked_means(quality, request.fit.data.item_metadata[column].rename("value"))
        found.insert(0, "column", column)
        ranks.append(found)
    loadings = [mean_loadings(request.fit, column) for column in request.columns]
    return {
        "benchmark_loadings": pd.concat(loadings, ignore_index=True),
        "benchmark_quality": pd.concat(ranks, ignore_index=True),
    }


def _blocks(request: Request, tables: Tables) -> list[Block]:
    loadings, quality = tables["benchmark_loadings"], tables["benchmark_quality"]
    blocks: list[Block] = []
    for k, column in enumerate(request.columns):
        mine = loadings[loadings["column"] == column]
        text = f"Mean loading of the items of each {column} on each dim."
        name = f"loadings-{k}"
        blocks.append(drawn(draw_loadings(mine), name, text, "benchmark_loadings"))
    blocks.append(
        Words(
            "Quality as PSN-IRT ranks it: discrimination, guessing, feasibility, headroom at the "
            "highest ability (leh) and information there; 1 is best, the total leaves difficulty "
            "out."
        )
    )
    names = [indicator.name for indicator in INDICATORS]
    shown = quality[["column", "value", "n_items", *names, "total_rank"]].head(_MOST_ROWS)
    choices = ["column"] if len(request.columns) > 1 else []
    if not choices:
        shown = shown.drop(columns="column").rename(columns={"value": request.columns[0]})
    title = "Mean quality of the items"
    blocks.append(
        TableView(shown, "benchmark_quality.csv", title, len(quality), True, choices=choices)
    )
    return blocks


def _reason_against(request: Request) -> str:
    return "" if request.columns else "The items have no column that says their benchmark."


BENCHMARKS = Part("benchmarks", "What benchmarks measure", _tables, _blocks, _reason_against)

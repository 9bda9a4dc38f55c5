"""What each benchmark measures, whether that is what it says, and what its items are worth."""

import pandas as pd

from irtjax.audit.benchmark_dims import dims_by_value, expected_dims, mixed_signals
from irtjax.audit.integrity.blocks import DEFAULT_GROUP
from irtjax.audit.quality import INDICATORS, item_quality, ranked_means
from irtjax.report.blocks import Block, Guide, TableView, Words
from irtjax.report.heatmap import draw_loadings, mean_loadings
from irtjax.report.part import Part, Request, Tables, drawn

__all__ = ["BENCHMARKS"]

_GUIDE = Guide(
    shows="Which ability the items of each benchmark rest on, how strongly, and what the items are "
    "worth on average.",
    reading="A loading is the correlation of an answer with an ability, -1 to 1; negative: models "
    "higher in it do worse. Discrimination share is the dim's part of what the items tell models "
    "apart by; correlation is that of the models' averages with the ability, sign 0 where it may "
    "be chance. Headroom (leh) is what models beyond the best would still gain.",
    action="Report benchmarks of one dim together, and apart from those of another. Look for the "
    "cause of a negative sign (refusals, a reversed key); split a benchmark that mixes signals; "
    "renew or retire one with little discrimination and no headroom.",
)

_MOST_ROWS = 200


def _tables(request: Request) -> dict[str, pd.DataFrame]:
    fit, quality = request.fit, item_quality(request.fit)
    metadata = fit.data.item_metadata
    ranks = [
        ranked_means(quality, metadata[column].rename("value")).assign(column=column)
        for column in request.columns
    ]
    tables = {
        "benchmark_loadings": pd.concat(
            [mean_loadings(fit, column) for column in request.columns], ignore_index=True
        ),
        "benchmark_dims": dims_by_value(fit, request.columns),
        "benchmark_quality": pd.concat(ranks, ignore_index=True),
    }
    if request.expected is not None and request.group is not None:
        tables["benchmark_expected"] = expected_dims(fit, request.expected, column=request.group)
    within = [column for column in request.by if column != request.group]
    if request.group is not None and within:
        mixed = [mixed_signals(fit, each, column=request.group) for each in within]
        mixed = [table.assign(within=each) for table, each in zip(mixed, within, strict=True)]
        tables["benchmark_mixed"] = pd.concat(mixed, ignore_index=True)
    return tables


def _blocks(request: Request, tables: Tables) -> list[Block]:
    return [
        *_pictures(request, tables["benchmark_loadings"]),
        _measured(request, tables["benchmark_dims"]),
        *_expectations(request, tables),
        Words(
            "Total rank is the sum of the ranks as PSN-IRT has them (discrimination, guessing, "
            "feasibility, headroom at the highest ability, information there; 1 is best), without "
            "difficulty."
        ),
        _quality(request, tables["benchmark_quality"]),
    ]


def _pictures(request: Request, loadings: pd.DataFrame) -> list[Block]:
    return [
        drawn(
            draw_loadings(loadings[loadings["column"] == column]),
            f"loadings-{k}",
            f"Mean loading of the items of each {column} on each dim.",
            "benchmark_loadings",
        )
        for k, column in enumerate(request.columns)
    ]


def _measured(request: Request, table: pd.DataFrame) -> TableView:
    """Of each value the dim that has the largest share of its items' discrimination."""
    shown = table[table["is_dominant"]].rename(columns={"dim": "dominant_dim"})
    columns = ["value", "n_items", "dominant_dim", "discrimination_share", "mean_loading"]
    columns += ["correlation", "p_adjusted", "sign"]
    return _by_column(request, shown, columns, "benchmark_dims.csv", "What each measures", table)


def _quality(request: Request, table: pd.DataFrame) -> TableView:
    names = [indicator.name for indicator in INDICATORS]
    columns = ["value", "n_items", *names, "total_rank"]
    title = "Mean quality of the items"
    return _by_column(request, table, columns, "benchmark_quality.csv", title, table)


def _by_column(
    request: Request,
    shown: pd.DataFrame,
    columns: list[str],
    csv: str,
    title: str,
    table: pd.DataFrame,
) -> TableView:
    """Rows by value; with one column its name is the heading of the values."""
    several = len(request.columns) > 1
    frame = shown[["column", *columns] if several else columns].head(_MOST_ROWS)
    if not several:
        frame = _headed(frame, request.columns[0])
    choices = ["column"] if several else []
    return TableView(frame, csv, title, len(table), True, choices, is_cards=True)


def _headed(table: pd.DataFrame, column: str | None) -> pd.DataFrame:
    """The table with its values under the name of the column that they are of."""
    return table if column in table else table.rename(columns={"value": column})


def _expectations(request: Request, tables: Tables) -> list[Block]:
    blocks: list[Block] = []
    if "benchmark_expected" in tables:
        table = tables["benchmark_expected"]
        title = f"Do they measure their {request.expected}"
        shown = _headed(table.head(_MOST_ROWS), request.group)
        blocks.append(
            TableView(
                shown,
                "benchmark_expected.csv",
                title,
                len(table),
                is_searchable=True,
                long_text=["reason"],
                is_cards=True,
            )
        )
    if "benchmark_mixed" in tables:
        table = tables["benchmark_mixed"]
        mixed = table[table["is_mixed"]]
        if mixed.empty:
            blocks.append(
                Words("No benchmark mixes different signals by sub-category (benchmark_mixed.csv).")
            )
        else:
            title = "Benchmarks that mix several signals"
            shown = _headed(mixed.head(_MOST_ROWS), request.group)
            blocks.append(TableView(shown, "benchmark_mixed.csv", title, len(table), True))
    return blocks


def _reason_against(request: Request) -> str:
    if request.columns:
        return ""
    metadata = request.fit.data.item_metadata
    if DEFAULT_GROUP not in metadata:
        return "The items have no column that says their benchmark."
    n = int(metadata[DEFAULT_GROUP].isna().sum())
    if n == 0:
        return "All items were asked to be one benchmark."
    have = "item has" if n == 1 else "items have"
    return f"{n:,} {have} no benchmark; give each one, or name another column of the items."


BENCHMARKS = Part(
    "benchmarks", "What benchmarks measure", _GUIDE, _tables, _blocks, _reason_against
)

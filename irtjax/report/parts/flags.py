"""Items worth a look, with the reason and the item's text."""

import pandas as pd

from irtjax.audit.flag_names import FLAGS as MEANINGS
from irtjax.audit.flags import flag_items
from irtjax.report.blocks import Block, Guide, TableView
from irtjax.report.part import Part, Request, Tables

__all__ = ["FLAGS"]

_GUIDE = Guide(
    shows="Items that look broken, the most pressing first, each with its number, threshold and "
    "reason.",
    reading="Value is what was measured and threshold where flags begin. A false discovery rate is "
    "the expected share of false ones among the items with this flag down to that row.",
    action="Review from the top, flag by flag, and stop where the false discovery rate says that "
    "most are false. Correct wrong keys, drop one of two identical items, rewrite ambiguous "
    "ones; then fit again.",
)

# Columns of item metadata that may hold an item's text, the likeliest first.
_TEXTS = ("text", "question", "prompt", "input", "query", "problem", "content", "doc")
_MOST_OF_A_FLAG = 40
_MOST_ROWS = 400
_SAMPLES = 2
_FIRST_COLUMNS = ("item_id", "flag", "reason", "text", "value", "threshold")


def _tables(request: Request) -> dict[str, pd.DataFrame]:
    samples = 1 if request.quick else _SAMPLES
    found = flag_items(request.fit, request.answers, bootstrap=samples, seed=request.seed)
    text = _text_of_items(request)
    if text is not None:
        found = found.assign(text=found["item_id"].map(text))
    counts = found.groupby("flag", sort=False).size()
    named = pd.DataFrame({"flag": list(MEANINGS), "meaning": list(MEANINGS.values())})
    named.insert(1, "n_items", named["flag"].map(counts).fillna(0).astype(int))
    return {"flags": found, "flag_counts": named}


def _text_of_items(request: Request) -> pd.Series | None:
    """The text of each item by its id; None where no column holds it."""
    metadata = request.fit.data.item_metadata
    names = {str(name).lower(): name for name in reversed(list(metadata.columns))}
    column = next((names[name] for name in _TEXTS if name in names), None)
    if column is None:
        return None
    return pd.Series(metadata[column].to_numpy(), index=request.fit.data.item_ids)


def _blocks(request: Request, tables: Tables) -> list[Block]:
    flags, counts = tables["flags"], tables["flag_counts"]
    shown = flags.groupby("flag", sort=False).head(_MOST_OF_A_FLAG).head(_MOST_ROWS)
    first = [name for name in _FIRST_COLUMNS if name in shown]
    shown = shown[list(dict.fromkeys([*first, *shown.columns]))]
    return [
        TableView(
            counts, "flag_counts.csv", "How many of each", len(counts), long_text=["meaning"]
        ),
        TableView(
            shown,
            "flags.csv",
            f"The items, of each flag the first {_MOST_OF_A_FLAG}",
            len(flags),
            is_searchable=True,
            choices=["flag"],
            mixed=["value", "threshold"],
            is_cards=True,
            long_text=["reason", *(["text"] if "text" in flags else [])],
        ),
    ]


FLAGS = Part("flags", "Items to look at", _GUIDE, _tables, _blocks)

"""All items at a glance, and the curves of some."""

import pandas as pd

from irtjax.report.blocks import Block, Guide
from irtjax.report.item_curves import (
    chosen_items,
    draw_characteristic_curves,
    draw_information_curves,
    item_curves,
    observed_shares,
)
from irtjax.report.items_scatter import draw_items, items_summary
from irtjax.report.part import Part, Request, Tables, drawn

__all__ = ["ITEMS"]

_GUIDE = Guide(
    shows="All items at a glance, and some that show what there is: the most discriminating of the "
    "easy, middle and hard, and the flattest.",
    reading="Difficulty is the ability at which an item is answered right half of the way between "
    "guessing and the best; discrimination is how steeply that rises there. Information is high "
    "where an answer tells models apart.",
    action="Write items where the points are few and your models are. Look up the flat and falling "
    "ones below; `irtjax plot RUN curves --item ID` draws any.",
)


def _tables(request: Request) -> dict[str, pd.DataFrame]:
    chosen = chosen_items(request.fit)
    items = request.fit.item_parameters()
    return {
        "items": items,
        "items_summary": items_summary(items),
        "item_curves": item_curves(request.fit, chosen),
        "item_curves_observed": observed_shares(request.fit, chosen),
    }


def _blocks(request: Request, tables: Tables) -> list[Block]:
    curves, observed = tables["item_curves"], tables["item_curves_observed"]
    return [
        drawn(
            draw_items(tables["items"]),
            "items-scatter",
            "Difficulty of the items against their discrimination.",
            "items",
            "items_summary",
        ),
        drawn(
            draw_characteristic_curves(curves, observed),
            "items-curves",
            "Probability of a right answer to chosen items by ability, and the shares observed.",
            "item_curves",
            "item_curves_observed",
        ),
        drawn(
            draw_information_curves(curves),
            "items-information",
            "Fisher information of the same items by ability.",
            "item_curves",
        ),
    ]


ITEMS = Part("items", "Items", _GUIDE, _tables, _blocks)

"""All items at a glance, and the curves of some."""

import pandas as pd

from irtjax.report.blocks import Block
from irtjax.report.item_curves import (
    chosen_items,
    draw_characteristic_curves,
    draw_information_curves,
    item_curves,
    observed_shares,
)
from irtjax.report.items_scatter import draw_items
from irtjax.report.part import Part, Request, Tables, drawn

__all__ = ["ITEMS"]


def _tables(request: Request) -> dict[str, pd.DataFrame]:
    chosen = chosen_items(request.fit)
    return {
        "items": request.fit.item_parameters(),
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


ITEMS = Part("items", "Items", _tables, _blocks)

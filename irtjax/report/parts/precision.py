"""How precisely the items measure, where the models are."""

import pandas as pd

from irtjax.report.all_items import (
    ability_counts,
    draw_test_information,
    information_of_all_items,
)
from irtjax.report.blocks import Block, Guide
from irtjax.report.part import Part, Request, Tables, drawn

__all__ = ["PRECISION"]

_GUIDE = Guide(
    shows="How precisely all items together measure an ability, above where the models are.",
    reading="The standard error of an ability is 1 / sqrt(information). The other abilities are 0.",
    action="Where models stand beyond the bulk of the information, add items of that difficulty: "
    "harder ones if the best models are there.",
)

_MOST_DIMS = 4


def _tables(request: Request) -> dict[str, pd.DataFrame]:
    return {
        "test_information": information_of_all_items(request.fit),
        "ability_counts": ability_counts(request.fit),
    }


def _blocks(request: Request, tables: Tables) -> list[Block]:
    text = "Information of all items by ability, above the number of models."
    return [
        drawn(
            draw_test_information(tables["test_information"], tables["ability_counts"], dim),
            f"precision-{dim}",
            text,
            "test_information",
            "ability_counts",
        )
        for dim in range(1, min(request.fit.spec.dims, _MOST_DIMS) + 1)
    ]


PRECISION = Part("precision", "Precision", _GUIDE, _tables, _blocks)

"""How precisely the items measure, where the models are."""

import pandas as pd

from irtjax.report.all_items import (
    ability_counts,
    draw_test_information,
    information_of_all_items,
)
from irtjax.report.blocks import Block
from irtjax.report.part import Part, Request, Tables, drawn

__all__ = ["PRECISION"]

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


PRECISION = Part("precision", "Precision", _tables, _blocks)

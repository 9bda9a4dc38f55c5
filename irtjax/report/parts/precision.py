"""How precisely the items measure, where the models are."""

import pandas as pd

from irtjax.report.all_items import (
    ability_counts,
    draw_test_information,
    information_of_all_items,
    precision_summary,
)
from irtjax.report.blocks import Block, Guide
from irtjax.report.part import Part, Request, Tables, drawn

__all__ = ["PRECISION"]

_GUIDE = Guide(
    shows="How precisely all items together measure an ability, above where the models are.",
    reading="1 / sqrt(information) is the standard error that an ability would have if the items "
    "were known exactly, every model answered all of them, the other abilities were known (the "
    "curve is drawn where they are 0) and no benchmark favoured a model. The models' own standard "
    "errors (models.csv) count all that, and are mostly larger.",
    action="Where models stand beyond the bulk of the information, add items of that difficulty: "
    "harder ones if the best models are there.",
)

_MOST_DIMS = 4


def _tables(request: Request) -> dict[str, pd.DataFrame]:
    information = information_of_all_items(request.fit)
    return {
        "test_information": information,
        "precision_summary": precision_summary(request.fit, information),
        "ability_counts": ability_counts(request.fit),
    }


def _blocks(request: Request, tables: Tables) -> list[Block]:
    text = "Information of all items by ability, above the number of models."
    return [
        drawn(
            draw_test_information(
                tables["test_information"],
                tables["ability_counts"],
                tables["precision_summary"],
                dim,
            ),
            f"precision-{dim}",
            text,
            "test_information",
            "ability_counts",
            "precision_summary",
        )
        for dim in range(1, min(request.fit.spec.dims, _MOST_DIMS) + 1)
    ]


PRECISION = Part("precision", "Precision", _GUIDE, _tables, _blocks)

"""How well the fit predicts: held-out metrics beside the baselines, and calibration."""

import pandas as pd

from irtjax.report.blocks import Block, TableView, Words
from irtjax.report.calibration import calibration_bins, draw_calibration
from irtjax.report.part import Part, Request, Tables, drawn

__all__ = ["PREDICTION"]


def _tables(request: Request) -> dict[str, pd.DataFrame]:
    tables = {"calibration": calibration_bins(request.fit, seed=request.seed)}
    heldout = request.fit.report.get("heldout")
    if heldout is not None:
        rows = {"this fit": heldout["model"]} | heldout["baselines"]
        table = pd.DataFrame.from_dict(rows, orient="index").reset_index(names="predictor")
        tables["heldout"] = table
    return tables


def _blocks(request: Request, tables: Tables) -> list[Block]:
    blocks: list[Block] = []
    if "heldout" in tables:
        table = tables["heldout"]
        blocks.append(TableView(table, "heldout.csv", "On held-out responses", len(table)))
    else:
        blocks.append(
            Words(
                "No responses were kept out of the fit, so this is how it describes the responses "
                "it has seen, not how it predicts; fit with --holdout 0.1 to know."
            )
        )
    text = "Shares of right answers against predicted probabilities, in 15 bins."
    figure = draw_calibration(tables["calibration"])
    blocks.append(drawn(figure, "prediction-calibration", text, "calibration"))
    return blocks


PREDICTION = Part("prediction", "Predictions", _tables, _blocks)

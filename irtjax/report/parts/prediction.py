"""How well the fit predicts: held-out metrics beside the baselines, and calibration."""

import pandas as pd

from irtjax.report.blocks import Block, Guide, TableView, Words
from irtjax.report.calibration import calibration_bins, calibration_summary, draw_calibration
from irtjax.report.part import Part, Request, Tables, drawn

__all__ = ["PREDICTION"]

_GUIDE = Guide(
    shows="How well the fit predicts single answers, beside plain baselines.",
    reading="Lower log-loss (nats an answer) is better; off the dashed line, predicted "
    "probabilities do not come true.",
    action="If a baseline predicts better, do not use this fit: try more dims, `--group`, or "
    "another estimator. If dots leave the line, distrust predicted scores there.",
)


def _tables(request: Request) -> dict[str, pd.DataFrame]:
    bins = calibration_bins(request.fit, seed=request.seed)
    tables = {"calibration": bins, "calibration_summary": calibration_summary(bins)}
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
    files = ("calibration", "calibration_summary")
    blocks.append(drawn(figure, "prediction-calibration", text, *files))
    return blocks


PREDICTION = Part("prediction", "Predictions", _GUIDE, _tables, _blocks)

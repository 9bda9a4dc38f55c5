"""How many abilities there are, and whether they come back when the fit is done again."""

import pandas as pd

from irtjax.audit.dimensions import (
    REFITS,
    compare_dims,
    dim_correlations,
    explained_variance,
    fits_by_dims,
    refit_agreement,
    stable_dims,
)
from irtjax.report.blocks import Block, TableView, Words
from irtjax.report.dims_chart import draw_dims
from irtjax.report.part import Part, Request, Tables, drawn

__all__ = ["DIMENSIONS"]

_DIMS = (1, 2, 3, 4, 5)
_REFITS = 2  # of each kind
_METRICS = ["log_loss", "accuracy", "mae"]
_HALF_CAN_HOLD = 2  # models a dim and intercept, in half of them


def _tables(request: Request) -> dict[str, pd.DataFrame]:
    fit = request.fit
    n_models = int((fit.data.totals("models")[0] > 0).sum())
    can_halve = n_models >= _HALF_CAN_HOLD * (fit.spec.dims + 1)
    kinds = REFITS if can_halve else tuple(kind for kind in REFITS if kind != "models")
    refits = 1 if request.quick else _REFITS
    agreement = refit_agreement(fit, refits=refits, kinds=kinds, seed=request.seed)
    tables = {"dim_refits": agreement, "dim_stability": stable_dims(agreement)}
    if request.quick:
        return tables | {"dim_variance": explained_variance({fit.spec.dims: fit})}
    dims = [each for each in _DIMS if each < n_models]
    found = compare_dims(fit, dims)
    fits = fits_by_dims(fit, dims)
    is_fit = found.table["predictor"] == "fit"
    is_chosen = is_fit & (found.table["dims"] == found.chosen_dims)
    return tables | {
        "dim_comparison": found.table.assign(is_chosen=is_chosen.fillna(False).astype(bool)),
        "dim_variance": explained_variance(fits),
        "dim_correlations": dim_correlations(fits),
    }


def _blocks(request: Request, tables: Tables) -> list[Block]:
    stability, variance = tables["dim_stability"], tables["dim_variance"]
    blocks: list[Block] = []
    if "dim_comparison" in tables:
        compared = tables["dim_comparison"]
        mine = compared[compared["predictor"] == "fit"]
        text = "Held-out log-loss by number of dims."
        blocks.append(drawn(draw_dims(mine), "dims-compared", text, "dim_comparison"))
        columns = ["predictor", "dims", *(c for m in _METRICS for c in (m, f"{m}_se"))]
        shown = compared[[*columns, "is_chosen"]]
        title = "Cross-validated predictions"
        blocks.append(TableView(shown, "dim_comparison.csv", title, len(compared)))
    blocks.append(
        Words(
            "A dim is stable when refits (from random starts, without half of the items, without "
            "half of the models) find it again: they are aligned with this fit and correlated with "
            "it. An unstable dim describes these data, not an ability."
        )
    )
    title = "Do the dims come back"
    blocks.append(
        TableView(stability, "dim_stability.csv", title, len(stability), long_text=["reason"])
    )
    title = "What each dim explains of the items' variance"
    blocks.append(TableView(variance, "dim_variance.csv", title, len(variance)))
    if "dim_correlations" in tables:
        found = tables["dim_correlations"]
        title = "Correlations of the abilities in fits of different dims"
        blocks.append(TableView(found, "dim_correlations.csv", title, len(found), choices=["dims"]))
    return blocks


def _reason_against(request: Request) -> str:
    if "dim_names" in request.fit.report:
        return "The dims of a confirmatory fit are given by its loadings."
    return ""


DIMENSIONS = Part("dims", "Dimensions", _tables, _blocks, _reason_against)

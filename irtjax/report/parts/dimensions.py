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
from irtjax.report.blocks import Block, Guide, TableView, Words
from irtjax.report.dims_chart import draw_dim_correlations, draw_dims
from irtjax.report.part import Part, Request, Tables, drawn

__all__ = ["DIMENSIONS"]

_GUIDE = Guide(
    shows="How many abilities the answers support, and whether refits (from random starts, without "
    "half of the items, without half of the models) find the dims of this fit again.",
    reading="Correlation is that of the models' abilities in the refit with those here, congruence "
    "the same of the items' loadings; both are 1 at best. An unstable dim describes these data, "
    "not an ability; one that comes back may still be that of one model, which every refit has.",
    action="Fit with the number of dims that is ringed (with `--quick` none is compared). Do not "
    "name or report a dim that is not stable or has no signal.",
)
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
        blocks += _compared(request, tables)
    verdict = ["dim", "is_stable", "reason"]
    measured = [name for name in stability.columns if name not in verdict]
    title = "Do the dims come back"
    blocks.append(
        TableView(
            stability[[*verdict, *measured]],
            "dim_stability.csv",
            title,
            len(stability),
            long_text=["reason"],
            is_cards=True,
        )
    )
    blocks += _of_one_model(request, tables)
    title = "What each dim explains of the items' variance"
    blocks.append(TableView(variance, "dim_variance.csv", title, len(variance), is_cards=True))
    return blocks


def _of_one_model(request: Request, tables: Tables) -> list[Block]:
    """What refits cannot see: they find a dim again as long as its one model is among theirs."""
    variance, stability = tables["dim_variance"], tables["dim_stability"]
    mine = variance[variance["dims"] == request.fit.spec.dims].merge(stability, on="dim")
    return [
        Words(
            f"Dim {row.dim} comes back, and {row.top_model} alone holds {row.top_model_share:.0%} "
            "of its spread: refits find that model again, and not an ability that models differ in."
        )
        for row in mine.itertuples()
        if row.is_stable and "one_model" in str(row.flags)
    ]


def _compared(request: Request, tables: Tables) -> list[Block]:
    """Pictures and a table of fits with other numbers of dims."""
    compared, correlations = tables["dim_comparison"], tables["dim_correlations"]
    mine = compared[compared["predictor"] == "fit"]
    text = "Held-out log-loss by number of dims."
    blocks: list[Block] = [drawn(draw_dims(mine), "dims-compared", text, "dim_comparison")]
    if request.fit.spec.dims in set(correlations["dims"]) | set(correlations["other_dims"]):
        text = "Correlations of the abilities in fits of other numbers of dims with those here."
        figure = draw_dim_correlations(correlations, request.fit.spec.dims)
        blocks.append(drawn(figure, "dims-correlated", text, "dim_correlations"))
    columns = ["predictor", "dims", "is_chosen", *(c for m in _METRICS for c in (m, f"{m}_se"))]
    title = "Cross-validated predictions"
    blocks.append(TableView(compared[columns], "dim_comparison.csv", title, len(compared)))
    return blocks


def _reason_against(request: Request) -> str:
    if "dim_names" in request.fit.report:
        return "The dims of a confirmatory fit are given by its loadings."
    return ""


DIMENSIONS = Part("dims", "Dimensions", _GUIDE, _tables, _blocks, _reason_against)

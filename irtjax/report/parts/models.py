"""Abilities of the models."""

import pandas as pd

from irtjax.report.abilities import ability_intervals, draw_abilities
from irtjax.report.blocks import Block, Guide, TableView, Words
from irtjax.report.part import Part, Request, Tables, drawn

__all__ = ["MODELS"]

_GUIDE = Guide(
    shows="How able each model is, and how sure that is.",
    reading="Ability has mean 0 and standard deviation 1 over the models of this fit; se is its "
    "standard error. Expected score is the mean predicted probability over all items, p correct "
    "the share right of those that were answered. A clustered interval is a multiplier (a t "
    "quantile, ability_intervals.csv) times the error clustered by benchmark: the fewer benchmarks "
    "carry the ability, the wider. Where too few do, points are hollow: the plain interval is "
    "all there is, and knows nothing of disagreement between benchmarks.",
    action="Do not rank models whose intervals overlap. Where clustered intervals are much wider, "
    "benchmarks disagree about the model: report it benchmark by benchmark.",
)

_MOST_ROWS = 300
_MOST_DIMS = 6


def _tables(request: Request) -> dict[str, pd.DataFrame]:
    return {
        "models": request.fit.abilities(),
        "ability_intervals": ability_intervals(request.fit),
    }


def _blocks(request: Request, tables: Tables) -> list[Block]:
    fit, models = request.fit, tables["models"]
    dims = range(1, fit.spec.dims + 1)
    is_ranking = fit.spec.dims == 1 and fit.group is None
    by = "dim1_ability" if is_ranking else "expected_score"
    numbers = [f"dim{k}_{what}" for k in dims for what in ("ability", "ability_se")]
    columns = ["model_id", *numbers, "expected_score", "p_correct", "n_responses", "flags"]
    ordered = models.sort_values(by, ascending=False, kind="stable")[columns]
    blocks: list[Block] = []
    if not is_ranking:
        blocks.append(
            Words(
                "Models are ranked by their expected score, the mean predicted probability over "
                "all items; an ability says how they differ in one dim."
            )
        )
    for k in dims[:_MOST_DIMS]:
        figure = draw_abilities(tables["ability_intervals"], k)
        text = f"Abilities of the models in dim {k} with 95% intervals, the highest on top."
        blocks.append(drawn(figure, f"abilities-{k}", text, "ability_intervals"))
    shown = ordered.head(_MOST_ROWS)
    title = f"Models by {by.replace('_', ' ')}"
    blocks.append(
        TableView(shown, "models.csv", title, len(models), is_searchable=True, is_cards=True)
    )
    return blocks


MODELS = Part("models", "Abilities of the models", _GUIDE, _tables, _blocks)

"""What a fit found, as tables for the terminal."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from irtjax.fit.result import FitResult

__all__ = [
    "flag_counts",
    "heldout_table",
    "metric_rows",
    "models_table",
    "plain_table",
    "ranks_by_ability",
]

# Metric to its heading, and whether more is better.
_METRICS = {
    "accuracy": ("accuracy", True),
    "f1": ("F1", True),
    "auc": ("AUC", True),
    "log_loss": ("log-loss", False),
    "brier": ("Brier", False),
    "calibration_error": ("ECE", False),
}
_BASELINES = {
    "model_mean": "model mean",
    "model_benchmark_mean": "model x benchmark mean",
    "1pl": "1PL",
}
_SHOWN_MODELS = 12  # more than these are shown by their two ends
_SHOWN_AT_EACH_END = 5
_DIGITS = 4
_LONGEST_NAME = 40


def plain_table(left: Iterable[str], right: Iterable[str]) -> Table:
    """An empty table with headings of text columns and of number columns."""
    table = Table(box=None, pad_edge=False)
    for name in left:
        table.add_column(name, no_wrap=True, overflow="ellipsis", max_width=_LONGEST_NAME)
    for name in right:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def metric_rows(heldout: Mapping[str, Any], name: str) -> dict[str, Mapping[str, float]]:
    """The rows of `heldout_table` from what `fit.json` has under `heldout`.

    Without benchmarks the model x benchmark mean is the model mean, and is left out.
    """
    baselines = dict(heldout["baselines"])
    if baselines["model_benchmark_mean"] == baselines["model_mean"]:
        del baselines["model_benchmark_mean"]
    return {name: heldout["model"]} | {_BASELINES[key]: baselines[key] for key in baselines}


def heldout_table(
    rows: Mapping[str, Mapping[str, float]], bound: tuple[str, Mapping[str, float]] | None = None
) -> Table:
    """Predictors x metrics, the best of each column with a star.

    Args:
        rows: the metrics of each predictor.
        bound: name and metrics of what no predictor can beat: a last row that takes no star.
    """
    table = plain_table(["predictor"], [heading for heading, _ in _METRICS.values()])
    best = {metric: _best(rows, metric) for metric in _METRICS}
    for name, row in rows.items():
        table.add_row(name, *(_cell(row[metric], best[metric]) for metric in _METRICS))
    if bound is not None:
        table.add_row(bound[0], *(_cell(bound[1][metric], None) for metric in _METRICS))
    return table


def ranks_by_ability(fit: "FitResult") -> bool:
    """Whether ability ranks the models: at one dim, without effects; else the score does."""
    return fit.spec.dims == 1 and fit.group is None


def models_table(fit: "FitResult", dims: Sequence[str]) -> Table:
    """The top and the bottom models, with their abilities.

    Args:
        fit: the fit.
        dims: headings of the abilities; only so many are shown.
    """
    by_ability = ranks_by_ability(fit)
    order = "dim1_ability" if by_ability else "expected_score"
    frame = fit.abilities().sort_values(order, ascending=False, kind="stable")
    scores = ["expected score", "share right"]
    table = plain_table(["", "model"], [*dims, *scores] if by_ability else [*scores, *dims])
    n_left_out = len(frame) - 2 * _SHOWN_AT_EACH_END if len(frame) > _SHOWN_MODELS else 0
    for rank, row in enumerate(frame.to_dict("records"), 1):
        if _SHOWN_AT_EACH_END < rank <= _SHOWN_AT_EACH_END + n_left_out:
            if rank == _SHOWN_AT_EACH_END + 1:
                table.add_row("", f"... {n_left_out:,} more")
            continue
        ability = [
            f"{row[f'dim{k}_ability']:.2f} +- {row[f'dim{k}_ability_se']:.2f}"
            for k in range(1, len(dims) + 1)
        ]
        score = [_number(row["expected_score"], 3), _number(row["p_correct"], 3)]
        cells = [*ability, *score] if by_ability else [*score, *ability]
        table.add_row(str(rank), Text(str(row["model_id"])), *cells)
    return table


def flag_counts(flags: Iterable[str]) -> str:
    """How many rows have which flag, in words."""
    counts = Counter(flag for each in flags for flag in each.split(";") if flag)
    return ", ".join(f"{count:,} {flag}" for flag, count in counts.most_common()) or "none"


def _is_number(value: float | None) -> bool:
    return value is not None and not math.isnan(value)


def _number(value: float | None, digits: int) -> str:
    return f"{value:.{digits}f}" if value is not None and _is_number(value) else "-"


def _best(rows: Mapping[str, Mapping[str, float]], metric: str) -> float | None:
    """The best value of a column as it is shown, so that equal numbers get equal stars."""
    values = [round(row[metric], _DIGITS) for row in rows.values() if _is_number(row[metric])]
    return (max if _METRICS[metric][1] else min)(values, default=None)


def _cell(value: float, best: float | None) -> Text:
    is_best = best is not None and _is_number(value) and round(value, _DIGITS) == best
    text = _number(value, _DIGITS) + ("*" if is_best else " ")
    return Text(text, style="bold" if is_best else "")

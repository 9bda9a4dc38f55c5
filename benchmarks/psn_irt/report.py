"""The results as Markdown tables and as a figure."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.figures import pyplot, save_figure
from benchmarks.psn_irt.rows import ROWS
from benchmarks.psn_irt.stability import PAPER, PARAMETERS

__all__ = ["PUBLISHED", "draw", "markdown"]

_METRICS = {
    "accuracy": "ACC",
    "f1": "F1",
    "auc": "AUC",
    "log_loss": "log-loss",
    "brier": "Brier",
}
# Of the authors' predictions (psn_irt_test_pred.npz), scored by `tests/benchmarks/test_psn_irt.py`.
PUBLISHED = {
    "all": {
        "PSN-IRT, published predictions": (0.7998, 0.8538, 0.8485, 0.4537, 0.1443),
        "Deep-IRT, published predictions": (0.7974, 0.8516, 0.8519, 0.4519, 0.1437),
    },
    "outside": {
        "PSN-IRT, published predictions": (0.7941, 0.8474, 0.8447, 0.4642, 0.1482),
        "Deep-IRT, published predictions": (0.7925, 0.8456, 0.8487, 0.4607, 0.1469),
    },
}
# `irtjax.evaluate_heldout`'s baseline; `tests/evaluate/test_baselines.py`.
_AIM = {"1PL MAP (the aim)": (0.8041, 0.8561, 0.8601, 0.4393, 0.1396)}
_PAPERS = "PSN-IRT, 4PL, in the paper"
_LABELS = {row.name: row.label for row in ROWS}
_DIFFICULTY_NOTE = (
    "Pearson's correlation of the default's difficulties is that of a few items with weak slopes: "
    "their difficulty, -intercept / slope, is of any size; Spearman's, beside it, is not moved by "
    "them."
)
_HALVES_NOTE = (
    "Tau of halves: a split cuts the items in two at random, and each half is fitted on its own; "
    "Kendall's tau of the two rankings of the models, mean (sd) over splits. Split k is drawn by "
    "seed k, its halves are fitted with seeds 2k and 2k + 1; where seeds make no difference to a "
    "fit, splits differ by the cut alone."
)
_OWN, _PAPER = "tab:blue", "tab:gray"


def markdown(results: Mapping[str, Any]) -> str:
    """All tables: the rows on all held-out cells and outside the copy, stability, costs."""
    rows = [row for row in results.get("rows", []) if "error" not in row]
    failed = [row for row in results.get("rows", []) if "error" in row]
    parts = [f"PSN-IRT's own split, {results['date']}."]
    if rows:
        parts += [
            "All test cells; paper -> ours, mean (sd) over seeds:",
            _table(
                ["row", *_METRICS.values(), "seeds"],
                _references(PUBLISHED["all"] | _AIM) + [_on(row, "all") for row in rows],
            ),
            "Test cells outside the MMLU block that two models share:",
            _table(
                ["row", *_METRICS.values(), "cells"],
                _references(PUBLISHED["outside"]) + [_on(row, "outside") for row in rows],
            ),
            "Ranking of the models, and CPU seconds of a fit:",
            _table(
                [
                    "row",
                    "tau with accuracy",
                    "tau of halves",
                    "splits",
                    "CPU s",
                    "first fit, compiling too",
                ],
                [_ranking(row) for row in rows],
            ),
            _HALVES_NOTE,
        ]
    parts += [f"- {row['name']}: {row['error']}" for row in failed]
    if isinstance(results.get("stability"), list):
        parts += [
            "Refits on a share of the items, Pearson's (Spearman's) correlation with the full fit:",
            _stability(results["stability"]),
            _DIFFICULTY_NOTE,
        ]
    return "\n\n".join(parts + _costs(results)) + "\n"


def _references(known: Mapping[str, Sequence[float]]) -> list[list[str]]:
    return [[name, *(_short(value) for value in values), ""] for name, values in known.items()]


def _on(row: Mapping[str, Any], cells: str) -> list[str]:
    paper = (row["paper"] or {}) if cells == "all" else {}
    shown = [_pair(paper.get(name), row[cells][name]) for name in _METRICS]
    last = row["n_seeds"] if cells == "all" else f"{row['n_outside']:,}"
    return [_named(row), *shown, str(last)]


def _ranking(row: Mapping[str, Any]) -> list[str]:
    tau = _pair((row["paper"] or {}).get("kendall_accuracy"), row["ranking"]["kendall_accuracy"])
    seconds = [f"{row[name]:.3g}" for name in ("cpu_seconds", "first_cpu_seconds")]
    halves = row["kendall_halves"]
    return [_named(row), tau, _pair(None, halves), str(len(halves["each"])), *seconds]


def _named(row: Mapping[str, Any]) -> str:
    """The label, with the number of items where these are a subsample."""
    return f"{row['label']}, {row['n_items']:,} items" if row["is_subsample"] else row["label"]


def _pair(paper: float | None, ours: Mapping[str, float | None]) -> str:
    sd = "" if ours["sd"] is None else f" ({_short(ours['sd'])})"
    return f"{'' if paper is None else f'{_short(paper)} -> '}{_short(ours['mean'])}{sd}"


def _short(value: float | None) -> str:
    """Four digits; no zero before the point."""
    text = f"{value:.4f}"
    return text.replace("0.", ".", 1) if abs(value or 0) < 1 else text


def _stability(found: Sequence[Mapping[str, Any]]) -> str:
    lines = [
        [
            _PAPERS,
            f"{share:.0%}",
            *(_short(r[name]) if name in r else "" for name in PARAMETERS),
        ]
        for share, r in PAPER.items()
    ]
    for one in found:
        cells = [
            f"{_short(one['pearson'][name])} ({_short(one['spearman'][name])})"
            if name in one["pearson"]
            else ""
            for name in PARAMETERS
        ]
        lines.append([_LABELS.get(one["name"], one["name"]), f"{one['share']:.0%}", *cells])
    return _table(["fit", "items", *PARAMETERS], lines)


def _costs(results: Mapping[str, Any]) -> list[str]:
    lines = []
    epochs = results.get("epochs", {})
    if "cpu_seconds" in epochs:
        ours, theirs = epochs["cpu_seconds"], epochs["reference_cpu_seconds"]
        told = [f"{name} {seconds:.3g}" for name, seconds in (ours | theirs).items()]
        lines.append(f"An epoch (320,766 responses, batches of 512), CPU s: {', '.join(told)}.")
    whole = results.get("whole-fit", {})
    if "first" in whole:
        told = [
            f"{name} {each['wall_seconds']:.3g} s wall, {each['cpu_seconds']:.3g} CPU s"
            for name, each in whole.items()
        ]
        lines.append(f"`irtjax fit train.csv --estimator psn --family 4pl`: {'; '.join(told)}.")
    return lines


def _table(heads: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    rows = [list(heads), ["---"] * len(heads), *map(list, lines)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in rows)


def draw(results: Mapping[str, Any], path: Path) -> bool:
    """AUC of each row with its sd over seeds, the paper's beside it; whether there was anything."""
    rows = [row for row in results.get("rows", []) if "error" not in row][::-1]
    if not rows:
        return False
    figure, (left, right) = pyplot().subplots(
        1, 2, figsize=(10, 0.4 * len(rows) + 1.6), sharey=True, layout="constrained"
    )
    places = range(len(rows))
    for axes, name, title in (
        (left, "auc", "AUC on the test cells (higher is better)"),
        (right, "log_loss", "log-loss on the test cells (nats, log scale; lower is better)"),
    ):
        ours = [row["all"][name] for row in rows]
        axes.errorbar([one["mean"] for one in ours], places, xerr=[one["sd"] or 0 for one in ours],
                      fmt="o", color=_OWN, capsize=3, label="here")  # fmt: skip
        printed = [(row["paper"][name], k) for k, row in enumerate(rows)
                   if row["paper"] and name in row["paper"]]  # fmt: skip
        if printed:
            x, y = zip(*printed, strict=True)
            axes.plot(x, y, "D", color=_PAPER, fillstyle="none", label="paper")
            axes.legend(frameon=False, loc="lower left")
        axes.set_title(title, fontsize=9)
        axes.grid(axis="x", alpha=0.3)
    right.set_xscale("log")
    right.xaxis.set_major_formatter("{x:g}")
    right.xaxis.set_minor_formatter("{x:g}")
    left.set_yticks(list(places), [_named(row) for row in rows])
    save_figure(figure, path)
    return True

"""What `irtjax fit` and `irtjax demo` say about a finished fit."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from irtjax.checks import counted
from irtjax.cli.console import lines, natural_width, show_table
from irtjax.cli.tables import (
    flag_counts,
    heldout_table,
    metric_rows,
    models_table,
    ranks_by_ability,
)

if TYPE_CHECKING:
    from irtjax.fit.result import FitResult

__all__ = [
    "agreement",
    "anchor_lines",
    "fit_name",
    "groups_of_models",
    "show_files",
    "show_fit",
    "show_heldout",
    "show_models",
    "show_next",
]

_SHOWN_GROUPS = 6


def fit_name(fit: "FitResult") -> str:
    """Family and dims in words: `2PL, 3 dims, benchmark effects`."""
    dims = "1 dim" if fit.spec.dims == 1 else f"{fit.spec.dims} dims"
    effects = f", {fit.group} effects" if fit.group is not None else ""
    kind = fit.report["item_distribution"]
    distribution = "" if kind == "normal" else f", {kind} item distribution"
    return f"{fit.spec.family.upper()}, {dims}{effects}{distribution}"


def show_fit(fit: "FitResult", output: Console) -> None:
    """What was fitted, by which estimator and why, how it ended, and the seconds."""
    from irtjax.fit.report import steps_taken

    report = fit.report
    lines(
        output,
        "Fit",
        f"{fit_name(fit)}; {report['estimator']} ({report['estimator_reason']})",
        f"{report['status']} after {steps_taken(report)}: {report['reason']}",
        f"{report['fit_seconds']:.1f} s, and {report['compile_seconds']:.1f} s of compiling",
    )
    if "starts" in report:
        lines(output, "Starts", agreement(report["starts"]))
    if "anchors" in report:
        lines(output, "Anchors", *anchor_lines(report))
    if "model_groups" in report:
        lines(output, "Groups", groups_of_models(report["model_group"], report["model_groups"]))


def agreement(starts: Mapping[str, Any]) -> str:
    """How far the fits from several starts agree, in words."""
    text = f"{starts['n_at_the_best']} of {starts['n']} ended at the best log-likelihood"
    if starts["n_at_the_best"] == 1:
        objectives = starts["objectives"]
        return f"{text}, the others up to {max(objectives) - min(objectives):.3g} below"
    spread = starts["largest_spread"]
    parts = ", ".join(f"{name} {value:.2g}" for name, value in spread.items() if value > 0)
    return f"{text}; these differ by at most {parts}" if parts else f"{text}; these are equal"


def anchor_lines(report: Mapping[str, Any]) -> list[str]:
    """How many items another run fixed, and where the new models are on its scale."""
    anchors, models = report["anchors"], report["new_models"]
    where = f" as {anchors['run']} has them" if anchors["run"] else ""
    return [
        f"{counted(anchors['n_anchors'], 'item')} fixed{where}, "
        f"{counted(anchors['n_new_items'], 'new item')} estimated; "
        f"{anchors['n_drifted']:,} drifted",
        f"new models on that scale: mean {_numbers(models['mean'])}, sd {_numbers(models['sd'])}",
    ]


def groups_of_models(column: str, groups: Sequence[Mapping[str, Any]]) -> str:
    """Mean and standard deviation of the abilities in each group of models, in words."""
    shown = [
        f"{group['name']} ({counted(group['n_models'], 'model')}) {_numbers(group['mean'])} +- "
        f"{_numbers(group['sd'])}"
        for group in groups[:_SHOWN_GROUPS]
    ]
    more = len(groups) - len(shown)
    rest = f"; {more:,} more in fit.json" if more > 0 else ""
    return f"of {column}, mean +- sd of abilities: {'; '.join(shown)}{rest}"


def _numbers(values: Sequence[float]) -> str:
    return ", ".join(f"{value:.2f}" for value in values)


def show_heldout(
    fit: "FitResult", output: Console, bound: tuple[str, Mapping[str, float]] | None = None
) -> None:
    """The held-out table: the fit, the baselines and perhaps what bounds them."""
    heldout = fit.report["heldout"]
    title = f"Predictions of {heldout['n']:,} held-out responses (* best)"
    show_table(output, title, heldout_table(metric_rows(heldout, "this fit"), bound))


def show_models(fit: "FitResult", output: Console, abilities: Sequence[str] = ()) -> None:
    """The models' ranking, and how many models and items have flags.

    Args:
        fit: the fit.
        output: where to show it.
        abilities: names of the abilities; `dim 1`, `dim 2`, ... without. As many are shown as
            the console is wide enough for.
    """
    dims = [f"dim {k + 1}" for k in range(fit.spec.dims)]
    names = list(abilities) or (["ability"] if len(dims) == 1 else dims)
    table = models_table(fit, names)
    while len(names) > 1 and natural_width(output, table) > output.width:
        names = names[:-1]
        table = models_table(fit, names)
    order = "ability" if ranks_by_ability(fit) else "expected score (mean P over all items)"
    show_table(output, f"Models by {order}, abilities +- standard error", table)
    output.print()
    items, models = fit.item_parameters()["flags"], fit.abilities()["flags"]
    lines(output, "Flags", f"models: {flag_counts(models)}", f"items: {flag_counts(items)}")


def show_files(run: Path, output: Console, more: Sequence[str] = ()) -> None:
    """Where the files of a run are, and those beside a fit's own."""
    names = ["items.csv", "models.csv", "fit.json", "responses.npz", *more, "checkpoint/"]
    lines(output, "Files", f"{run}/: {', '.join(names)}")


def show_next(output: Console, command: str, *words: object) -> None:
    """The command that one may want next."""
    lines(output, "Next", f"irtjax {command} {' '.join(shlex.quote(str(each)) for each in words)}")

"""Whether to trust a fit: what itself and all parts of its audit say, a line each."""

from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from irtjax.checks import counted
from irtjax.fit.result import FitResult
from irtjax.fit.tables import FEW_RESPONSES
from irtjax.fit.uncertainty import FEWEST_EFFECTIVE_CLUSTERS
from irtjax.report.abilities import LEVEL, ability_intervals, is_carried_by_few
from irtjax.report.part import Tables

__all__ = ["trust_checks"]

_BASELINES = {
    "model_mean": "the models' means",
    "model_benchmark_mean": "means of model x benchmark",
    "1pl": "the 1PL",
}
# Beyond what is chance. ChemBench's held-out responses are off by .030, of which .016 is chance.
_WELL_CALIBRATED, _BADLY_CALIBRATED = 0.01, 0.05
_FEW_MODELS = 20
_WIDE = 2.0  # times the plain standard error or interval
_MANY_UNTOLD = 0.1
_MANY_WEAK = 0.25
_MANY_ACCUSED = 0.01  # accusations a block; below, the others are hardly touched
_MOST_COUNT = 0.8
_SOME_BARE, _MOSTLY_BARE = 0.05, 0.5
_GOOD, _LOOK, _BAD = "good", "look", "bad"

Check = tuple[str, str, str]


def trust_checks(fit: FitResult, tables: Tables) -> pd.DataFrame:
    """Reasons to believe the fit or not: `check`, `verdict` (good, look, bad), `finding`.

    Args:
        fit: the fit.
        tables: of all parts of its audit; what a part that was left out would say is not said.
    """
    found = [
        _convergence(fit),
        *_data(tables),
        *_heldout(fit),
        *_calibration(tables),
        *_dims(fit, tables),
        *_number_of_dims(fit, tables),
        _models(fit),
        *_copies(tables),
        *_clustering(fit),
        *_items(fit),
        _responses(fit),
    ]
    return pd.DataFrame(found, columns=["check", "verdict", "finding"])


def _convergence(fit: FitResult) -> Check:
    verdict = {"converged": _GOOD, "diverged": _BAD}.get(fit.status, _LOOK)
    return "convergence", verdict, f"{fit.status}: {fit.report.get('reason', '')}"


def _heldout(fit: FitResult) -> list[Check]:
    heldout: dict[str, Any] | None = fit.report.get("heldout")
    if heldout is None:
        said = "no responses were kept out; fit with --holdout 0.1 to know how well it predicts"
        return [("prediction", _LOOK, said)]
    mine = heldout["model"]
    losses = {name: heldout["baselines"][name]["log_loss"] for name in heldout["baselines"]}
    better = [name for name, loss in losses.items() if loss <= mine["log_loss"]]
    if better:
        said = f"log-loss {mine['log_loss']:.4f}; predicted better by " + ", ".join(
            f"{_BASELINES.get(name, name)} ({losses[name]:.4f})" for name in better
        )
    else:
        closest = min(losses, key=lambda name: losses[name])
        said = (
            f"log-loss {mine['log_loss']:.4f} on {heldout['n']:,} held-out responses, better than "
            f"all baselines ({_BASELINES.get(closest, closest)}: {losses[closest]:.4f})"
        )
    return [("prediction", _BAD if better else _GOOD, said)]


def _calibration(tables: Tables) -> list[Check]:
    """Empty without held-out responses: fitted ones flatter the fit."""
    if "calibration_summary" not in tables:
        return []
    told = tables["calibration_summary"].iloc[0]
    if told["source"] != "held-out":
        return []
    gap, chance, high = (float(told[c]) for c in ("mean_gap", "chance_gap", "chance_gap_high"))
    said = (
        f"predicted probabilities are off by {gap:.3f} on average; were they all true, so few "
        f"responses would be off by {chance:.3f} ({high:.3f} at most, 19 times in 20)"
    )
    excess = gap - chance if gap > high else 0.0
    verdict = _GOOD if excess <= _WELL_CALIBRATED else _BAD if excess > _BADLY_CALIBRATED else _LOOK
    return [("calibration", verdict, said)]


def _dims(fit: FitResult, tables: Tables) -> list[Check]:
    found: list[Check] = []
    unstable = _unstable_dims(tables)
    for k, dim in enumerate(fit.report.get("dimensions", []), 1):
        said = [f"explains {dim['explained_variance']:.1%} of the items' variance"]
        if "no_signal" in dim["flags"]:
            said[0] += ": the data show no such ability"
        if k in unstable:
            said.append(f"refits do not find it again ({unstable[k]})")
        if "one_model" in dim["flags"]:
            whose = f"{dim['top_model']} alone holds {dim['top_model_share']:.0%} of its spread"
            said.append(f"{whose}: check that model's responses, leave it out and compare")
        is_bad = bool(dim["flags"]) or k in unstable
        found.append((dim["name"], _BAD if is_bad else _GOOD, "; ".join(said)))
    return found


def _unstable_dims(tables: Tables) -> dict[int, str]:
    """Why, by the number of the dim; empty where no refits were made."""
    if "dim_stability" not in tables:
        return {}
    found = tables["dim_stability"]
    unstable = found[~found["is_stable"].astype(bool)]
    return dict(zip(unstable["dim"].astype(int), unstable["reason"], strict=True))


def _models(fit: FitResult) -> Check:
    n = fit.data.n_models
    if n >= _FEW_MODELS:
        return "models", _GOOD, counted(n, "model")
    said = f"{counted(n, 'model')}: slopes and abilities rest on few; look at the intervals"
    return "models", _LOOK, said


def _clustering(fit: FitResult) -> list[Check]:
    """Of the intervals as they are drawn; empty where nothing is clustered."""
    table = ability_intervals(fit)
    if table["effective_benchmarks"].isna().all():
        return []
    said, is_doubtful = [], False
    wide = (table["high_clustered"] - table["low_clustered"]) / (table["high"] - table["low"])
    is_known = np.isfinite(wide.to_numpy())
    if is_known.any():
        middle = float(np.median(wide[is_known]))
        quantile = float(stats.norm.ppf((1 + LEVEL) / 2))
        errors = float(np.median((wide * quantile / table["multiplier"])[is_known]))
        said.append(
            f"intervals clustered by benchmark are {middle:.1f} times as wide as the plain ones "
            f"(errors {errors:.1f} times)"
        )
        if errors > _WIDE:
            said[0] += ": benchmarks rank the models differently; believe the clustered ones"
        elif middle > _WIDE:
            said[0] += ": few benchmarks carry the abilities; believe the clustered ones"
        is_doubtful = middle > _WIDE
    is_few = is_carried_by_few(table)
    if is_few.any():
        said.append(_untold(is_few, table["dim"], fit.data.n_models))
    is_doubtful |= float(is_few.mean()) > _MANY_UNTOLD
    return [("agreement of benchmarks", _LOOK if is_doubtful else _GOOD, "; ".join(said))]


def _untold(is_few: pd.Series, dim: pd.Series, n_models: int) -> str:
    counts = is_few.groupby(dim).sum()
    several = len(counts) > 1
    where = ", ".join(
        f"{n:,} of {counted(n_models, 'model')}" + (f" in dim {k}" if several else "")
        for k, n in counts.items()
        if n
    )
    return (
        f"too few independent benchmarks to tell for {where}: fewer than "
        f"{FEWEST_EFFECTIVE_CLUSTERS:g} equal ones would carry the ability"
    )


def _items(fit: FitResult) -> list[Check]:
    flags = fit.item_parameters()["flags"].str.split(";")
    weak = float(flags.map(lambda each: "weak_slope" in each).mean())
    falling = float(flags.map(lambda each: "negative_slope" in each).mean())
    said = f"{weak:.1%} of the items say little about ability, {falling:.1%} fall with it"
    return [("items", _LOOK if weak + falling > _MANY_WEAK else _GOOD, said)]


def _data(tables: Tables) -> list[Check]:
    if "data_summary" not in tables:
        return []
    summary, kinds = tables["data_summary"].iloc[0], tables["accusations"]["kind"].value_counts()
    n, n_blocks = int(summary["n_accusations"]), int(summary["n_blocks"])
    if n == 0:
        return [("data", _GOOD, f"none of {counted(n_blocks, 'block')} is accused of anything")]
    named = ", ".join(f"{count:,} {str(kind).replace('_', ' ')}" for kind, count in kinds.items())
    said = f"{counted(n, 'accusation')} in {counted(n_blocks, 'block')} ({named}): look at them"
    return [("data", _BAD if n >= _MANY_ACCUSED * n_blocks else _LOOK, said + " first")]


def _number_of_dims(fit: FitResult, tables: Tables) -> list[Check]:
    """Empty where numbers of dims were not compared, or none could be chosen."""
    if "dim_comparison" not in tables:
        return []
    compared = tables["dim_comparison"]
    chosen = compared.loc[compared["is_chosen"], "dims"]
    if chosen.empty:
        return []
    n = int(chosen.iloc[0])
    said = f"cross-validation chooses {counted(n, 'dim')}; the fit has {fit.spec.dims}"
    return [("number of dims", _GOOD if n == fit.spec.dims else _LOOK, said)]


def _copies(tables: Tables) -> list[Check]:
    if "data_summary" not in tables:
        return []
    summary = tables["data_summary"].iloc[0]
    n, effective = int(summary["n_models"]), float(summary["effective_models"])
    said = (
        f"{effective:,.1f} of {counted(n, 'model')} count, if copies of one count as one (whole "
        "models; copied blocks are listed under the data)"
    )
    is_few = effective < _MOST_COUNT * n
    return [("copies of models", _LOOK if is_few else _GOOD, said)]


def _responses(fit: FitResult) -> Check:
    share = float((fit.item_parameters()["n_responses"] <= FEW_RESPONSES).mean())
    verdict = _BAD if share > _MOSTLY_BARE else _LOOK if share > _SOME_BARE else _GOOD
    said = f"{share:.1%} of the items have {FEW_RESPONSES} responses or fewer"
    return "responses an item", verdict, said

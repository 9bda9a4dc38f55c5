"""What was fitted, and whether to trust it."""

from typing import Any

import numpy as np
import pandas as pd

from irtjax.checks import counted
from irtjax.fit.result import FitResult
from irtjax.report.blocks import Block, TableView, Words
from irtjax.report.part import Part, Request, Tables

__all__ = ["OVERVIEW", "fit_facts", "trust_checks"]

_BASELINES = {
    "model_mean": "the models' means",
    "model_benchmark_mean": "means of model x benchmark",
    "1pl": "the 1PL",
}
_WELL_CALIBRATED, _BADLY_CALIBRATED = 0.02, 0.05
_FEW_MODELS = 20
_WIDE = 2.0  # times the plain standard error
_MANY_WEAK = 0.25
_GOOD, _LOOK, _BAD = "good", "look", "bad"

Check = tuple[str, str, str]


def fit_facts(fit: FitResult) -> pd.DataFrame:
    """What was fitted: `fact`, `value` (text)."""
    report, data = fit.report, fit.data
    facts = {
        "models": f"{data.n_models:,}",
        "items": f"{data.n_items:,}",
        "responses": f"{data.n_responses:,} ({data.density:.1%} of the matrix)",
        "family": fit.spec.family.upper(),
        "dims": str(fit.spec.dims),
        "benchmark effects": fit.group or "none",
        "estimator": f"{report.get('estimator', '')}: {report.get('estimator_reason', '')}",
        "status": f"{fit.status} after {report.get('n_steps', 0):,} steps",
        "held-out responses": f"{report['heldout']['n']:,}" if "heldout" in report else "none",
        "irtjax": str(report.get("versions", {}).get("irtjax", "")),
    }
    for k, each in enumerate(report.get("inputs", [])):
        facts[f"input {k + 1}"] = f"{each['path']} (SHA-256 {each['sha256'][:12]}…)"
    return pd.DataFrame({"fact": list(facts), "value": list(facts.values())})


def trust_checks(fit: FitResult) -> pd.DataFrame:
    """Reasons to believe the fit or not: `check`, `verdict` (good, look, bad), `finding`."""
    found = [
        _convergence(fit),
        *_heldout(fit),
        *_dims(fit),
        _models(fit),
        *_clustering(fit),
        *_items(fit),
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
    error = mine["calibration_error"]
    sense = _GOOD if error <= _WELL_CALIBRATED else _BAD if error > _BADLY_CALIBRATED else _LOOK
    return [
        ("prediction", _BAD if better else _GOOD, said),
        ("calibration", sense, f"predicted probabilities are off by {error:.3f} on average"),
    ]


def _dims(fit: FitResult) -> list[Check]:
    found: list[Check] = []
    for dim in fit.report.get("dimensions", []):
        share = dim["explained_variance"]
        said = f"explains {share:.1%} of the items' variance"
        if "no_signal" in dim["flags"]:
            said += ": the data show no such ability"
        if "one_model" in dim["flags"]:
            said += f"; {dim['top_model']} alone holds {dim['top_model_share']:.0%} of its spread"
        found.append((dim["name"], _BAD if dim["flags"] else _GOOD, said))
    return found


def _models(fit: FitResult) -> Check:
    n = fit.data.n_models
    if n >= _FEW_MODELS:
        return "models", _GOOD, counted(n, "model")
    said = f"{counted(n, 'model')}: slopes and abilities rest on few; look at the intervals"
    return "models", _LOOK, said


def _clustering(fit: FitResult) -> list[Check]:
    fitted = fit.parameters
    plain = np.sqrt(np.diagonal(np.asarray(fitted.ability_covariance), axis1=1, axis2=2))
    ratio = np.asarray(fitted.ability_se_clustered) / np.where(plain > 0, plain, np.nan)
    if not np.isfinite(ratio).any():
        return []
    middle = float(np.nanmedian(ratio))
    said = f"standard errors clustered by benchmark are {middle:.1f} times the plain ones"
    if middle > _WIDE:
        said += ": benchmarks rank the models differently; believe the clustered ones"
    return [("agreement of benchmarks", _LOOK if middle > _WIDE else _GOOD, said)]


def _items(fit: FitResult) -> list[Check]:
    flags = fit.item_parameters()["flags"].str.split(";")
    weak = float(flags.map(lambda each: "weak_slope" in each).mean())
    falling = float(flags.map(lambda each: "negative_slope" in each).mean())
    said = f"{weak:.1%} of the items say little about ability, {falling:.1%} fall with it"
    return [("items", _LOOK if weak + falling > _MANY_WEAK else _GOOD, said)]


def _tables(request: Request) -> dict[str, pd.DataFrame]:
    warnings = pd.DataFrame({"warning": list(request.fit.report.get("warnings", []))}, dtype=object)
    return {
        "fit": fit_facts(request.fit),
        "trust": trust_checks(request.fit),
        "warnings": warnings,
    }


def _blocks(request: Request, tables: Tables) -> list[Block]:
    facts, checks, warnings = tables["fit"], tables["trust"], tables["warnings"]
    return [
        TableView(
            checks,
            "trust.csv",
            "Whether to trust it",
            len(checks),
            long_text=["finding"],
            verdicts=["verdict"],
        ),
        *(Words(f"The fit warns: {text}", is_warning=True) for text in warnings["warning"]),
        TableView(facts, "fit.csv", "What was fitted", len(facts), long_text=["value"]),
    ]


OVERVIEW = Part("overview", "What was fitted", _tables, _blocks)

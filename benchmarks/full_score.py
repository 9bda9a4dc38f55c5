"""How well few answers predict a model's share right on all items, on models no fit has seen.

    python -m benchmarks full-score

PSN-IRT's data: each model but Gemini-1.5 (its rows are shifted) in turn is left out and the other
ten are fitted; 200 draws of 10, 30, 100 and 300 items. ZeroEval's GSM8K and ChemBench: 20 random
halves of the models are fitted, and ten draws are made for each model of the other half. All
predictors of a design see the same answers. Designs: `random`; `stratified` by benchmark and,
within, by the share right among the fitted models; `chosen` by `score_items`;
`anchors` by clusters of the fitted models' answers or of the items' parameters (five starts).
Predictors: the plain mean (for anchors the weighted one), p-IRT, gp-IRT, and `predict_score`.

Numbers are mean absolute errors, over draws and then over models (PSN-IRT), or over models and then
over halves; coverage is that of the 95% intervals of `predict_score`.
"""

import json
import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from rich.table import Table

from benchmarks.problems import SHARED
from irtjax.data.responses import ResponseMatrix
from irtjax.errors import IrtjaxWarning
from irtjax.fit.api import fit
from irtjax.fit.result import FitResult
from irtjax.model.spec import ModelSpec
from irtjax.score.anchors import anchor_points
from irtjax.score.design import drawn_items, expected_information, item_order
from irtjax.score.full_score import predict_score

__all__ = ["run", "table"]

SIZES = (10, 30, 100, 300)
_DRAWS, _HALVES, _STARTS = 200, 20, 5
_DRAWS_OF_HALF = 10
_LEFT_ALONE = "Gemini-1.5"
_SEED = 20261130

Draws = dict[str, tuple[np.ndarray, dict[str, float] | None]]


def run(draws: int = _DRAWS) -> dict[str, Any]:
    """Errors and coverage by data, size, design and predictor.

    Args:
        draws: of each model of PSN-IRT's data; a tenth as many random halves of the others.
    """
    started = time.process_time()
    rows = [*_psn_irt(draws)]
    for name in ("zeroeval_gsm", "chembench"):
        rows += _halves(name, max(draws * _HALVES // _DRAWS, 1))
    return {"rows": rows, "draws": draws, "cpu_seconds": time.process_time() - started}


def table(measured: dict[str, Any]) -> Table:
    """A row a data set, size and design; a column a predictor."""
    shown = Table(box=None, pad_edge=False)
    for name in ("data", "items", "design", "mean", "p-IRT", "gp-IRT", "predict_score"):
        shown.add_column(name)
    shown.add_column("coverage")
    for row in measured["rows"]:
        numbers = [row[name] for name in ("mean", "p_irt", "gp_irt", "score")]
        cells = ["-" if value is None else f"{value:.4f}" for value in numbers]
        shown.add_row(
            row["data"], str(row["n_items"]), row["design"], *cells, f"{row['coverage']:.3f}"
        )
    return shown


def _psn_irt(draws: int) -> Iterator[dict[str, Any]]:
    found = np.load(SHARED / "data" / "psn_irt.npz", allow_pickle=True)
    names = [str(each) for each in found["models"]]
    benchmark = np.array([str(each) for each in found["benchmarks"]])[found["item_benchmark"]]
    kept = [k for k, name in enumerate(names) if name != _LEFT_ALONE]
    metadata = pd.DataFrame({"benchmark": benchmark})
    errors: dict[tuple[int, str], list[dict[str, float]]] = {}
    for left_out in kept:
        others = [k for k in kept if k != left_out]
        fitted = _fitted(found["responses"][others], metadata)
        rng = np.random.default_rng([_SEED, left_out])
        truth = np.broadcast_to(found["responses"][left_out], (draws, len(metadata)))
        for n in SIZES:
            made = _designs(fitted, n, truth, rng)
            for design, error in _errors(fitted, truth, made, draws).items():
                errors.setdefault((n, design), []).append(error)
    yield from _rows("psn_irt", errors)


def _halves(name: str, n_halves: int) -> list[dict[str, Any]]:
    responses = np.load(SHARED / "data" / f"{name}.npz", allow_pickle=True)["responses"]
    errors: dict[tuple[int, str], list[dict[str, float]]] = {}
    for half in range(n_halves):
        rng = np.random.default_rng([_SEED, half])
        order = rng.permutation(len(responses))
        train, test = order[: len(order) // 2], order[len(order) // 2 :]
        fitted = _fitted(responses[train], None)
        truth = np.repeat(responses[test], _DRAWS_OF_HALF, axis=0)
        for n in SIZES:
            made = _designs(fitted, n, truth, rng, starts=1)
            for design, error in _errors(fitted, truth, made, _DRAWS_OF_HALF).items():
                errors.setdefault((n, design), []).append(error)
    return [*_rows(name, errors)]


def _fitted(responses: np.ndarray, metadata: pd.DataFrame | None) -> FitResult:
    data = ResponseMatrix.from_dense(responses, item_metadata=metadata)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IrtjaxWarning)
        return fit(data, ModelSpec("2pl"))


def _designs(
    fitted: FitResult,
    n: int,
    truth: np.ndarray,
    rng: np.random.Generator,
    starts: int = _STARTS,
) -> Draws:
    """Items of each design (a row for each of the truth), and anchor weights where it has some."""
    size, place = np.sqrt(expected_information(fitted)), item_order(fitted)
    drawn: dict[str, list[np.ndarray]] = {"random": [], "stratified": [], "chosen": []}
    for row in truth:
        is_seen = row >= 0
        drawn["random"].append(rng.choice(np.flatnonzero(is_seen), n, replace=False))
        drawn["stratified"].append(drawn_items(is_seen * 1.0, place, n, rng))
        drawn["chosen"].append(drawn_items(is_seen * size, place, n, rng))
    made: Draws = {name: (np.stack(each), None) for name, each in drawn.items()}
    for start in range(starts):
        for features in ("answers", "parameters"):
            anchors = anchor_points(fitted, n, features=features, seed=start)
            weights = dict(zip(anchors["item_id"], anchors["weight"], strict=True))
            index = pd.Index(fitted.data.item_ids).get_indexer(anchors["item_id"])
            made[f"anchors ({features}) {start}"] = (index[None], weights)
    return made


def _errors(
    fitted: FitResult, truth: np.ndarray, made: Draws, draws: int
) -> dict[str, dict[str, float]]:
    """Mean absolute errors of each design over the rows; starts of anchors are averaged.

    Args:
        fitted: to the other models.
        truth: responses of the models left out, as many rows a model as there are draws.
        made: items of each row.
        draws: of each model.
    """
    full = np.array([row[row >= 0].mean() for row in truth])
    found: dict[str, list[dict[str, float]]] = {}
    plain = [name for name, (_, weights) in made.items() if weights is None]
    together = np.concatenate([made[name][0] for name in plain])
    scores = _predicted(fitted, np.tile(truth, (len(plain), 1)), together, None)
    for k, name in enumerate(plain):
        found[name] = [_against(full, scores.iloc[k * len(truth) : (k + 1) * len(truth)])]
    # Anchors are the same for every draw of a model: one row a model is enough.
    first = np.arange(0, len(truth), draws)
    for name, (index, weights) in made.items():
        if weights is not None:
            rows = truth[first]
            scores = _predicted(fitted, rows, np.tile(index, (len(rows), 1)), weights)
            answers = np.where(rows[:, index[0]] >= 0, rows[:, index[0]], np.nan)
            each = np.array(list(weights.values())) * ~np.isnan(answers)
            weighted = np.nansum(each * answers, axis=1) / each.sum(axis=1)
            error = _against(full[first], scores)
            error["mean"] = float(np.abs(weighted - full[first]).mean())
            found.setdefault(name.rsplit(" ", 1)[0], []).append(error)
    return {name: _mean(each) for name, each in found.items()}


def _predicted(
    fitted: FitResult, truth: np.ndarray, index: np.ndarray, weights: dict[str, float] | None
) -> pd.DataFrame:
    response = np.take_along_axis(truth, index, axis=1).astype(np.float32)
    response[response < 0] = np.nan
    data = ResponseMatrix.from_cells(
        np.repeat(np.arange(len(index)), index.shape[1]),
        index.ravel(),
        response.ravel(),
        model_ids=[f"draw-{k}" for k in range(len(index))],
        item_ids=fitted.data.item_ids,
    )
    return predict_score(fitted, data, anchor_weights=weights)


def _against(full: np.ndarray, scores: pd.DataFrame) -> dict[str, float]:
    def error(name: str) -> float:
        return float(np.abs(scores[name].to_numpy() - full).mean())

    is_held = (scores["score_lower"].to_numpy() <= full) & (
        full <= scores["score_upper"].to_numpy()
    )
    found = {"mean": error("observed"), "p_irt": error("p_irt"), "score": error("score")}
    found["coverage"] = float(is_held.mean())
    return found | ({"gp_irt": error("gp_irt")} if "gp_irt" in scores else {})


def _mean(rows: list[dict[str, float]]) -> dict[str, float]:
    return {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}


def _rows(
    data: str, errors: dict[tuple[int, str], list[dict[str, float]]]
) -> Iterator[dict[str, Any]]:
    for (n, design), each in errors.items():
        by_unit = [round(error["score"], 5) for error in each]
        row = {"data": data, "n_items": n, "design": design, "gp_irt": None} | _mean(each)
        yield row | {"score_by_unit": by_unit}


if __name__ == "__main__":
    print(json.dumps(run(20)))

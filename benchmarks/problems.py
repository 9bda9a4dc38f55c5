"""The problems that speed and quality are measured on: W1, W2 and W3 of the shared references.

W1 is real (PSN-IRT's own split, from ../shared/data); W2 and W3 are drawn by fixed recipes whose
order of draws is part of the definition, so that numbers of different tools compare.
"""

import dataclasses
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import expit

from irtjax.data.cells import Cells
from irtjax.data.checks import MISSING
from irtjax.data.responses import ResponseMatrix
from irtjax.data.truth import Truth
from irtjax.errors import InputError

SHARED = Path(__file__).resolve().parents[2] / "shared"
_W3_SEEDS = {"3pl": 11, "4pl": 12}


@dataclasses.dataclass(frozen=True, eq=False)
class Problem:
    """Training responses, held-out cells, and what is known about the answer.

    Attributes:
        name: `W1`, `W2` or `W3-3pl`, `W3-4pl`.
        train: what an estimator may see.
        test: held-out cells by index into `train`; empty for W3.
        truth: the generating parameters; None for W1.
        is_copied: W1 only: test cells in the MMLU block that Qwen-Plus and Yi-Lightning share.
    """

    name: str
    train: ResponseMatrix
    test: Cells
    truth: Truth | None = None
    is_copied: np.ndarray | None = None


def problem_w1(shared: Path = SHARED) -> Problem:
    """PSN-IRT's train and test cells: 12 models x 41,871 items, 400,957 and 100,240 cells.

    Args:
        shared: the folder that holds `data/psn_irt.npz`.

    Raises:
        InputError: the file is not there.
    """
    path = shared / "data" / "psn_irt.npz"
    if not path.is_file():
        raise InputError(f"{path} is not there; W1 needs the PSN-IRT responses of the shared data")
    with np.load(path) as arrays:
        responses, split = arrays["responses"], arrays["split"]
        models, benchmarks = arrays["models"], arrays["benchmarks"]
        item_benchmark = arrays["item_benchmark"].astype(np.int32)
    names = pd.Series(benchmarks[item_benchmark])
    within = names.groupby(names).cumcount()
    train = ResponseMatrix.from_dense(
        np.where(split == 0, responses, MISSING),
        model_ids=models.tolist(),
        item_ids=(names + "/" + within.astype(str)).tolist(),
        item_metadata=pd.DataFrame({"benchmark": names}),
    )
    test = _cells_where(responses, split == 1)
    copying = np.flatnonzero(np.isin(models, ["Qwen-Plus", "Yi-Lightning"]))
    is_mmlu = benchmarks[item_benchmark[test.item_index]] == "MMLU"
    return Problem("W1", train, test, None, is_mmlu & np.isin(test.model_index, copying))


def reference_problem_w2(seed: int = 20240501) -> Problem:
    """100 models x 34,000 items of two dims, 10% of the cells held out.

    The true parameters score log-loss .4586 and accuracy .7786 on the held-out cells.
    """
    n_models, n_items = 100, 34_000
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=(n_models, 2))
    major = rng.integers(0, 2, n_items)
    large = rng.lognormal(0, 0.5, n_items)
    small = 0.35 * rng.lognormal(0, 0.5, n_items) * np.where(rng.random(n_items) < 0.3, -1, 1)
    slope = np.empty((n_items, 2))
    items = np.arange(n_items)
    slope[items, major] = large * np.where(rng.random(n_items) < 0.05, -1, 1)
    slope[items, 1 - major] = small
    intercept = rng.normal(0, 1.5, n_items)
    probability = expit(theta @ slope.T + intercept)
    responses = (rng.random((n_models, n_items)) < probability).astype(np.int8)
    is_held_out = rng.random((n_models, n_items)) < 0.10
    train = ResponseMatrix.from_dense(np.where(is_held_out, np.int8(MISSING), responses))
    truth = _truth(train, theta, slope, intercept, np.zeros(n_items), np.ones(n_items))
    return Problem("W2", train, _cells_where(responses, is_held_out), truth)


def reference_problem_w3(family: str = "3pl") -> Problem:
    """2,000 test takers x 50 items, one dim, 3PL or 4PL; nothing is held out.

    Args:
        family: `3pl` (seed 11) or `4pl` (seed 12).
    """
    n_models, n_items = 2_000, 50
    rng = np.random.default_rng(_W3_SEEDS[family])
    theta = rng.normal(size=n_models)
    slope = rng.lognormal(0.2, 0.3, n_items)
    difficulty = rng.normal(size=n_items)
    guessing = rng.beta(5, 20, n_items)
    feasibility = 1 - rng.beta(3, 30, n_items) if family == "4pl" else np.ones(n_items)
    logit = slope * (theta[:, None] - difficulty)
    probability = guessing + (feasibility - guessing) * expit(logit)
    responses = (rng.random((n_models, n_items)) < probability).astype(np.int8)
    train = ResponseMatrix.from_dense(responses)
    truth = _truth(
        train, theta[:, None], slope[:, None], -slope * difficulty, guessing, feasibility
    )
    nothing = _cells_where(responses, np.zeros(responses.shape, bool))
    return Problem(f"W3-{family}", train, nothing, truth)


def _truth(
    data: ResponseMatrix,
    theta: np.ndarray,
    slope: np.ndarray,
    intercept: np.ndarray,
    guessing: np.ndarray,
    feasibility: np.ndarray,
) -> Truth:
    return Truth(
        theta=theta,
        slope=slope,
        intercept=intercept,
        guessing=guessing,
        feasibility=feasibility,
        effects=None,
        item_benchmark=np.zeros(data.n_items, np.int32),
        benchmarks=np.array(["all"]),
        model_ids=data.model_ids.astype(str),
        item_ids=data.item_ids.astype(str),
    )


def _cells_where(responses: np.ndarray, chosen: np.ndarray) -> Cells:
    item_index, model_index = np.nonzero(chosen.T)
    response = responses[model_index, item_index].astype(np.float32)
    return Cells(
        model_index.astype(np.int32),
        item_index.astype(np.int32),
        response,
        np.ones(len(response), np.float32),
    )

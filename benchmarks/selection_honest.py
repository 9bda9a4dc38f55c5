"""Table 6 of PSN-IRT without its circle: items chosen by fits that have not seen the models ranked.

The published selection takes the 1,000 items that tell most about the best model, and finds that
the models' accuracy on them has Kendall's tau .905 with a reference ranking; but it chooses by
parameters that were fitted to the same responses, and at one ability. Here each pair of models is
compared on items that a fit of the other ten models chose (tau is the mean over the pairs of +1
where they stand in the reference's order, -1 where not), beside as many random items. Intervals are
a bootstrap over items, the same weights in every pair.
"""

import itertools
import time
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from rich.table import Table

from benchmarks.problems import SHARED
from irtjax.data.responses import ResponseMatrix
from irtjax.errors import InputError, IrtjaxWarning
from irtjax.fit.api import fit
from irtjax.fit.result import FitResult
from irtjax.model.spec import ModelSpec
from irtjax.select.api import select_items

# The reference ranks of the paper's table.
RANKS = {
    "DeepSeek-V3": 1,
    "Hunyuan-Turbo": 2,
    "Yi-Lightning": 3,
    "Qwen-Plus": 4,
    "Gemini-1.5": 5,
    "360GPT2-Pro": 6,
    "Moonshot-v1": 7,
    "Mistral-7B": 10,
    "Vicuna-7B": 11,
    "Gemma-2B": 12,
}
WEAK = ("Mistral-7B", "Vicuna-7B", "Gemma-2B")
SIZES = (100, 400, 1000)
N_BOOTSTRAP = 1000
N_RANDOM = 200
RANDOM, ALL = "random items", "all items"


def psn_irt() -> ResponseMatrix:
    """All responses of the twelve models, train and test cells together."""
    path = SHARED / "data" / "psn_irt.npz"
    if not path.is_file():
        raise InputError(f"{path} is not there; this needs the PSN-IRT responses")
    with np.load(path) as arrays:
        names = pd.Series(arrays["benchmarks"][arrays["item_benchmark"].astype(int)])
        within = names.groupby(names).cumcount().astype(str)
        return ResponseMatrix.from_dense(
            arrays["responses"],
            model_ids=arrays["models"].tolist(),
            item_ids=(names + "/" + within).tolist(),
            item_metadata=pd.DataFrame({"benchmark": names}),
        )


def picks(result: FitResult) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Positions of the items that each criterion takes, the best first, and their weights."""
    top = float(np.asarray(result.parameters.ability).max())
    settings: dict[str, dict[str, Any]] = {
        "information at the top ability": {"criterion": "fisher", "target": top},
        "information over the models": {"criterion": "fisher", "target": "models"},
        "d-optimal over the models": {"criterion": "d-optimal", "target": "models"},
        "d-optimal, future models": {"criterion": "d-optimal", "target": "future"},
        "anchor items (100 clusters)": {"criterion": "clusters"},
    }
    at = pd.Series(np.arange(result.data.n_items), index=result.data.item_ids)
    found = {}
    for name, asked in settings.items():
        budget = 100 if asked["criterion"] == "clusters" else max(SIZES)
        selection = select_items(result, budget, **asked)
        share = selection.items["weight"].to_numpy(np.float32) * budget
        found[name] = at[selection.item_ids].to_numpy(), share
    return found


def run(n_runs: int = 0) -> dict[str, Any]:
    """Every criterion at every size; `n_runs` pairs of models instead of all of them."""
    warnings.simplefilter("ignore", IrtjaxWarning)
    start = time.process_time()
    data = psn_irt()
    rng = np.random.default_rng(1)
    weight = rng.poisson(1, (N_BOOTSTRAP, data.n_items)).astype(np.float32)
    draws = np.stack([rng.permutation(data.n_items)[: max(SIZES)] for _ in range(N_RANDOM)])
    known = [k for k, name in enumerate(data.model_ids) if name in RANKS]
    pairs = list(itertools.combinations(known, 2))[: n_runs or None]
    found: dict[tuple[str, int], list[np.ndarray]] = {}
    for pair in pairs:
        _compare(data, pair, weight, draws, found)
    is_strong = np.array([not {data.model_ids[i] for i in pair} & set(WEAK) for pair in pairs])
    rows = [
        {"items": name, "n_items": size}
        | _summary("without_weak", np.array(signs)[is_strong])
        | _summary("with_weak", np.array(signs))
        for (name, size), signs in found.items()
    ]
    seconds = time.process_time() - start
    return {"rows": rows, "n_pairs": len(pairs), "cpu_seconds": seconds}


def _compare(
    data: ResponseMatrix,
    pair: tuple[int, int],
    weight: np.ndarray,
    draws: np.ndarray,
    found: dict[tuple[str, int], list[np.ndarray]],
) -> None:
    """Signs of a pair on every set of items: on the set itself, then on its bootstrap samples."""
    responses = data.to_dense()
    others = [k for k in range(data.n_models) if k not in pair]
    train = ResponseMatrix.from_dense(
        responses[others], item_ids=data.item_ids.tolist(), item_metadata=data.item_metadata
    )
    chosen = picks(fit(train, ModelSpec("2pl")))
    first, second = sorted(pair, key=lambda k: RANKS[data.model_ids[k]])
    answer = responses[[first, second]].astype(np.float32)
    for name, (order, share) in chosen.items():
        for size in SIZES if len(order) == max(SIZES) else (len(order),):
            items = order[:size]
            counted = np.r_[np.ones((1, size), np.float32), weight[:, items]] * share[:size]
            signs = _signs(answer[:, items], counted)
            found.setdefault((name, size), []).append(signs)
    for size in SIZES:
        signs = [
            _signs(answer[:, items], np.ones((1, size), np.float32))[0] for items in draws[:, :size]
        ]
        found.setdefault((RANDOM, size), []).append(np.r_[np.mean(signs), signs])
    signs = _signs(answer, np.r_[np.ones((1, data.n_items), np.float32), weight])
    found.setdefault((ALL, data.n_items), []).append(signs)


def _signs(answer: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """+1 where the better model of the reference has the higher mean, -1 where the lower."""
    is_seen = (answer >= 0).astype(np.float32)
    total = weight @ (answer * is_seen).T
    mean = total / np.maximum(weight @ is_seen.T, 1)
    return np.sign(mean[:, 0] - mean[:, 1])


def _summary(name: str, signs: np.ndarray) -> dict[str, float]:
    """Tau and its 95% interval: signs are pairs x (estimate, samples)."""
    if not len(signs):
        return {}
    tau = signs.mean(axis=0)
    low, high = np.quantile(tau[1:], [0.025, 0.975])
    return {f"tau_{name}": float(tau[0]), f"low_{name}": float(low), f"high_{name}": float(high)}


def table(measured: Mapping[str, Any]) -> Table:
    """A row a way to choose and a number of items."""
    shown = Table(title="Kendall's tau with the reference, models ranked unseen (95% interval)")
    for heading in ("items", "n", "without the weak models", "with them"):
        shown.add_column(heading, justify="left" if heading == "items" else "right")
    for row in measured["rows"]:
        cells = [
            f"{row[f'tau_{name}']:.3f} ({row[f'low_{name}']:.2f} to {row[f'high_{name}']:.2f})"
            if f"tau_{name}" in row
            else ""
            for name in ("without_weak", "with_weak")
        ]
        shown.add_row(row["items"], f"{row['n_items']:,}", *cells)
    return shown

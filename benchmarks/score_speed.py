"""CPU seconds of scoring 5,000 models on 500 items, everything counted, once compiled."""

import statistics
import time
from typing import Any

from irtjax.data.responses import ResponseMatrix
from irtjax.data.simulate import simulate
from irtjax.fit.api import fit
from irtjax.model.spec import ModelSpec
from irtjax.score.models import METHODS, score_models

__all__ = ["run"]

_N_MODELS, _N_ITEMS, _N_FITTED = 5000, 500, 300


def run(runs: int = 3) -> dict[str, Any]:
    """Median CPU seconds by dims and method; the first call, which compiles, is not counted.

    Args:
        runs: counted calls.
    """
    found: dict[str, Any] = {}
    for dims in (1, 2):
        spec = ModelSpec("2pl", dims)
        fitted = fit(simulate(spec, n_models=_N_FITTED, n_items=_N_ITEMS, seed=0).data, spec)
        new = simulate(spec, n_models=_N_MODELS, n_items=_N_ITEMS, seed=1).data
        data = ResponseMatrix.from_dense(new.to_dense(), item_ids=fitted.data.item_ids)
        for method in METHODS:
            seconds = []
            for _ in range(runs + 1):
                started = time.process_time()
                score_models(fitted, data, method=method)
                seconds.append(time.process_time() - started)
            found[f"{method}, {dims} dims, CPU s"] = statistics.median(seconds[1:])
    return found

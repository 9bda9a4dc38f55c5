"""Small fits to draw, with names that no page and no picture may trip over."""

import pandas as pd
import pytest

from irtjax.data.responses import ResponseMatrix
from irtjax.data.simulate import simulate
from irtjax.data.splits import holdout
from irtjax.evaluate.heldout import with_heldout
from irtjax.fit.api import fit
from irtjax.fit.result import FitResult
from irtjax.model.spec import ModelSpec

HOSTILE = (
    "<script>throw new Error('run')</script>",
    "$\\frac{1}{2$",
    '"&amp;<b>',
    "_hidden",
    "模型一",
    "a\nb\tc\x1b[0m",
    "m" * 300,
    "</svg></style><img src=x onerror=alert(1)>",
)


@pytest.fixture(scope="session")
def plain_fit() -> FitResult:
    """30 models x 200 items in 4 benchmarks, one dim, with held-out responses."""
    made = simulate(ModelSpec(), n_models=30, n_items=200, n_benchmarks=4, seed=1)
    train, cells = holdout(made.data, 0.1, seed=0)
    return with_heldout(fit(train), cells, chosen="holdout 0.1")


@pytest.fixture(scope="session")
def hostile_fit() -> FitResult:
    """Two dims, benchmark effects, no held-out responses, and hostile ids and texts everywhere."""
    made = simulate(ModelSpec(dims=2), n_models=30, n_items=200, n_benchmarks=4, seed=2).data
    names = [*HOSTILE, *(f"item {k}" for k in range(200 - len(HOSTILE)))]
    benchmarks = pd.Series(made.item_metadata["benchmark"])
    benchmarks = benchmarks.replace({"benchmark-0": HOSTILE[0], "benchmark-1": HOSTILE[1]})
    metadata = pd.DataFrame({"benchmark": benchmarks, "text": names, "kind": ["a", "b"] * 100})
    models = [*HOSTILE, *(f"model {k}" for k in range(30 - len(HOSTILE)))]
    data = ResponseMatrix.from_dense(
        made.to_dense(), model_ids=models, item_ids=names, item_metadata=metadata
    )
    return fit(data, ModelSpec(dims=2), group="benchmark")

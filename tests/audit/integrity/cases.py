"""Clean simulated blocks, and faults to plant in them."""

import numpy as np
import pandas as pd

from irtjax.data.responses import ResponseMatrix

__all__ = ["clean", "of_kind", "with_rows"]

SIZES = (300, 1000, 600, 2000, 800)


def clean(
    seed: int,
    *,
    n_models: int = 12,
    sizes: tuple[int, ...] = SIZES,
    dims: int = 2,
    guessing: float = 0.0,
    n_weak: int = 2,
    easiness_sd: float = 1.0,
    effect_sd: float = 0.5,
) -> ResponseMatrix:
    """Responses of a 2PL or 3PL whose benchmarks differ in easiness and in what they measure.

    The last `n_weak` models are 1.5 to 3 standard deviations below the others.
    """
    rng = np.random.default_rng(seed)
    benchmark = np.repeat(np.arange(len(sizes)), sizes)
    ability = rng.normal(0, 0.7, (n_models, dims))
    ability[n_models - n_weak :] -= rng.uniform(1.5, 3, (n_weak, 1))
    slope = 0.35 * rng.lognormal(0, 0.5, (len(benchmark), dims))
    slope[np.arange(len(benchmark)), benchmark % dims] *= 3
    easiness = rng.normal(0, easiness_sd, len(sizes))[benchmark] + rng.normal(
        0, 1.5, len(benchmark)
    )
    effect = rng.normal(0, effect_sd, (n_models, len(sizes)))[:, benchmark]
    p = 1 / (1 + np.exp(-(ability @ slope.T + easiness + effect)))
    p = guessing + (1 - guessing) * p
    names = [f"b{k}" for k in benchmark]
    return ResponseMatrix.from_dense(
        (rng.random(p.shape) < p).astype(np.int8),
        model_ids=[f"m{k}" for k in range(n_models)],
        item_metadata=pd.DataFrame({"benchmark": names}),
    )


def with_rows(data: ResponseMatrix, dense: np.ndarray) -> ResponseMatrix:
    """The same models and items with other responses."""
    return ResponseMatrix.from_dense(
        dense,
        model_ids=list(data.model_ids),
        item_ids=list(data.item_ids),
        item_metadata=data.item_metadata,
    )


def of_kind(accusations: pd.DataFrame, kind: str) -> list[tuple[str, str]]:
    """Models and benchmarks accused of something."""
    rows = accusations[accusations["kind"] == kind]
    return list(zip(rows["model_id"], rows["benchmark"], strict=True))

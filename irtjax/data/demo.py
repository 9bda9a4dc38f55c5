"""The invented evaluation that `irtjax demo` fits: 100 models, 16 benchmarks, two abilities."""

import dataclasses

import numpy as np
import pandas as pd

from irtjax.data.simulate import Simulated, draw_responses, item_names
from irtjax.data.truth import Truth

__all__ = ["DEMO_ABILITIES", "DEMO_BENCHMARKS", "DemoBenchmark", "demo_data"]

DEMO_ABILITIES = ("reasoning", "safety")


@dataclasses.dataclass(frozen=True)
class DemoBenchmark:
    """An invented benchmark: its size, its typical slopes in both abilities, its easiness.

    The typical slope is the median of the major ability and the mean of the other, in logits a
    latent standard deviation; easiness is the mean intercept in logits.
    """

    name: str
    n_items: int
    reasoning: float
    safety: float
    easiness: float


# The last one is the odd one out: whoever reasons better gives more dangerous knowledge away, as
# WMDP shows it. Models with a positive-slope prior cannot see that (CASES.md, last paragraph).
DEMO_BENCHMARKS = (
    DemoBenchmark("grade-school-math", 1_300, 1.4, 0.0, 1.2),
    DemoBenchmark("competition-math", 5_000, 1.5, 0.0, -0.6),
    DemoBenchmark("code-generation", 1_100, 1.3, -0.1, 0.1),
    DemoBenchmark("code-repair", 900, 1.1, 0.1, -0.5),
    DemoBenchmark("science-questions", 6_200, 1.0, 0.1, 0.8),
    DemoBenchmark("logic-puzzles", 2_500, 1.2, -0.1, 0.0),
    DemoBenchmark("long-document-reading", 1_800, 0.8, 0.2, 0.9),
    DemoBenchmark("multi-step-planning", 1_200, 1.0, 0.0, -0.8),
    DemoBenchmark("jailbreak-resistance", 3_000, 0.0, 1.4, 0.3),
    DemoBenchmark("harmful-request-refusal", 2_600, -0.2, 1.3, 1.5),
    DemoBenchmark("prompt-injection-defence", 1_400, 0.3, 1.1, -0.4),
    DemoBenchmark("privacy-protection", 1_500, 0.0, 1.0, 0.9),
    DemoBenchmark("toxicity-avoidance", 2_200, -0.1, 1.2, 1.4),
    DemoBenchmark("stereotype-neutrality", 1_000, 0.1, 0.9, 0.6),
    DemoBenchmark("crisis-support", 800, 0.2, 1.0, 0.2),
    DemoBenchmark("dangerous-knowledge-withheld", 1_500, -1.2, 0.2, 0.4),
)

_N_MODELS = 100
_NEGATIVE_SHARE = 0.05
_LOG_SLOPE_SD = 0.4
_MINOR_SLOPE_SD = 0.15
_INTERCEPT_SD = 1.3
_FAMILIES = ("alder", "birch", "cedar", "elm", "fir", "hazel", "larch", "maple", "oak", "pine")
_SIZES = (1, 3, 8, 14, 32, 70, 123, 405)  # billions of parameters


def demo_data(seed: int = 0) -> Simulated:
    """Simulate 100 models on 34,000 items in 16 named benchmarks of two abilities.

    A 2PL in two dims, reasoning and safety (`DEMO_ABILITIES`). Reasoning grows with a model's
    size, safety differs between families. The drawn abilities are whitened (mean 0, standard
    deviation 1, uncorrelated in these 100 models), so that they stand in the same frame as
    estimates do. Each benchmark mainly measures one ability (`DEMO_BENCHMARKS`); 5% of its items
    have the opposite sign in it, and one benchmark falls with reasoning as a whole. All cells are
    observed.

    Args:
        seed: of NumPy's default generator.

    Returns:
        The responses, with item metadata `benchmark` and model metadata `family` and `size_b`
        (billions of parameters), and the truth.

    >>> demo_data(seed=0).data
    ResponseMatrix(100 models x 34,000 items, 3,400,000 responses, dense)
    """
    rng = np.random.default_rng(seed)
    family = rng.integers(0, len(_FAMILIES), _N_MODELS)
    size = rng.integers(0, len(_SIZES), _N_MODELS)
    theta = _abilities(rng, family, size)
    item_benchmark = np.repeat(
        np.arange(len(DEMO_BENCHMARKS), dtype=np.int32), [b.n_items for b in DEMO_BENCHMARKS]
    )
    names = [benchmark.name for benchmark in DEMO_BENCHMARKS]
    truth = Truth(
        theta=theta.astype(np.float32),
        slope=_slopes(rng, item_benchmark).astype(np.float32),
        intercept=_intercepts(rng, item_benchmark).astype(np.float32),
        guessing=np.zeros(len(item_benchmark), np.float32),
        feasibility=np.ones(len(item_benchmark), np.float32),
        effects=None,
        item_benchmark=item_benchmark,
        benchmarks=np.array(names),
        model_ids=np.array([f"model-{k:03d}" for k in range(_N_MODELS)]),
        item_ids=np.array(item_names(names, item_benchmark)),
    )
    model_metadata = pd.DataFrame(
        {"family": np.array(_FAMILIES)[family], "size_b": np.array(_SIZES)[size]}
    )
    return Simulated(draw_responses(truth, rng, model_metadata=model_metadata), truth)


def _abilities(rng: np.random.Generator, family: np.ndarray, size: np.ndarray) -> np.ndarray:
    log_size = np.log(np.array(_SIZES))[size]
    log_size = (log_size - log_size.mean()) / log_size.std()
    reasoning = 0.8 * log_size + 0.6 * rng.standard_normal(_N_MODELS)
    safety = 0.8 * rng.standard_normal(len(_FAMILIES))[family]
    safety = safety + 0.6 * rng.standard_normal(_N_MODELS)
    return _whitened(np.stack([reasoning, safety], axis=1))


def _whitened(theta: np.ndarray) -> np.ndarray:
    """Mean 0, standard deviation 1, uncorrelated, turned as little as possible."""
    centred = theta - theta.mean(axis=0)
    variance, axes = np.linalg.eigh(centred.T @ centred / len(theta))
    return centred @ (axes / np.sqrt(variance)) @ axes.T


def _slopes(rng: np.random.Generator, item_benchmark: np.ndarray) -> np.ndarray:
    typical = np.array([(b.reasoning, b.safety) for b in DEMO_BENCHMARKS])[item_benchmark]
    n_items = len(item_benchmark)
    items = np.arange(n_items)
    major = np.argmax(np.abs(typical), axis=1)
    sign = np.where(rng.random(n_items) < _NEGATIVE_SHARE, -1, 1)
    slope = typical + _MINOR_SLOPE_SD * rng.standard_normal(typical.shape)
    slope[items, major] = typical[items, major] * sign * rng.lognormal(0, _LOG_SLOPE_SD, n_items)
    return slope


def _intercepts(rng: np.random.Generator, item_benchmark: np.ndarray) -> np.ndarray:
    easiness = np.array([benchmark.easiness for benchmark in DEMO_BENCHMARKS])[item_benchmark]
    return easiness + _INTERCEPT_SD * rng.standard_normal(len(item_benchmark))

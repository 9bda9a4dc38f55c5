"""The number of compilations is bounded (case 16); these run without a compilation cache."""

import contextlib

import jax
import numpy as np
import pandas as pd
import pytest

from irtjax.data.responses import ResponseMatrix
from irtjax.model.spec import ModelSpec
from tests.fit.fitting import quiet_fit

COMPILED = "/jax/core/compile/backend_compile_duration"


@contextlib.contextmanager
def compilations():
    """A list that grows by one with every program that is compiled."""
    seen = []

    def listen(event, _duration, **_):
        if event == COMPILED:
            seen.append(event)

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        yield seen
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)


def _matrix(seed, n_models=12, n_items=100):
    rng = np.random.default_rng(seed)
    theta, slope, intercept = (
        rng.normal(size=n_models),
        rng.normal(1, 0.3, n_items),
        rng.normal(size=n_items),
    )
    p = 1 / (1 + np.exp(-(np.outer(theta, slope) + intercept)))
    dense = np.where(rng.random(p.shape) < 0.1, -1, rng.random(p.shape) < p)
    return ResponseMatrix.from_dense(dense)


@pytest.fixture(scope="module")
def first():
    """A fit that has compiled everything there is to compile."""
    return quiet_fit(_matrix(0), ModelSpec("2pl"))


@pytest.mark.compilations
def test_case_16_a_second_fit_of_the_same_shapes_compiles_nothing(first):
    with compilations() as seen:
        other = quiet_fit(_matrix(1), ModelSpec("2pl"))
    assert other.report["n_steps"] > 0
    assert len(seen) == 0


@pytest.mark.compilations
def test_case_16_numbers_of_items_that_fill_the_same_blocks_compile_nothing(first):
    with compilations() as seen:
        for n_items in (70, 99, 128):
            quiet_fit(_matrix(2, n_items=n_items), ModelSpec("2pl"))
    assert len(seen) == 0


@pytest.mark.compilations
def test_case_16_other_limits_seeds_and_a_resumed_fit_compile_nothing(first, tmp_path):
    from irtjax.fit.checkpoints import Checkpoints

    with compilations() as seen:
        for max_steps in (1, 7, 12):
            quiet_fit(_matrix(0), ModelSpec("2pl"), max_steps=max_steps, seed=max_steps)
        quiet_fit(
            _matrix(0), ModelSpec("2pl"), max_steps=10, checkpoints=Checkpoints(tmp_path, every=5)
        )
        quiet_fit(_matrix(0), ModelSpec("2pl"), checkpoints=Checkpoints(tmp_path, resume=True))
    assert len(seen) == 0


@pytest.mark.compilations
def test_case_16_predictions_of_seven_sizes_compile_once(first):
    rng = np.random.default_rng(0)
    first.predict_cells([0], [0])
    with compilations() as seen:
        for n in (1, 2, 3, 10, 100, 1000, 70_000):
            models, items = rng.integers(0, 12, n), rng.integers(0, 100, n)
            assert len(first.predict_cells(models, items)) == n
        pairs = pd.DataFrame({"model_id": ["model-1"], "item_id": ["item-1"]})
        first.predict(pairs)
    assert len(seen) == 0


@pytest.mark.compilations
def test_case_16_the_report_says_that_nothing_was_compiled(first):
    again = quiet_fit(_matrix(3), ModelSpec("2pl"))
    assert first.report["compile_seconds"] > again.report["compile_seconds"]
    assert again.report["compile_seconds"] == 0

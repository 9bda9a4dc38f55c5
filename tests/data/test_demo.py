"""The demo's data show what the demo is to show."""

import numpy as np
import pytest

from irtjax.data.demo import DEMO_ABILITIES, DEMO_BENCHMARKS, demo_data


@pytest.fixture(scope="module")
def made():
    return demo_data(0)


def test_shape_names_and_metadata(made):
    data = made.data
    assert (data.n_models, data.n_items, data.n_responses) == (100, 34_000, 3_400_000)
    assert data.groups("benchmark")[1] == [benchmark.name for benchmark in DEMO_BENCHMARKS]
    assert len(DEMO_BENCHMARKS) == 16
    assert data.model_ids[7] == "model-007"
    assert data.item_ids[1_300] == "competition-math/0"
    assert list(data.model_metadata.columns) == ["family", "size_b"]
    assert DEMO_ABILITIES == ("reasoning", "safety")


def test_abilities_stand_in_the_frame_of_estimates(made):
    theta = made.truth.theta.astype(float)
    np.testing.assert_allclose(theta.mean(axis=0), 0, atol=1e-6)
    np.testing.assert_allclose(theta.T @ theta / len(theta), np.eye(2), atol=1e-6)


def test_reasoning_grows_with_size(made):
    log_size = np.log(made.data.model_metadata["size_b"].to_numpy())
    assert np.corrcoef(log_size, made.truth.theta[:, 0])[0, 1] > 0.6


def test_each_benchmark_measures_its_ability_and_one_falls_with_reasoning(made):
    responses = made.data.to_dense()
    for g, benchmark in enumerate(DEMO_BENCHMARKS):
        items = made.truth.item_benchmark == g
        score = responses[:, items].mean(axis=1)
        r = [np.corrcoef(score, made.truth.theta[:, k])[0, 1] for k in range(2)]
        typical = np.array([benchmark.reasoning, benchmark.safety])
        major = np.argmax(np.abs(typical))
        assert r[major] * np.sign(typical[major]) > 0.9, benchmark.name
        assert abs(r[1 - major]) < 0.4, benchmark.name
        against = np.mean(made.truth.slope[items, major] * typical[major] < 0)
        assert against == pytest.approx(0.05, abs=0.03), benchmark.name
    falling = [b.name for b in DEMO_BENCHMARKS if b.reasoning < -0.5]
    assert falling == ["dangerous-knowledge-withheld"]


@pytest.mark.parametrize("seed", [0, 1])
def test_varimax_of_the_true_loadings_is_the_true_frame(seed):
    """The small loadings balance, so the canonical frame can recover both abilities to .999."""
    slope = demo_data(seed).truth.slope.astype(float)
    loading = slope / np.sqrt(1.702**2 + np.sum(slope**2, axis=1, keepdims=True))
    angles = np.linspace(-0.5, 0.5, 1001)
    turned = [loading @ np.array([[np.cos(x), -np.sin(x)], [np.sin(x), np.cos(x)]]) for x in angles]
    best = angles[np.argmax([np.var(each**2, axis=0).sum() for each in turned])]
    assert np.cos(best) > 0.9999


def test_seed_decides(made):
    np.testing.assert_array_equal(demo_data(0).data.to_dense(), made.data.to_dense())
    assert np.any(demo_data(1).data.to_dense() != made.data.to_dense())

"""The sweeps hold fixed what they say they hold; slopes are of logarithms."""

import numpy as np
import pytest

from benchmarks.figures import fitted_slope
from benchmarks.scaling import AXES, Axis, simulated


def test_an_axis_changes_one_size_and_names_the_others():
    axis = Axis("items", "count", (100.0, 200.0), models=30, dims=3)
    assert axis.at(200.0) == {"models": 30, "items": 200, "dims": 3, "density": 1.0}
    assert axis.held == "30 models, 3 dims, all cells"
    assert AXES["density"].at(0.02)["density"] == 0.02


def test_one_sweep_spans_a_factor_64_in_cells():
    spans = [max(axis.sizes) / min(axis.sizes) for axis in AXES.values() if axis.name == "items"]
    assert min(spans) == 64


def test_simulated_responses_have_the_size_and_density():
    data = simulated(models=40, items=500, dims=3, density=0.3)
    assert (data.n_models, data.n_items) == (40, 500)
    assert 0.27 < data.n_responses / 20_000 < 0.33
    assert simulated(models=40, items=500, dims=3, density=1.0).n_responses == 20_000


def test_slope_is_the_power_of_the_law():
    sizes = np.array([1.0, 3.0, 10.0, 50.0])
    slope, intercept = fitted_slope(sizes.tolist(), (2.5 * sizes**1.3).tolist())
    assert slope == pytest.approx(1.3)
    assert np.exp(intercept) == pytest.approx(2.5)

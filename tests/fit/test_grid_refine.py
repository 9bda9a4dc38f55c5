"""Item errors of the empirical item distribution where posteriors are narrower than its grid."""

import functools

import numpy as np
import pytest

from irtjax.data.simulate import simulate
from irtjax.fit.item_grid import ItemGrid, default_slopes
from irtjax.model.spec import ModelSpec
from tests.fit.fitting import quiet_fit, simulated

# Models, items, dims: posteriors of .25 and .2 of the nodes' distance.
WIDE = {"one dim": (300, 100, 1), "two dims": (200, 20, 2)}


@functools.cache
def made(case):
    n_models, n_items, dims = WIDE[case]
    return simulate(ModelSpec("2pl", dims), n_models=n_models, n_items=n_items, seed=1)


@functools.cache
def table(case, distribution):
    settings = {"estimator": "marginal-items", "item_distribution": distribution}
    found = quiet_fit(made(case).data, ModelSpec("2pl", WIDE[case][2]), **settings)
    return found, found.item_parameters()


@pytest.mark.parametrize("case", WIDE)
def test_errors_are_those_of_the_normal_distribution(case):
    """With so many models the data outweigh either distribution, but where nearly all are right."""
    items, normal = table(case, "empirical")[1], table(case, "normal")[1]
    for name in [name for name in items if name.endswith(("slope_se", "intercept_se"))]:
        ratio = items[name] / normal[name]
        assert ratio.quantile(0.05) > 0.9
        assert ratio.min() > 0.5
        assert ratio.max() < 1.25
    assert not items["flags"].str.contains("no_error").any()
    assert any("too coarse" in each for each in table(case, "empirical")[0].report["warnings"])


def test_intervals_cover_the_truth():
    truth, items = made("one dim").truth, table("one dim", "empirical")[1]
    mean, sd = truth.theta[:, 0].mean(), truth.theta[:, 0].std()
    slope = truth.slope[:, 0] * sd
    intercept = truth.intercept + truth.slope[:, 0] * mean
    for name, true in (("dim1_slope", slope), ("intercept", intercept)):
        covered = np.abs(items[name] - true) < 1.96 * items[f"{name}_se"]
        # .94 of 100; at the nodes it was .54 and .40.
        assert covered.mean() > 0.87
    # Estimates lie between nodes.
    assert items["dim1_slope"].round(2).nunique() > 50


def test_what_the_data_do_not_outweigh_keeps_the_shape_of_the_distribution():
    found = quiet_fit(simulated("2pl").data, item_distribution="empirical")
    mean = np.asarray(found.parameters.mean)[:, :, 0]
    # A normal posterior is the same at each level of the intercept.
    assert np.all(np.ptp(mean, axis=1) > 0)
    # Nor is one said to be known much better than within its cell of the grid.
    items = found.item_parameters()
    distance = ItemGrid(1, default_slopes(1)).distance
    assert items.intercept_se.min() > distance[1] / np.sqrt(12)
    assert not items["flags"].str.contains("no_error").any()

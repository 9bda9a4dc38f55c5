"""One device and four give the same estimates."""

import jax
import numpy as np
import pytest

from irtjax.data.simulate import simulate
from irtjax.model.spec import ModelSpec
from tests.fit import reference
from tests.fit.bridge import Placed
from tests.fit.fitting import KINDS, leaves, quiet_fit, simulated

KIND = "2pl-2d"
# What is left of compensated sums: the order within a block, one rounding a device. In float64 the
# whole course of the fit is the same; in float32 that holds where it is short (10 steps at 100
# models), and 170 steps with acceleration end within what convergence leaves open.
FLOAT32, FLOAT64 = 1e-5, 1e-9


def _fits(data, spec, **settings):
    devices = jax.devices()
    assert len(devices) >= 4
    fits = [quiet_fit(data, spec, **settings, devices=devices[:n]) for n in (1, 4)]
    assert [fit.report["n_devices"] for fit in fits] == [1, 4]
    return fits


def _compare(one, four, bound):
    assert four.status == one.status == "converged"
    expected, actual = leaves(one.parameters), leaves(four.parameters)
    for name, value in expected.items():
        # Relative to the numbers' own size where that is above 1.
        np.testing.assert_allclose(actual[name], value, rtol=bound, atol=bound, err_msg=name)


@pytest.mark.devices
def test_four_devices_give_the_estimates_of_one_in_float32():
    spec = ModelSpec("2pl", 2)
    data = simulate(spec, n_models=100, n_items=4_096, missing=0.1, seed=1).data
    one, four = _fits(data, spec)
    assert one.parameters.ability.dtype == np.float32
    assert four.report["n_steps"] == one.report["n_steps"]
    _compare(one, four, FLOAT32)


@pytest.mark.devices
def test_four_devices_with_effects_give_the_estimates_of_one_in_float64():
    spec, settings = KINDS[KIND]
    with jax.enable_x64(True):
        one, four = _fits(simulated(KIND).data, spec, **settings)
        assert one.parameters.ability.dtype == np.float64
        assert four.report["n_steps"] == one.report["n_steps"]
        _compare(one, four, FLOAT64)


@pytest.mark.devices
def test_a_pass_on_four_devices_with_more_shards_than_items_need():
    # 40 items in blocks of 16 make 3 blocks; the fourth device gets padding only.
    problem = reference.random_problem(
        np.random.default_rng(1), n_models=9, n_items=40, dims=2, n_groups=3
    )
    expected = reference.renew(problem)
    for n in (1, 4):
        placed = Placed(problem, 16, devices=jax.devices()[:n])
        assert placed.blocks.n_blocks == (3 if n == 1 else 4)
        assert len(placed.blocks.response.sharding.device_set) == n
        result, renewed = placed.renew()
        np.testing.assert_allclose(result.bound, expected.bound, rtol=1e-5)
        np.testing.assert_allclose(result.models.score, expected.score, atol=1e-3)
        np.testing.assert_allclose(placed.items_first(renewed)[0], expected.mean, atol=1e-4)

"""Forms of models in blocks: the likeliest by a loop of its own, and drifts that are there."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from irtjax.audit.integrity.check import audit_data
from irtjax.audit.integrity.filled import Run, run_log_p
from irtjax.audit.integrity.forms import LEAST_DRIFT, drift_of, fitted_form
from tests.audit.integrity.cases import clean, of_kind, with_rows


def test_a_form_is_the_likeliest_one():
    rng = np.random.default_rng(0)
    easiness = rng.normal(0, 1.5, 80)
    response = (rng.random(80) < expit(-1 + 0.7 * easiness)).astype(float)

    def cost(x):
        logit = x[0] + x[1] * easiness
        prior = (x[0] - 0.5) ** 2 / (2 * 1.2**2) + (x[1] - 1) ** 2 / (2 * 0.3**2)
        return np.sum(np.logaddexp(0, logit) - response * logit) + prior

    best = minimize(cost, [0, 1], tol=1e-10).x
    form = fitted_form(response, easiness, 0.5, 1.2)
    np.testing.assert_allclose([form.level, form.steepness], best, atol=1e-4)
    # Without cells it is what is expected.
    nothing = fitted_form(np.zeros(0), np.zeros(0), 0.5, 1.2)
    assert (nothing.level, nothing.variance) == (0.5, pytest.approx(1.44))


@pytest.mark.parametrize("drift", [0.0, 0.6, 1.2])
def test_a_drift_is_measured(drift):
    rng = np.random.default_rng(1)
    blocks = []
    for _ in range(12):
        easiness = rng.normal(0, 1, 1000)
        local = np.repeat(rng.normal(0, drift, 20), 50)
        response = (rng.random(1000) < expit(0.3 + local + easiness)).astype(float)
        blocks.append((response, easiness, fitted_form(response, easiness, 0.0, 1.0)))
    assert drift_of(blocks) == pytest.approx(max(drift, LEAST_DRIFT), rel=0.25)
    assert drift_of([]) == LEAST_DRIFT


def test_a_run_is_as_likely_as_its_model_makes_it():
    rng = np.random.default_rng(2)
    easiness = rng.normal(0, 1, 400)
    response = (rng.random(400) < expit(easiness)).astype(float)
    response[100:160] = 0
    run = Run(0.0, np.arange(100, 160), 400)

    def log_p(mean=0.0, drift=LEAST_DRIFT):
        return run_log_p(run, response, easiness, np.zeros(0), mean, 1.0, drift)

    assert log_p() < -20
    # What the model does elsewhere matters little beside the rest of the block; a drift does.
    assert abs(log_p(mean=-2.0) - log_p()) < 3
    assert log_p(drift=2.0) > -10
    # A model that is nearly always wrong here may well have such a run.
    response = (rng.random(400) < 0.02).astype(float)
    response[100:160] = 0
    assert log_p() > -6


@pytest.mark.parametrize("value", [0, 1])
@pytest.mark.parametrize("part", [0.3, 0.5])
def test_a_part_of_a_block_of_one_value_is_found(value, part):
    # Two abilities: what a model does elsewhere says little of a block. Of 10 such blocks of 400
    # items with 30% filled 2 were found before, now 10.
    for seed in range(3):
        data = clean(seed, dims=2)
        dense, size = data.dense.copy(), int(600 * part)
        start = 1300 + int(np.random.default_rng(seed).integers(0, 600 - size))
        dense[4, start : start + size] = value
        found = audit_data(with_rows(data, dense)).accusations
        assert of_kind(found, "filled") == [("m4", "b2")]
        row = found[found["kind"] == "filled"].iloc[0]
        assert abs(int(row["first_item"].removeprefix("item-")) - start) < 20
        assert set(found["model_id"]) == {"m4"}

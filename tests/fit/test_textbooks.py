"""The textbooks' data sets against what mirt and ltm publish: through `fit`, defaults only."""

import functools
import json

import numpy as np
import pytest

from irtjax.data.checks import MISSING
from irtjax.data.responses import ResponseMatrix
from irtjax.fit.api import fit
from irtjax.model.spec import ModelSpec
from tests.fit.fitting import quiet_fit

pytestmark = pytest.mark.shared

# Half of a 95% interval, in standard errors.
_HALF_WIDTH = 1.96


@pytest.fixture(scope="module")
def folder(shared_dir):
    """The data sets and the published estimates."""
    return shared_dir / "data"


@functools.cache
def responses(folder, name):
    with np.load(folder / "classical.npz") as arrays:
        return arrays[name]


@functools.cache
def published(folder):
    return json.loads((folder / "reference_estimates.json").read_text())


@functools.cache
def fitted(folder, name, family):
    """The fit that a user gets who chooses nothing but the family."""
    result = fit(ResponseMatrix.from_dense(responses(folder, name)), ModelSpec(family))
    assert result.report["estimator"] == "marginal-models"
    assert result.status == "converged"
    return result


def ltm(folder, name):
    """Log-likelihood, difficulties and slopes, as ltm's `summary` has them."""
    found = published(folder)["ltm_1.2"]["fits"][name]
    return found["logLik"], np.array(found["coef"])


def ltm_errors(folder, name):
    """ltm's standard errors: of the difficulties, then of the slopes (one for the 1PL)."""
    return np.array(published(folder)["ltm_1.2"]["fits"][name]["summary"])[:, 1]


def assert_within(actual, expected, bound):
    np.testing.assert_allclose(np.asarray(actual, np.float64), expected, rtol=0, atol=bound)


def assert_within_share(actual, expected, share):
    np.testing.assert_allclose(np.asarray(actual, np.float64), expected, rtol=share)


@pytest.mark.oracle
@pytest.mark.parametrize(
    "name, family, reference, bound",
    [
        ("LSAT7", "2pl", "LSAT7_2PL", 0.005),
        ("LSAT6", "2pl", "LSAT_2PL", 0.005),
        ("LSAT7", "1pl", "LSAT7_1PL", 0.005),
        ("LSAT6", "1pl", "LSAT_1PL", 0.005),
        ("SAT12_scored", "2pl", "SAT12_2PL", 0.2),
        ("verbal_aggression", "1pl", "VerbalAggression_1PL", 0.05),
        ("verbal_aggression", "2pl", "VerbalAggression_2PL", 0.05),
    ],
)
def test_log_likelihoods(folder, name, family, reference, bound):
    expected = ltm(folder, reference)[0]
    report = fitted(folder, name, family).report
    assert_within(report["log_likelihood"], expected, bound)


@pytest.mark.oracle
@pytest.mark.parametrize(
    "name, family, log_likelihood, bound",
    [
        ("LSAT7", "2pl", -2658.805, 0.005),
        ("LSAT6", "2pl", -2466.653, 0.005),
        ("SAT12_scored", "2pl", -9488.95, 0.2),
        ("verbal_aggression", "1pl", -4036.90, 0.05),
        ("verbal_aggression", "2pl", -4016.43, 0.05),
    ],
)
def test_printed_log_likelihoods(folder, name, family, log_likelihood, bound):
    assert_within(fitted(folder, name, family).report["log_likelihood"], log_likelihood, bound)


@pytest.mark.oracle
def test_lsat7_slopes_and_intercepts(folder):
    expected = published(folder)["mirt"]["LSAT7_2PL"]
    table = fitted(folder, "LSAT7", "2pl").item_parameters()
    assert_within(table["dim1_slope"], expected["a"], 0.005)
    assert_within(table["intercept"], expected["d"], 0.005)


@pytest.mark.oracle
def test_lsat6_difficulties(folder):
    table = fitted(folder, "LSAT6", "2pl").item_parameters()
    expected = published(folder)["ltm_published"]["LSAT_2PL"]
    assert_within(table["difficulty"], expected["b"], 0.01)
    assert_within(table["discrimination"], expected["a"], 0.005)


@pytest.mark.oracle
@pytest.mark.parametrize(
    "name, variance", [("LSAT6", 0.570), ("LSAT7", 1.023)], ids=["LSAT6", "LSAT7"]
)
def test_rasch(folder, name, variance):
    result = fitted(folder, name, "rasch")
    expected = published(folder)["mirt"][f"{name}_Rasch"]
    table = result.item_parameters()
    assert_within(table["intercept"], expected["d"], 0.003)
    assert_within(result.report["latent_variance"], variance, 0.01)
    assert np.all(table["dim1_slope"] == 1)
    assert np.all(table["dim1_slope_se"] == 0)


def test_rasch_errors(folder):
    expected = published(folder)["mirt"]
    result = fitted(folder, "LSAT6", "rasch")
    low, high = np.array(expected["LSAT6_Rasch"]["d_ci"]).T
    # The printed limits have three digits, of a width of .28: within 1%.
    error = (high - low) / 2 / _HALF_WIDTH
    assert_within_share(result.item_parameters()["intercept_se"], error, 0.05)
    low, high = expected["LSAT6_Rasch"]["var_ci"]
    assert_within_share(result.report["latent_variance_se"], (high - low) / 2 / _HALF_WIDTH, 0.05)
    first = fitted(folder, "LSAT7", "rasch").item_parameters()["intercept_se"][0]
    assert_within_share(first, expected["LSAT7_Rasch"]["d1_se"], 0.05)


@pytest.mark.oracle
@pytest.mark.parametrize(
    "name, family, reference",
    [
        ("SAT12_scored", "2pl", "SAT12_2PL"),
        ("verbal_aggression", "1pl", "VerbalAggression_1PL"),
        ("verbal_aggression", "2pl", "VerbalAggression_2PL"),
    ],
)
def test_items_of_larger_sets(folder, name, family, reference):
    """Maximum likelihood of ltm: the weak default priors pull item 11 of SAT12 by .03."""
    difficulty, slope = ltm(folder, reference)[1].T
    table = fitted(folder, name, family).item_parameters()
    assert_within(table["dim1_slope"], slope, 0.04)
    assert_within(table["intercept"], -difficulty * slope, 0.04)


@pytest.mark.oracle
def test_two_cells_missing(folder):
    expected = published(folder)["mirt"]["LSAT7_2PL_two_cells_missing"]
    answers = responses(folder, "LSAT7").copy()
    answers[[0, 1], [0, 1]] = MISSING
    table = fit(ResponseMatrix.from_dense(answers), ModelSpec("2pl")).item_parameters()
    assert_within(table["dim1_slope"], expected["a"], 0.006)
    assert_within(table["intercept"], expected["d"], 0.006)


@pytest.mark.oracle
@pytest.mark.parametrize(
    "name, family, reference",
    [
        ("LSAT7", "2pl", "LSAT7_2PL"),
        ("LSAT6", "2pl", "LSAT_2PL"),
        ("LSAT7", "1pl", "LSAT7_1PL"),
        ("LSAT6", "1pl", "LSAT_1PL"),
    ],
)
def test_standard_errors_of_ltm(folder, name, family, reference):
    result = fitted(folder, name, family)
    expected = ltm_errors(folder, reference)
    table = result.item_parameters()
    assert result.report["item_errors"] == "observed"
    assert_within_share(table["difficulty_se"], expected[:5], 0.05)
    slopes = expected[5:] if family == "2pl" else np.repeat(expected[5], 5)
    assert_within_share(table["dim1_slope_se"], slopes, 0.05)


@pytest.mark.oracle
@pytest.mark.parametrize("key, column", [("a", "dim1_slope_se"), ("d", "intercept_se")])
def test_richardson_standard_errors(folder, key, column):
    low, high = np.array(published(folder)["mirt"]["LSAT7_2PL"][f"{key}_ci_Richardson"]).T
    table = fitted(folder, "LSAT7", "2pl").item_parameters()
    assert_within_share(table[column], (high - low) / 2 / _HALF_WIDTH, 0.05)


@pytest.mark.oracle
def test_abilities_of_lsat7(folder):
    """EAP values of mirt for its first six patterns, in the order of the table."""
    expected = published(folder)["mirt"]["LSAT7_2PL"]["EAP_first6_patterns"]
    ability = fitted(folder, "LSAT7", "2pl").abilities()["dim1_ability"].to_numpy()
    patterns, first = np.unique(responses(folder, "LSAT7"), axis=0, return_index=True)
    assert patterns[:6].tolist() == [
        [0, 0, 0, 0, 0],
        [0, 0, 0, 0, 1],
        [0, 0, 0, 1, 0],
        [0, 0, 0, 1, 1],
        [0, 0, 1, 0, 0],
        [0, 0, 1, 0, 1],
    ]
    assert_within(ability[first[:6]], expected, 0.005)


@pytest.mark.oracle
def test_information_criteria_of_lsat6(folder):
    expected = published(folder)["ltm_published"]["LSAT_2PL"]
    report = fitted(folder, "LSAT6", "2pl").report
    assert report["n_parameters"] == 10
    assert_within(report["aic"], expected["AIC"], 0.01)
    assert_within(report["bic"], expected["BIC"], 0.01)


@pytest.mark.parametrize("family", ["2pl", "3pl"])
def test_timss_2011_is_fitted(folder, family):
    """4,668 test takers, 174 items in booklets: 85.7% of the cells are missing."""
    data = ResponseMatrix.from_dense(responses(folder, "timss2011_g4_aut"))
    result = quiet_fit(data, ModelSpec(family))
    # In the 3PL two items that depend on each other have slopes of 9.7, and where the likelihood is
    # that flat float32 tells no steps of .001 apart: it may end as stalled.
    assert result.status == "converged" or (family, result.status) == ("3pl", "stalled")
    assert max(result.report["trace"]["change"][-5:]) < 0.01
    table = result.item_parameters()
    numbers = table.select_dtypes("number")
    assert np.all(np.isfinite(numbers))
    assert np.all(table["intercept_se"] > 0)

"""`marginal-models` through `fit`: recovery, populations, distributions of ability, bad cases."""

import functools

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from benchmarks.problems import reference_problem_w3
from benchmarks.quality import recovery
from irtjax.data.responses import ResponseMatrix
from irtjax.data.tables import lsat6, lsat7
from irtjax.errors import InputError
from irtjax.fit.api import fit
from irtjax.model.priors import Priors
from irtjax.model.spec import ModelSpec
from tests.fit.fitting import quiet_fit
from tests.tolerances import close

# Best peers: .0164 (girth) and .0188 (the PyPI package mirt).
CURVE_RMSE = {"3pl": 0.0158, "4pl": 0.0185}
N_MODELS, N_ITEMS = 2000, 50


@functools.cache
def fitted_w3(family):
    problem = reference_problem_w3(family)
    return problem, fit(problem.train, ModelSpec(family))


def of_table(result):
    """Slope, difficulty and asymptotes by item."""
    table = result.item_parameters()
    names = ("difficulty", "guessing", "feasibility")
    return {"slope": table["dim1_slope"].to_numpy()} | {n: table[n].to_numpy() for n in names}


def simulated(ability, seed):
    """2PL answers to 50 items; slopes and intercepts."""
    rng = np.random.default_rng(seed)
    slope, intercept = rng.lognormal(0.1, 0.3, N_ITEMS), rng.normal(0, 1.2, N_ITEMS)
    p = expit(ability[:, None] * slope + intercept)
    return (rng.random(p.shape) < p).astype(np.int8), slope, intercept


@pytest.mark.oracle
@pytest.mark.parametrize("family", ["3pl", "4pl"])
def test_w3_is_recovered(family):
    problem, result = fitted_w3(family)
    assert result.report["estimator"] == "marginal-models"
    assert result.status == "converged"
    assert recovery(problem.truth, of_table(result))["icc_rmse"] <= CURVE_RMSE[family]


@pytest.mark.parametrize("family", ["3pl", "4pl"])
def test_every_item_of_w3_has_errors(family):
    table = fitted_w3(family)[1].item_parameters()
    columns = ["difficulty_se", "discrimination_se", "intercept_se", "dim1_slope_se", "guessing_se"]
    for name in columns + ["feasibility_se"] * (family == "4pl"):
        assert np.all(np.isfinite(table[name])), name
        assert np.all(table[name] > 0), name


def test_errors_of_w3_cover_the_truth():
    problem, result = fitted_w3("3pl")
    table, truth = result.item_parameters(), problem.truth
    z = (table["intercept"] - truth.intercept) / table["intercept_se"]
    inside = np.abs(z) < 1.96
    # 50 items: .95 with a standard error of .03.
    assert inside.mean() >= 0.86


def test_models_that_answered_differently_have_different_abilities():
    problem, result = fitted_w3("3pl")
    rows, index = np.unique(problem.train.to_dense(), axis=0, return_inverse=True)
    ability = np.asarray(result.parameters.ability[:, 0])
    assert len(np.unique(ability)) == len(rows)
    assert np.corrcoef(ability, problem.truth.theta[:, 0])[0, 1] > 0.9
    assert len(np.unique(index)) == len(rows)
    small = fit(lsat7())
    patterns = np.unique(lsat7().to_dense(), axis=0)
    assert len(np.unique(small.parameters.ability[:, 0])) == len(patterns) == 32


@functools.cache
def two_populations():
    rng = np.random.default_rng(17)
    code = np.repeat([0, 1], N_MODELS // 2)
    ability = rng.normal(size=N_MODELS) * np.array([1, 1.4])[code] + np.array([0, 0.7])[code]
    responses, slope, intercept = simulated(ability, 18)
    order = rng.permutation(N_MODELS)
    first = np.flatnonzero(code[order] == 0)[0]
    order[[0, first]] = order[[first, 0]]  # names are numbered as they appear
    table = pd.DataFrame({"size": np.array(["small", "large"])[code[order]]})
    data = ResponseMatrix.from_dense(responses[order], model_metadata=table)
    return data, ability[order], slope, intercept, fit(data, model_group="size")


def test_means_and_sds_of_populations_are_recovered():
    _, ability, slope, intercept, result = two_populations()
    assert result.report["populations"] == ["small", "large"]
    assert result.status == "converged"
    np.testing.assert_array_equal(result.parameters.population_mean[0], [0])
    np.testing.assert_array_equal(result.parameters.population_covariance[0], [[1]])
    # Standard errors: 1.4 / sqrt(1000) and 1.4 / sqrt(2000), and those of the first's 1,000.
    assert result.parameters.population_mean[1, 0] == pytest.approx(0.7, abs=0.15)
    sd = np.sqrt(result.parameters.population_covariance[1, 0, 0])
    assert sd == pytest.approx(1.4, abs=0.12)
    table = result.item_parameters()
    z = (table["intercept"] - intercept) / table["intercept_se"]
    assert np.mean(np.abs(z) < 1.96) > 0.8
    np.testing.assert_allclose(table["dim1_slope"], slope, atol=0.35)
    assert np.corrcoef(result.parameters.ability[:, 0], ability)[0, 1] > 0.95


def test_populations_fit_better_than_one_normal():
    data, *_, result = two_populations()
    alone = fit(data)
    assert result.report["log_likelihood"] > alone.report["log_likelihood"] + 20
    assert result.report["n_parameters"] == alone.report["n_parameters"] + 2
    assert result.report["bic"] < alone.report["bic"]


def test_populations_need_the_column():
    with pytest.raises(InputError, match="family"):
        fit(two_populations()[0], model_group="family")


def test_empirical_abilities_beat_a_normal_where_they_are_skewed():
    rng = np.random.default_rng(19)
    ability = (rng.chisquare(1.5, N_MODELS) - 1.5) / np.sqrt(3)
    responses, slope, intercept = simulated(ability, 20)
    data = ResponseMatrix.from_dense(responses)
    # Weights of nodes where no model is hardly matter, and creep for ever.
    normal, empirical = fit(data), quiet_fit(data, ability_distribution="empirical")
    assert empirical.status in ("converged", "stalled")
    assert empirical.report["log_likelihood"] > normal.report["log_likelihood"] + 50

    def curve_rmse(result):
        # At the abilities that there are, on the scale of mean 0 and sd 1.
        z = (ability - ability.mean()) / ability.std()
        table = result.item_parameters()
        found = expit(np.outer(z, table["dim1_slope"]) + table["intercept"].to_numpy())
        true = expit(np.outer(ability, slope) + intercept)
        return np.sqrt(np.mean((found - true) ** 2))

    assert curve_rmse(empirical) < 0.75 * curve_rmse(normal)

    def error(result):
        return np.sqrt(np.mean((result.parameters.ability[:, 0] - ability) ** 2))

    assert error(empirical) < error(normal)


@functools.cache
def five_starts():
    """1,700 x 20, 3PL: where a peer's runs disagreed in difficulty (r -.58 to .99)."""
    rng = np.random.default_rng(21)
    ability = rng.normal(size=1700)
    slope, difficulty = rng.lognormal(0.1, 0.3, 20), rng.normal(0, 1, 20)
    guessing = rng.beta(5, 20, 20)
    p = guessing + (1 - guessing) * expit(slope * (ability[:, None] - difficulty))
    responses = (rng.random(p.shape) < p).astype(np.int8)
    data = ResponseMatrix.from_dense(responses)
    return difficulty, quiet_fit(data, ModelSpec("3pl"), starts=5)


def test_starts_agree_and_the_report_says_so():
    difficulty, result = five_starts()
    starts = result.report["starts"]
    assert starts["n"] == len(starts["objectives"]) == 5
    assert starts["n_at_the_best"] == 5
    assert max(starts["largest_spread"].values()) < 0.05
    assert set(starts["largest_spread"]) == {"slope", "intercept", "guessing", "feasibility"}
    assert not any("start" in warning for warning in result.report["warnings"])
    assert result.report["trace"]["objective"][-1] == max(starts["objectives"])
    table = result.item_parameters()
    assert np.corrcoef(table["difficulty"], difficulty)[0, 1] > 0.97
    assert table["guessing"].between(0.02, 0.6).all()


def test_one_start_reports_none():
    assert "starts" not in fit(lsat7()).report


@pytest.mark.parametrize("read", [lsat6, lsat7])
def test_rasch_is_the_1pl_on_another_scale(read):
    rasch, common = (fit(read(), ModelSpec(family)) for family in ("rasch", "1pl"))
    models, items = (index.ravel() for index in np.indices((1000, 5)))
    close(
        rasch.predict_cells(models, items),
        common.predict_cells(models, items),
        kind="elementwise",
        scale=10,
        dtype=np.float32,
    )
    slope = common.parameters.mean[0, 0, 0]
    close(rasch.parameters.ability, common.parameters.ability * slope, dtype=np.float32)
    assert rasch.report["latent_variance"] == pytest.approx(float(slope) ** 2, rel=1e-6)
    assert rasch.report["log_likelihood"] == common.report["log_likelihood"]


@pytest.mark.parametrize("family", ["2pl", "3pl"])
def test_an_item_that_all_get_right_stays_finite_without_priors(family):
    rows = np.column_stack([lsat7().to_dense(), np.ones(1000, np.int8)])
    result = quiet_fit(ResponseMatrix.from_dense(rows), ModelSpec(family), priors=Priors.off())
    assert result.status != "diverged"
    table = result.item_parameters()
    assert np.all(np.isfinite(table[["dim1_slope", "intercept", "guessing"]]))
    assert np.all(np.isfinite(result.parameters.ability))
    assert "all_right" in table["flags"].iloc[5]
    models = np.arange(1000)
    p = result.predict_cells(models, np.full(1000, 5))
    assert np.all((p > 0.99) & (p <= 1))
    if family == "2pl":
        # The other items are fitted as if it were not there.
        expected = fit(lsat7(), priors=Priors.off()).item_parameters()
        np.testing.assert_allclose(table["intercept"][:5], expected["intercept"], atol=0.01)


def test_the_default_priors_keep_an_item_that_all_get_right_near():
    rows = np.column_stack([lsat7().to_dense(), np.ones(1000, np.int8)])
    table = quiet_fit(ResponseMatrix.from_dense(rows)).item_parameters()
    assert 5 < table["intercept"][5] < 30
    assert np.isfinite(table["intercept_se"][5])
    assert table["intercept_se"][5] > 1


@pytest.mark.oracle
def test_counts_are_as_many_answers():
    """k right of n answers to an item: its slope, intercept and errors are those of n items' mean.

    The n copies of an item are exchangeable, so that the marginal likelihood of both is the same
    function of one slope and one intercept; only the copies may differ by chance.
    """
    rng = np.random.default_rng(23)
    ability = rng.normal(size=400)
    slope, intercept = rng.lognormal(0, 0.3, 5), rng.normal(0, 1, 5)
    n_answers = 4
    p = expit(ability[:, None] * slope + intercept)
    single = (rng.random((n_answers, *p.shape)) < p).astype(np.int8)
    weight = np.full(p.shape, float(n_answers))
    counted = ResponseMatrix.from_dense(single.mean(axis=0), weight=weight)
    one = fit(counted, estimator="marginal-models")
    other = fit(
        ResponseMatrix.from_dense(np.concatenate(list(single), axis=1)),
        estimator="marginal-models",
    )
    assert one.status == other.status == "converged"
    for name in ("dim1_slope", "intercept"):
        copies = other.item_parameters()[name].to_numpy().reshape(n_answers, 5)
        error = one.item_parameters()[f"{name}_se"].to_numpy()
        away = (one.item_parameters()[name] - copies.mean(axis=0)) / error
        assert np.abs(away).max() < 1
        # Copies have less information each: twice the error at most, where abilities are known.
        error_of_copies = other.item_parameters()[f"{name}_se"].to_numpy().reshape(n_answers, 5)
        ratio = error_of_copies.mean(axis=0) / error
        assert np.all((ratio > 1.2) & (ratio < 2.1))
    both = np.array([r.parameters.ability[:, 0] for r in (one, other)])
    assert np.corrcoef(both)[0, 1] > 0.98

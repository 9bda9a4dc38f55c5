"""`score_models`: against dense grids in float64, its invariances, and what bad input gets."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given as given_examples
from hypothesis import settings
from hypothesis import strategies as st

from irtjax.data.responses import ResponseMatrix
from irtjax.data.simulate import simulate
from irtjax.errors import InputError, IrtjaxWarning
from irtjax.model.spec import ModelSpec
from irtjax.score.full_score import predict_score
from irtjax.score.models import score_models
from tests.fit.fitting import fitted, quiet_fit, simulated
from tests.score.fits import N_ITEMS, answers, fit_of, given

# Quadrature around a skewed posterior of twelve answers, against a dense grid.
QUADRATURE = {1: 2e-5, 2: 8e-4}
# Newton stops at steps of 1e-5 in float32; the grids' maximisers at 1e-8.
MODE = 2e-4


def _patterns(seed=3, n=6):
    rng = np.random.default_rng(seed)
    made = rng.integers(0, 2, (n, N_ITEMS)).astype(float)
    made[rng.random(made.shape) < 0.2] = np.nan
    return np.concatenate([made, np.ones((1, N_ITEMS)), np.zeros((1, N_ITEMS))])


def _columns(scores, name):
    return scores.filter(regex=rf"^dim\d+_{name}$").to_numpy()


@pytest.mark.oracle
@pytest.mark.parametrize(
    "dims, family, sd",
    [(1, "2pl", 0.0), (1, "2pl", 0.4), (1, "4pl", 0.3), (2, "2pl", 0.4), (2, "4pl", 0.3)],
)
def test_eap_and_its_sd_are_those_of_a_dense_grid(dims, family, sd):
    known = given(dims, family, sd)
    patterns = _patterns()
    scores = score_models(known.fit, answers(patterns))
    for row, pattern in enumerate(patterns):
        mean, spread = known.oracle.eap(pattern)
        np.testing.assert_allclose(
            _columns(scores, "ability")[row], mean, rtol=0, atol=QUADRATURE[dims]
        )
        np.testing.assert_allclose(
            _columns(scores, "ability_se")[row], spread, rtol=0, atol=2 * QUADRATURE[dims]
        )


@pytest.mark.oracle
@pytest.mark.parametrize(
    "dims, family, sd", [(1, "2pl", 0.0), (1, "2pl", 0.4), (1, "3pl", 0.0), (2, "2pl", 0.4)]
)
def test_map_is_where_a_search_ends(dims, family, sd):
    known = given(dims, family, sd)
    patterns = _patterns()
    scores = score_models(known.fit, answers(patterns), method="map")
    for row, pattern in enumerate(patterns):
        np.testing.assert_allclose(
            _columns(scores, "ability")[row], known.oracle.map(pattern), rtol=0, atol=MODE
        )


@pytest.mark.oracle
@pytest.mark.parametrize("dims", [1, 2])
def test_wle_of_known_2pl_items_is_the_mode_under_jeffreys_prior(dims):
    known = given(dims)
    patterns = _patterns()
    scores = score_models(known.fit, answers(patterns), method="wle")
    for row, pattern in enumerate(patterns):
        # The weak prior of sd 300 that keeps it finite moves it a little.
        np.testing.assert_allclose(
            _columns(scores, "ability")[row], known.oracle.wle(pattern), rtol=0, atol=5e-3
        )


@pytest.mark.oracle
@pytest.mark.parametrize("family, sd", [("2pl", 0.0), ("3pl", 0.0), ("2pl", 0.3)])
def test_wle_solves_warms_equation(family, sd):
    known = given(1, family, sd)
    patterns = _patterns()[:6]
    scores = score_models(known.fit, answers(patterns), method="wle")
    for row, pattern in enumerate(patterns):
        np.testing.assert_allclose(
            _columns(scores, "ability")[row], known.oracle.warm_root(pattern), rtol=0, atol=2e-3
        )


@settings(max_examples=20)
@given_examples(
    pattern=st.lists(st.sampled_from([0.0, 1.0]), min_size=N_ITEMS, max_size=N_ITEMS),
    turned=st.integers(0, N_ITEMS - 1),
    method=st.sampled_from(["eap", "map"]),
)
def test_cases_6_turning_a_wrong_answer_right_never_lowers_an_ability(pattern, turned, method):
    wrong, right = list(pattern), list(pattern)
    wrong[turned], right[turned] = 0.0, 1.0
    scores = score_models(given().fit, answers([wrong, right]), method=method, uncertainty="none")
    low, high = _columns(scores, "ability")[:, 0]
    assert high >= low


def test_cases_6_more_wrong_answers_never_raise_an_ability_and_stay_finite():
    # A bank of hard items, all answered wrong one after the other.
    fit = given().fit
    patterns = np.full((N_ITEMS + 1, N_ITEMS), np.nan)
    for n in range(N_ITEMS + 1):
        patterns[n, :n] = 0
    for method in ("eap", "map"):
        ability = _columns(score_models(fit, answers(patterns), method=method), "ability")[:, 0]
        assert np.all(np.diff(ability) <= 0)
        assert np.all(np.abs(ability) < 6)


@pytest.mark.parametrize("method", ["eap", "map", "wle"])
def test_cases_5_all_right_and_all_wrong_are_finite_wide_and_flagged(method):
    patterns = [np.ones(N_ITEMS), np.zeros(N_ITEMS), np.tile([1.0, 0.0], N_ITEMS // 2)]
    scores = score_models(given().fit, answers(patterns), method=method)
    ability, error = _columns(scores, "ability")[:, 0], _columns(scores, "ability_se")[:, 0]
    assert np.isfinite([ability, error]).all()
    assert ability[1] < ability[2] < ability[0]
    assert (error[:2] > error[2]).all()
    assert scores["flags"].tolist() == ["all_right", "all_wrong", ""]


def test_cases_8_a_model_without_answers_has_its_row_the_prior_and_the_reason():
    patterns = np.full((2, N_ITEMS), np.nan)
    patterns[1] = 1
    for method, expected in (("eap", 0.0), ("map", 0.0), ("wle", np.nan)):
        scores = score_models(given().fit, answers(patterns), method=method)
        assert scores["model_id"].tolist() == ["new-0", "new-1"]
        np.testing.assert_allclose(scores["dim1_ability"][0], expected, atol=1e-5)
        np.testing.assert_allclose(scores["dim1_ability_se"][0], expected + 1, rtol=0, atol=2e-3)
        assert scores["n_responses"][0] == 0
        assert np.isnan(scores["p_correct"][0])
        assert scores["flags"][0] == "no_responses"
        assert scores["reason"][0].startswith("no answers: ")
        assert scores["reason"][1] == ""


@pytest.mark.parametrize("kind", ["1pl", "2pl", "2pl-2d", "3pl", "4pl-2d", "mixture"])
def test_cases_3_every_family_scores_and_missing_is_deleted(kind):
    fit = fitted(kind)
    data = simulated(kind, seed=1).data
    half = data.to_dense()[:4].copy()
    half[:, 60:] = -1
    masked = ResponseMatrix.from_dense(half, item_ids=data.item_ids)
    cut = ResponseMatrix.from_dense(half[:, :60], item_ids=data.item_ids[:60])
    for method in ("eap", "map"):
        one, other = (score_models(fit, part, method=method) for part in (masked, cut))
        assert np.isfinite(_columns(one, "ability")).all()
        assert (_columns(one, "ability_se") > 0).all()
        pd.testing.assert_frame_equal(one, other)


def test_the_order_of_models_and_items_does_not_matter_and_neither_does_the_layout():
    fit = given(1, "2pl", 0.4).fit
    patterns = _patterns(n=40)
    scores = score_models(fit, answers(patterns))
    order, columns = np.random.default_rng(0).permutation(len(patterns)), np.arange(N_ITEMS)[::-1]
    shuffled = ResponseMatrix.from_dense(
        patterns[order][:, columns], item_ids=[f"item-{j}" for j in columns]
    )
    again = score_models(fit, shuffled)
    np.testing.assert_allclose(
        _columns(again, "ability"), _columns(scores, "ability")[order], atol=1e-5
    )
    # Few answers each, of different items: every model gets items of its own.
    sparse = np.full_like(patterns, np.nan)
    sparse[np.arange(len(patterns)), np.arange(len(patterns)) % N_ITEMS] = 1
    together = score_models(fit, answers(sparse))
    alone = score_models(fit, answers(sparse[3:4]))
    np.testing.assert_allclose(
        _columns(together, "ability")[3], _columns(alone, "ability")[0], atol=1e-5
    )


def test_uncertain_items_widen_errors_and_pull_less():
    fit = given(1, "2pl", 0.4).fit
    patterns = [np.ones(N_ITEMS), np.tile([1.0, 1.0, 0.0], N_ITEMS // 3)]
    wide = score_models(fit, answers(patterns))
    known = score_models(fit, answers(patterns), uncertainty="none")
    assert (wide["dim1_ability_se"] > known["dim1_ability_se"]).all()
    assert wide["dim1_ability"][0] < known["dim1_ability"][0]


def test_a_fitted_models_own_answers_give_the_fits_own_estimate():
    fit = fitted("2pl")
    scores = score_models(fit, fit.data)
    np.testing.assert_array_equal(_columns(scores, "ability"), fit.parameters.ability)
    assert (scores["flags"] == "in_fit").all()
    assert scores["reason"].str.startswith("the fit's own").all()
    assert not scores["reason"].str.contains('[,"]').any()  # text is quoted in no file, or in all


def _as_rows(fit, rows, change=()):
    """Answers of the fit's first models, and some of them changed."""
    matrix = np.where(rows, fit.data.to_dense()[: len(rows)], -1).astype(float)
    for row, item in change:
        matrix[row, item] = 1 - matrix[row, item]
    return ResponseMatrix.from_dense(
        np.where(matrix < 0, np.nan, matrix),
        model_ids=fit.data.model_ids[: len(rows)],
        item_ids=fit.data.item_ids,
    )


def test_answers_that_the_fit_knows_in_part_or_otherwise_are_flagged_and_counted():
    fit = fitted("2pl")
    answered = fit.data.to_dense()[:4] >= 0
    rows = answered.copy()
    rows[1, ::2] = False  # a part
    rows[3] = False
    changed = [(2, k) for k in np.flatnonzero(answered[2])[:3]]
    data = _as_rows(fit, rows, changed)
    with pytest.warns(IrtjaxWarning) as caught:
        scores = score_models(fit, data)
    second, third = (str(each) for each in fit.data.model_ids[1:3])
    assert scores["flags"].tolist() == [
        "in_fit",
        "counted_twice",
        "counted_twice;differs_from_fit",
        "no_responses",
    ]
    first, other = (str(each.message) for each in caught)
    assert f"2 models scored by answers that the run was fitted to: '{second}', '{third}'" in first
    assert f"1 model with 3 answers other than the run has under the same ids: '{third}'" in other
    with pytest.warns(IrtjaxWarning) as caught:
        modes = score_models(fit, data, method="map")  # which has no estimate of the fit's to take
    assert modes["flags"][0] == "counted_twice"
    assert str(caught[0].message).startswith("3 models scored by answers")
    with pytest.warns(IrtjaxWarning) as caught:
        predict_score(fit, data)
    assert [str(each.message) for each in caught] == [first, other]


def test_another_model_of_the_same_id_agrees_by_chance():
    fit = fitted("2pl")
    answered = fit.data.to_dense()[:1] >= 0
    data = _as_rows(fit, answered, [(0, k) for k in np.flatnonzero(answered[0])[::2]])
    with pytest.warns(IrtjaxWarning, match="under the same ids"):
        scores = score_models(fit, data)
    assert scores["flags"].tolist() == ["differs_from_fit"]


def test_answers_that_a_fitted_model_had_not_given_are_those_of_any_model():
    fit = fitted("2pl")
    missing = np.flatnonzero(fit.data.to_dense()[0] < 0)
    more = ResponseMatrix.from_dense(
        np.ones((1, len(missing))),
        model_ids=fit.data.model_ids[:1],
        item_ids=fit.data.item_ids[missing],
    )
    assert score_models(fit, more)["flags"].tolist() == ["all_right"]


def test_the_same_answers_under_another_name_agree_with_a_fit_of_many_models():
    made = simulate(ModelSpec(), n_models=300, n_items=120, seed=5).data
    for estimator in ("marginal-items", "marginal-models"):
        fit = quiet_fit(made, ModelSpec(), estimator=estimator)
        renamed = made.replace(model_ids=np.array([f"new-{i}" for i in range(300)], object))
        scores = score_models(fit, renamed)
        own = fit.abilities()
        # They differ by what counting a model's answers twice says of 120 items of 300 models.
        assert np.abs(scores["dim1_ability"] - own["dim1_ability"]).max() < 0.25
        assert np.abs(scores["dim1_ability"] - own["dim1_ability"]).mean() < 0.05
        ratio = scores["dim1_ability_se"] / own["dim1_ability_se"]
        assert ratio.between(0.8, 1.25).all()


def test_one_warning_names_items_that_the_run_does_not_know_and_none_known_is_refused():
    fit = given().fit
    data = ResponseMatrix.from_dense([[1, 0, 1]], item_ids=["item-0", "x", "y"])
    with pytest.warns(IrtjaxWarning, match=r"2 items of 3 not in the run.*'x', 'y'") as caught:
        scores = score_models(fit, data)
    assert len(caught) == 1
    assert scores["n_responses"].tolist() == [1]
    with pytest.raises(InputError, match="none of 1 item of the responses is in the run"):
        score_models(fit, ResponseMatrix.from_dense([[1]], item_ids=["x"]))


def test_wrong_arguments_are_refused_in_one_line():
    fit, data = given().fit, answers(_patterns())
    for arguments, message in (
        ({"method": "mle"}, "use one of eap, map, wle"),
        ({"method": 3}, "method must be text"),
        ({"uncertainty": "all"}, "use one of items, none"),
    ):
        with pytest.raises(InputError, match=message):
            score_models(fit, data, **arguments)
    with pytest.raises(InputError, match="takes a FitResult"):
        score_models("run", data)
    with pytest.raises(InputError, match="takes a ResponseMatrix"):
        score_models(fit, [[1, 0]])


def test_extreme_items_give_finite_scores():
    mean = np.array([[8.0, 60.0], [8.0, -60.0], [1e-9, 0.0], [-2.0, 0.0]])
    fit = fit_of(
        mean, np.zeros((4, 2, 2)), np.zeros(4), np.ones(4), ModelSpec(), np.dtype(np.float32)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for method in ("eap", "map", "wle"):
            patterns = [[0, 1, 1, 0], [1, 0, 0, 1], [np.nan, np.nan, 1, np.nan]]
            scores = score_models(fit, answers(patterns), method=method)
            assert np.isfinite(_columns(scores, "ability")).all(), method
            assert np.isfinite(_columns(scores, "ability_se")).all(), method


def test_weighted_estimates_beyond_all_models_are_flagged():
    """Slopes of which little is known: curves level off, and nothing holds the estimate."""
    rng = np.random.default_rng(0)
    n = 60
    mean = np.stack([rng.uniform(0.2, 0.8, n), rng.normal(0, 1, n)], axis=1)
    covariance = np.tile(0.1 * np.eye(2), (n, 1, 1))
    dtype = np.dtype(np.float32)
    fit = fit_of(mean, covariance, np.zeros(n), np.ones(n), ModelSpec(), dtype)
    one_right, half_right = np.arange(n) == 0, np.arange(n) % 2
    data = answers([one_right, half_right])
    with pytest.warns(IrtjaxWarning, match="1 model more than 6 standard deviations .* eap or map"):
        found = score_models(fit, data, method="wle")
    assert found["dim1_ability"][0] < -6
    assert found["flags"].str.contains("far_out").tolist() == [True, False]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not score_models(fit, data)["flags"].str.contains("far_out").any()


@pytest.mark.compilations
def test_cases_16_any_number_of_models_of_like_width_compiles_nothing_new():
    from irtjax.score.mode import find_mode
    from irtjax.score.posterior import node_posterior

    fit = given(1, "2pl", 0.4).fit
    score_models(fit, answers(_patterns(n=40)))
    before = find_mode._cache_size(), node_posterior._cache_size()
    for n in (33, 50, 60):
        score_models(fit, answers(_patterns(seed=n, n=n - 2)))
    assert (find_mode._cache_size(), node_posterior._cache_size()) == before

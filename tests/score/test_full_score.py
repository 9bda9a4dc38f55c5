"""`predict_score`: against dense grids, its calibration on simulated models, and bad input."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from irtjax.data.responses import ResponseMatrix
from irtjax.errors import InputError
from irtjax.score import predictive
from irtjax.score.anchors import anchor_points
from irtjax.score.full_score import predict_score
from tests.fit.fitting import fitted, quiet_fit, simulated
from tests.score.fits import N_ITEMS, answers, given, new_models

QUADRATURE = {1: 2e-4, 2: 2e-3}


def _patterns():
    rng = np.random.default_rng(1)
    made = rng.integers(0, 2, (4, N_ITEMS)).astype(float)
    made[:, 5:] = np.nan
    made[3] = np.nan
    return made


@pytest.mark.oracle
@pytest.mark.parametrize("dims, family", [(1, "2pl"), (1, "4pl"), (2, "2pl")])
def test_mean_and_sd_of_the_score_are_those_of_a_dense_grid(dims, family):
    known = given(dims, family, 0.4)
    patterns = _patterns()
    found = predict_score(known.fit, answers(patterns))
    oracle = known.oracle
    curves = oracle.curves(oracle.grid)
    for row, pattern in enumerate(patterns):
        log = oracle.log_likelihood(oracle.grid, pattern) - 0.5 * np.sum(oracle.grid**2, axis=1)
        weight = np.exp(log - log.max())
        weight /= weight.sum()
        rest = curves[:, np.isnan(pattern)]
        total = rest.sum(axis=1)
        mean = weight @ total
        variance = weight @ ((rest * (1 - rest)).sum(axis=1) + (total - mean) ** 2)
        expected = (np.nansum(pattern) + mean) / N_ITEMS, np.sqrt(variance) / N_ITEMS
        actual = found.loc[row, "score"], found.loc[row, "score_se"]
        np.testing.assert_allclose(actual, expected, rtol=0, atol=QUADRATURE[dims])


def test_all_items_answered_is_the_share_right_and_nothing_is_left_open():
    pattern = np.tile([1.0, 0.0, 1.0], N_ITEMS // 3)
    found = predict_score(given().fit, answers([pattern])).iloc[0]
    for name in ("score", "score_lower", "score_upper", "p_irt", "observed"):
        assert found[name] == pytest.approx(2 / 3, abs=1e-5), name
    assert found["score_se"] == pytest.approx(0, abs=1e-4)


def _few_answers(kind, n, seed=3):
    """New models of a kind, `n` random answers each, and their shares right on all items."""
    made = simulated(kind, seed=seed).data
    truth = made.to_dense()
    rng = np.random.default_rng(seed)
    few = np.full(truth.shape, -1, np.int8)
    for row, answered in enumerate(truth):
        index = rng.choice(np.flatnonzero(answered >= 0), n, replace=False)
        few[row, index] = answered[index]
    full = np.array([row[row >= 0].mean() for row in truth])
    return new_models(few, made.item_ids), full


def test_by_benchmark_the_scores_and_their_intervals():
    fit = fitted("2pl-2d")
    data, _ = _few_answers("2pl-2d", 40)
    whole, parts = predict_score(fit, data), predict_score(fit, data, by="benchmark")
    codes, names = fit.groups()
    assert parts["benchmark"].tolist() == names * data.n_models
    assert (parts["score_lower"] <= parts["score"]).all()
    assert (parts["score"] <= parts["score_upper"]).all()
    share = np.bincount(codes) / len(codes)
    summed = parts["score"].to_numpy().reshape(-1, len(names)) @ share
    np.testing.assert_allclose(summed, whole["score"], atol=1e-4)
    # Effects have no mean over the models: what a benchmark adds is known less well than the whole.
    assert parts["score_se"].mean() > whole["score_se"].mean()


def test_predictions_beat_the_plain_mean_on_models_of_the_fitted_items():
    # Models of the fit, 40 of their 240 answers under new names: items know them a little.
    fit = fitted("2pl")
    full = fit.data.to_dense()
    rng = np.random.default_rng(0)
    few = np.where(rng.random(full.shape) < 40 / full.shape[1], full, -1)
    data = new_models(few, fit.data.item_ids)
    truth = np.array([row[row >= 0].mean() for row in full])
    found = predict_score(fit, data)
    error = {name: np.abs(found[name] - truth).mean() for name in ("score", "p_irt", "observed")}
    assert error["score"] < 0.9 * error["observed"]
    assert error["p_irt"] < 0.9 * error["observed"]
    inside = (found["score_lower"] <= truth) & (truth <= found["score_upper"])
    assert inside.mean() > 0.85


def test_gp_irt_lies_between_p_irt_and_the_anchors_weighted_share():
    fit = fitted("2pl")
    anchors = anchor_points(fit, 20)
    weights = dict(zip(anchors["item_id"], anchors["weight"], strict=True))
    assert sum(weights.values()) == pytest.approx(1)
    full = fit.data.to_dense()
    index = pd.Index(fit.data.item_ids).get_indexer(anchors["item_id"])
    few = np.full_like(full, -1)
    few[:, index] = full[:, index]
    data = new_models(few, fit.data.item_ids)
    found = predict_score(fit, data, anchor_weights=weights)
    each = np.array([weights[name] for name in fit.data.item_ids[index]])
    seen = full[:, index] >= 0
    share = (full[:, index] * seen) @ each / (seen @ each)
    low, high = np.minimum(share, found["p_irt"]), np.maximum(share, found["p_irt"])
    assert ((low - 1e-9 <= found["gp_irt"]) & (found["gp_irt"] <= high + 1e-9)).all()


def test_bad_input_is_refused_in_one_line():
    data = answers(_patterns())
    with pytest.raises(InputError, match="no item metadata column 'benchmark'"):
        predict_score(given().fit, data, by="benchmark")
    few, _ = _few_answers("2pl-2d", 40)
    with pytest.raises(InputError, match="effects of 'benchmark', so scores are by that column"):
        predict_score(fitted("2pl-2d"), few, by="topic")
    with pytest.raises(InputError, match="anchor 'x' is no item of the run"):
        predict_score(given().fit, data, anchor_weights={"x": 1.0})
    with pytest.raises(InputError, match="must be a number above 0"):
        predict_score(given().fit, data, anchor_weights={"item-0": -1.0})


def _models(is_odd, seed, n_items=600):
    """Answers of models of one 2PL; odd ones fail two thirds of what they would get right."""
    rng, items = np.random.default_rng(seed), np.random.default_rng(0)
    slope, intercept = items.lognormal(0, 0.3, n_items), items.normal(0.5, 1.5, n_items)
    p = expit(slope * rng.normal(size=(len(is_odd), 1)) + intercept)
    p = np.where(is_odd[:, None], 0.35 * p, p)
    return (rng.random(p.shape) < p).astype(float)


def test_models_unlike_the_fitted_ones_are_predicted_by_their_own_answers(monkeypatch):
    fit = quiet_fit(ResponseMatrix.from_dense(_models(np.zeros(12, bool), 5)))
    is_odd = np.arange(120) < 60
    truth = _models(is_odd, 2)
    full = truth.mean(axis=1)
    rng = np.random.default_rng(3)
    few = np.where(rng.random(truth.shape).argsort(axis=1).argsort(axis=1) < 100, truth, np.nan)
    data = new_models(few, fit.data.item_ids)

    def judged():
        found = predict_score(fit, data)
        is_held = (found["score_lower"] <= full) & (full <= found["score_upper"])
        error = {name: np.abs(found[name] - full) for name in ("score", "observed")}
        return error["score"].to_numpy(), error["observed"].to_numpy(), is_held.to_numpy()

    error, plain, is_held = judged()
    monkeypatch.setattr(predictive, "_SCALES", {1.0: 1.0})
    narrow, _, is_held_narrow = judged()
    assert error[is_odd].mean() < 0.9 * narrow[is_odd].mean()
    assert error[is_odd].mean() < 1.25 * plain[is_odd].mean()
    assert is_held_narrow[is_odd].mean() < 0.8
    assert is_held[is_odd].mean() > 0.85
    # Models like those that were fitted are predicted nearly as well as without.
    assert error[~is_odd].mean() < 1.05 * narrow[~is_odd].mean()
    assert error[~is_odd].mean() < 0.95 * plain[~is_odd].mean()
    assert is_held[~is_odd].mean() > 0.9


def test_a_model_is_predicted_alone_as_among_others():
    fit = fitted("2pl")
    data, _ = _few_answers("2pl", 30)
    dense = data.to_dense()[:5].astype(float)
    dense[dense < 0] = np.nan
    together = predict_score(fit, ResponseMatrix.from_dense(dense, item_ids=data.item_ids))
    for row in (0, 4):
        alone = predict_score(
            fit, ResponseMatrix.from_dense(dense[row : row + 1], item_ids=data.item_ids)
        )
        for name in ("score", "score_se", "score_lower", "score_upper"):
            assert alone[name][0] == pytest.approx(together[name][row], abs=2e-5), name

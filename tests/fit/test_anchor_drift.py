"""Anchors that drifted: against a plain sum over quadrature nodes, then drawn data."""

import functools

import numpy as np
import pytest
from scipy.special import expit

from irtjax.data.responses import ResponseMatrix
from irtjax.errors import IrtjaxWarning
from irtjax.fit.anchor_drift import anchor_drift
from irtjax.fit.anchors import make_anchors
from irtjax.fit.api import fit
from irtjax.fit.result import FitResult
from irtjax.model.spec import ModelSpec
from tests.fit.fitting import quiet_fit
from tests.fit.test_anchors import anchored, apart
from tests.tolerances import tolerance


def _plain_statistic(found, run, item, response):
    """The statistic of one 2PL item, inflation left out, by a dense grid over each ability."""
    table = run.item_parameters().set_index("item_id")
    slope, intercept = table.loc[item, ["dim1_slope", "intercept"]]
    packed = np.asarray(run.parameters.covariance, float)[table.index.get_loc(item), 0]
    if run.parameters.item_spread is not None:
        packed = packed + np.asarray(run.parameters.item_spread, float)[table.index.get_loc(item)]
    held = np.array([[packed[0], packed[1]], [packed[1], packed[2]]])
    score, squared, information = np.zeros(2), np.zeros((2, 2)), np.zeros((2, 2))
    z = np.linspace(-6, 6, 601)
    weight = np.exp(-(z**2) / 2)
    weight /= weight.sum()
    means = np.asarray(found.parameters.ability, float)[:, 0]
    sds = np.sqrt(np.asarray(found.parameters.ability_covariance, float)[:, 0, 0])
    for mean, sd, y in zip(means, sds, response, strict=True):
        theta = mean + sd * z
        p = expit(slope * theta + intercept)
        x = np.stack([theta, np.ones_like(theta)])
        each = x @ (weight * (y - p))
        score += each
        squared += np.outer(each, each)
        information += (x * weight * p * (1 - p)) @ x.T
    noise = (information + squared) / 2 + information @ held @ information
    return score @ np.linalg.solve(noise, score)


@pytest.mark.oracle
@pytest.mark.parametrize("estimator", ["marginal-items", "marginal-models"])
def test_statistics_are_those_of_a_plain_sum(estimator):
    both, found = apart(estimator), anchored(estimator)
    anchors = make_anchors(both.new, found.spec, both.run)
    drift = anchor_drift(both.new, found.spec, found.parameters, anchors, None)
    dense = both.new.to_dense()
    for k in (0, 1, 7):
        plain = _plain_statistic(found, both.run, both.new.item_ids[k], dense[:, k])
        actual = drift.statistic[k] * drift.inflation
        assert actual == pytest.approx(plain, rel=20 * tolerance("fit"), abs=1e-3)
    assert not drift.is_drifted.any()
    assert found.report["anchors"]["n_drifted"] == 0
    assert not found.item_parameters()["flags"].str.contains("drifted").any()


@functools.cache
def _drawn(dims=1):
    rng = np.random.default_rng(11)
    slope, intercept = np.exp(0.3 * rng.normal(size=(60, dims))), rng.normal(size=60)
    ids = [f"item-{k}" for k in range(60)]

    def answers(name, mean):
        logit = (mean + rng.normal(size=(120, dims))) @ slope.T + intercept
        right = (rng.random(logit.shape) < expit(logit)).astype(np.int8)
        return ResponseMatrix.from_dense(
            right, model_ids=[f"{name}-{k}" for k in range(120)], item_ids=ids
        )

    return answers("old", 0), answers("new", 0.5)


def _turned(data, items):
    dense = data.to_dense().copy()
    dense[:, items] = 1 - dense[:, items]
    return data.replace(dense=dense)


@pytest.mark.parametrize(
    "settings",
    [
        {"spec": ModelSpec(), "estimator": "marginal-items"},
        {"spec": ModelSpec("2pl", 2), "estimator": "marginal-items"},
        {"spec": ModelSpec("1pl"), "estimator": "marginal-models"},
    ],
    ids=["items", "items-2d", "models-1pl"],
)
def test_turned_items_are_named_flagged_and_kept_in_the_run(settings, tmp_path):
    old, new = _drawn(settings["spec"].dims)
    # Easy ones: by a common slope an item that half get right looks the same when turned.
    turned = np.sort(np.argsort(old.totals("items")[1])[-2:])
    names = [str(each) for each in old.item_ids[turned]]
    run = quiet_fit(old, **settings)
    with pytest.warns(IrtjaxWarning) as caught:
        found = fit(_turned(new, turned), anchors=run, **settings)
    said = [str(each.message) for each in caught if "drifted" in str(each.message)]
    assert len(said) == 1
    assert said[0].startswith("2 of 60 anchors drifted: ")
    assert all(repr(name) in said[0] for name in names)
    assert "irtjax link" in said[0]
    found.save(tmp_path / "run")
    again = FitResult.load(tmp_path / "run")
    assert again.report["anchors"]["drifted"] == names
    table = again.item_parameters()
    is_flagged = table["flags"].str.contains("drifted_anchor")
    assert table.loc[is_flagged, "item_id"].tolist() == names


@pytest.mark.parametrize("dims", [1, 2])
def test_one_unlikely_answer_of_few_models_is_no_drift(dims):
    old, new = _drawn(dims)
    run = quiet_fit(old, ModelSpec("2pl", dims), estimator="marginal-items")
    few = new.replace(
        dense=new.to_dense()[:5],
        model_ids=new.model_ids[:5],
        model_metadata=new.model_metadata.iloc[:5],
    )
    easiest = int(np.argmax(old.totals("items")[1]))
    found = quiet_fit(
        _turned(few, [easiest]), ModelSpec("2pl", dims), estimator="marginal-items", anchors=run
    )
    assert found.report["anchors"]["n_drifted"] == 0

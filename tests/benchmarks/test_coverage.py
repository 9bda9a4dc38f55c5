"""The coverage study: the frame of the truth, what counts as held, and what it reports."""

import numpy as np
import pytest
from rich.console import Console

from benchmarks import coverage as study
from benchmarks.coverage import Setting, Truth, coverage, covered, drawn
from tests.fit.fitting import fitted

ITEMS = Setting("marginal-items", 24, 240, 2)
MODELS = Setting("marginal-models", 100, 20, 2)


def test_the_truth_is_in_the_frame_of_the_fit():
    data, truth = drawn(ITEMS, 0)
    assert truth.ability.mean() == pytest.approx(0, abs=1e-12)
    assert truth.ability.std() == pytest.approx(1)
    # The items moved along: the probabilities are still those of the responses.
    logit = truth.ability[:, None] * truth.slope + truth.intercept
    p = 1 / (1 + np.exp(-logit))
    z = np.sum(data.to_dense() - p) / np.sqrt(np.sum(p * (1 - p)))
    assert abs(z) < 4
    away = np.corrcoef((data.to_dense() - p).ravel(), p.ravel())[0, 1]
    assert abs(away) < 4 / np.sqrt(p.size)
    _, truth = drawn(MODELS, 0)
    assert abs(truth.ability.mean()) > 1e-6  # the population's frame is not the sample's


def test_clusters_are_equal_and_their_effects_are_not_in_the_truth():
    data, _ = drawn(Setting("marginal-items", 24, 240, 1, n_clusters=16), 0)
    codes, names = data.groups("benchmark")
    assert len(names) == 16
    np.testing.assert_array_equal(np.bincount(codes), 15)


def test_an_estimate_holds_itself_and_not_what_is_far_from_it():
    result = fitted("3pl")
    items = result.item_parameters()
    slope = items.dim1_slope.to_numpy()
    intercept = items.intercept.to_numpy()
    ability = result.abilities().dim1_ability.to_numpy()
    truth = Truth(ability, slope, intercept, items.guessing.to_numpy())
    held = covered(result, truth)
    assert set(held) == {"ability", "slope", "intercept", "difficulty", "guessing"}
    assert all(np.all(each) for each in held.values())
    assert len(held["difficulty"]) == np.sum(slope > 0.5)
    far = covered(result, Truth(ability + 50, slope + 50, intercept + 50, items.guessing + 50))
    assert not any(np.any(far[name]) for name in ("ability", "slope", "intercept", "guessing"))


def test_a_setting_is_reported_with_its_errors_and_its_table():
    found = coverage(MODELS)
    assert sum(found["statuses"].values()) == found["replications"] == 2
    assert set(found["coverage"]) == {"ability", "slope", "intercept", "difficulty"}
    assert all(0.7 < share <= 1 for share in found["coverage"].values())
    console = Console(width=200, record=True)
    console.print(study.table({MODELS.name: found}))
    text = console.export_text()
    assert "marginal-models 2pl 100 x 20" in text
    assert f"{found['coverage']['ability']:.3f}" in text


def test_settings_have_names_of_their_own():
    names = [setting.name for setting in study.SETTINGS]
    assert len(set(names)) == len(names)

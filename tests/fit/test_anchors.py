"""Fits beside the fixed items of another one: the new models' mean and sd, and new items."""

import dataclasses
import functools
import warnings

import numpy as np
import pandas as pd
import pytest

from irtjax.data.responses import ResponseMatrix
from irtjax.data.simulate import simulate
from irtjax.errors import InputError, IrtjaxWarning
from irtjax.fit.anchors import make_anchors, warn_of_seen_models
from irtjax.fit.api import fit
from irtjax.model.spec import ModelSpec
from irtjax.score.models import score_models
from tests.fit.fitting import fitted, quiet_fit, simulated
from tests.fit.populations_apart import MEAN, SD, SHAPES, apart, likeliest_population


@functools.cache
def anchored(estimator):
    both = apart(estimator)
    return quiet_fit(both.new, estimator=estimator, anchors=both.run)


def part_of(data, items):
    """The data with these items only."""
    return ResponseMatrix.from_dense(
        data.to_dense()[:, items],
        model_ids=list(data.model_ids),
        item_ids=list(data.item_ids[items]),
        item_metadata=data.item_metadata.iloc[items].reset_index(drop=True),
    )


@pytest.mark.parametrize("estimator", SHAPES)
def test_mean_and_sd_of_another_population_are_found_on_the_old_scale(estimator):
    both, found = apart(estimator), anchored(estimator)
    models = found.report["new_models"]
    assert found.status == "converged"
    # Errors of the mean and sd of these models, given who they are, and of the anchors' link.
    assert models["mean"][0] == pytest.approx(both.ability.mean(), abs=0.08)
    assert models["sd"][0] == pytest.approx(both.ability.std(), abs=0.12)
    assert (models["mean"][0], models["sd"][0]) == pytest.approx((MEAN, SD), abs=0.2)
    table = found.abilities()
    away = (table["dim1_ability"] - both.ability) / table["dim1_ability_se"]
    assert np.sqrt(np.mean(away**2)) == pytest.approx(1, abs=0.2)


def test_anchors_of_a_run_with_effects_ask_for_effects():
    run = fitted("2pl-2d")
    with pytest.warns(IrtjaxWarning, match=r"effects of 'benchmark' and .* pass group benchmark"):
        make_anchors(run.data, run.spec, run)
    assert make_anchors(run.data, run.spec, run, "benchmark").n_anchors == run.data.n_items


@pytest.mark.parametrize("estimator", SHAPES)
def test_new_items_are_on_the_old_scale_and_old_ones_as_they_were(estimator):
    both, found = apart(estimator), anchored(estimator)
    old, table = both.run.item_parameters().set_index("item_id"), found.item_parameters()
    kept, new = table.iloc[: both.n_anchors], table.iloc[both.n_anchors :]
    for name in ("dim1_slope", "intercept", "dim1_slope_se", "intercept_se", "difficulty"):
        np.testing.assert_allclose(kept[name], old.loc[kept["item_id"], name], atol=1e-6)
    for name, truth in (("dim1_slope", both.slope), ("intercept", both.intercept)):
        away = (new[name] - truth[both.n_anchors :]) / new[f"{name}_se"]
        assert np.sqrt(np.mean(away**2)) == pytest.approx(1, abs=0.35), name
    anchors = found.report["anchors"]
    assert (anchors["n_anchors"], anchors["n_new_items"]) == (both.n_anchors, both.n_anchors)


@pytest.mark.oracle
def test_where_all_items_are_known_the_population_is_the_likeliest():
    both = apart("marginal-models")
    known = part_of(both.new, np.arange(both.n_anchors))
    found = quiet_fit(known, estimator="marginal-models", anchors=both.run)
    items = found.item_parameters()
    expected = likeliest_population(
        known.to_dense().astype(float),
        items["dim1_slope"].to_numpy(),
        items["intercept"].to_numpy(),
    )
    models = found.report["new_models"]
    assert (models["mean"][0], models["sd"][0]) == pytest.approx(expected, abs=1e-3)


@functools.cache
def known_to_few(dims):
    """A run of 20 models, whose items it hardly knows, and 60 models that it has not seen."""
    spec = ModelSpec("2pl", dims)
    data = simulate(spec, n_models=80, n_items=300, seed=dims).data
    run = quiet_fit(_models(data, slice(0, 20)), spec)
    return run, _models(data, slice(20, 80))


def _models(data, rows):
    return ResponseMatrix.from_dense(
        data.to_dense()[rows], model_ids=data.model_ids[rows], item_ids=data.item_ids
    )


@pytest.mark.parametrize("dims", [1, 2])
def test_new_models_have_the_abilities_that_scoring_gives_them(dims):
    """However little is known of the anchors: models do not stay near the mean for it."""
    run, new = known_to_few(dims)
    found = quiet_fit(new, run.spec, anchors=run)
    assert found.status == "converged"
    scored = score_models(run, new)
    for k in range(1, dims + 1):
        ability, expected = found.abilities()[f"dim{k}_ability"], scored[f"dim{k}_ability"]
        assert np.polyfit(expected, ability, 1)[0] == pytest.approx(1, abs=0.07)
        away = (ability - expected) / scored[f"dim{k}_ability_se"]
        assert np.sqrt(np.mean(away**2)) < 0.6
    np.testing.assert_array_equal(found.ability_correlations(), run.ability_correlations())


def test_models_that_made_the_anchors_are_warned_of():
    run, new = known_to_few(1)
    with pytest.warns(IrtjaxWarning, match="20 models with answers that the run .* count twice"):
        warn_of_seen_models(run.data, run)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_seen_models(new, run)
        # Other models of the same ids agree by chance.
        named = _models(new, slice(0, 20)).replace(model_ids=run.data.model_ids)
        warn_of_seen_models(named, run)


@pytest.mark.parametrize("family", ["rasch", "3pl"])
def test_families_of_marginal_models_keep_their_slopes_and_asymptotes(family):
    made = simulated("2pl").data
    tall = ResponseMatrix.from_dense(made.to_dense().T[:, :12])
    spec = ModelSpec(family)
    run = quiet_fit(part_of(tall, np.arange(9)), spec, estimator="marginal-models")
    found = quiet_fit(tall, spec, estimator="marginal-models", anchors=run)
    old, new = run.item_parameters(), found.item_parameters()
    for name in ("dim1_slope", "intercept", "guessing", "guessing_se", "dim1_slope_se"):
        np.testing.assert_allclose(new[name][:9], old[name], atol=1e-6, err_msg=name)
    assert np.isfinite(new[["dim1_slope", "intercept", "intercept_se"]].to_numpy()).all()
    if family == "rasch":
        np.testing.assert_allclose(new["dim1_slope"], 1, atol=1e-6)
    assert found.report["n_parameters"] == 3 * (1 if family == "rasch" else 3) + 2


def test_an_anchored_fit_is_saved_and_loaded_with_its_scale(tmp_path):
    found = anchored("marginal-items")
    found.save(tmp_path / "run")
    again = type(found).load(tmp_path / "run")
    pd.testing.assert_frame_equal(again.item_parameters(), found.item_parameters())
    assert again.report["new_models"] == found.report["new_models"]


def refusals():
    run = apart("marginal-items").run
    others = np.array([f"new {k}" for k in range(run.data.n_models)], object)
    data = run.data.replace(model_ids=others)
    none = np.full((3, data.n_items), -1)
    none[:, 0] = 1
    other = ["other", *data.item_ids[1:]]
    unanswered = ResponseMatrix.from_dense(none, item_ids=other)
    strangers = ResponseMatrix.from_dense(data.to_dense())
    diverged = dataclasses.replace(run, report=run.report | {"status": "diverged"})
    return {
        "dims": (data, ModelSpec("2pl", 2), {}, "2pl with 1 dim, the new fit is a 2pl with 2 dims"),
        "family": (data, ModelSpec("3pl"), {}, "use family 2pl and dims 1"),
        "ids": (
            strangers.replace(item_ids=np.array([f"x{k}" for k in range(data.n_items)], object)),
            None,
            {},
            "none of the 160 items is one of the run's 160 by id",
        ),
        "answers": (unanswered, None, {}, "no anchor was answered: the run knows 159 items"),
        "joint": (data, None, {"estimator": "joint-map"}, "anchors do not go with estimator joint"),
        "psn": (data, None, {"estimator": "psn"}, "anchors do not go with estimator psn"),
        "unread": (
            data,
            None,
            {"estimator": "psn", "anchors": "absent"},
            "anchors do not go with estimator psn",
        ),
        "grid": (data, None, {"item_distribution": "empirical"}, "an empirical item distribution"),
        "loadings": (data, None, {"loadings": np.ones((160, 1), bool)}, "go with loadings"),
        "alone": (
            _models(data, slice(0, 1)),
            None,
            {"anchors": run},
            "one model has no mean and sd to be estimated beside the anchors; place it with irtjax",
        ),
        "diverged": (data, None, {"anchors": diverged}, "the run of the anchors diverged"),
        "nothing": (data, None, {"anchors": 3}, "anchors must be a FitResult or the folder"),
    }


REFUSED = (
    "alone",
    "answers",
    "dims",
    "diverged",
    "family",
    "grid",
    "ids",
    "joint",
    "loadings",
    "nothing",
    "psn",
    "unread",
)


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_anchored_is_refused_in_one_line(name):
    data, spec, settings, message = refusals()[name]
    with pytest.raises(InputError, match=message) as caught:
        fit(data, spec, **({"anchors": apart("marginal-items").run} | settings))
    assert "\n" not in str(caught.value)

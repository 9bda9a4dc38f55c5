"""`rotate` and `align`: predictions stay, everything published moves together."""

import dataclasses
import functools

import numpy as np
import pytest

import irtjax as ij
from irtjax.fit.rotation import loadings
from irtjax.fit.rotations import METHODS
from irtjax.fit.scale_change import ScaleChange
from irtjax.fit.tables import slope_and_intercept
from tests.tolerances import close, tolerance

ROTATIONS = [name for name in METHODS if name not in ("target", "procrustes")]


@functools.cache
def fitted(group=None, family="2pl", item_distribution="normal"):
    spec = ij.ModelSpec(family, dims=2)
    data = ij.simulate(spec, n_models=30, n_items=160, n_benchmarks=2, seed=3).data
    return ij.fit(data, spec, group=group, item_distribution=item_distribution, max_steps=15)


@pytest.fixture(autouse=True)
def _unfinished():
    """A few steps are enough of a fit: what is tested here is its frame."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ij.IrtjaxWarning)
        yield


def probabilities(fit):
    model, item = np.divmod(np.arange(fit.data.n_models * fit.data.n_items), fit.data.n_items)
    return fit.predict_cells(model, item)


def in_another_frame(fit, seed=0):
    """Turned at random, as a refit may be."""
    turn = np.linalg.qr(np.random.default_rng(seed).normal(size=(2, 2)))[0]
    moved = ScaleChange(turn, np.zeros(2)).apply_to_fit(fit.parameters)
    return dataclasses.replace(fit, parameters=moved)


def same_estimates(one, other, atol):
    for name in ("ability", "mean", "covariance", "ability_covariance", "population_covariance"):
        np.testing.assert_allclose(
            getattr(one.parameters, name), getattr(other.parameters, name), atol=atol
        )


@pytest.mark.oracle
@pytest.mark.parametrize("method", [*ROTATIONS, "target", "procrustes"])
@pytest.mark.parametrize("group", [None, "benchmark"])
def test_probabilities_are_those_before(method, group):
    fit = fitted(group)
    target = None
    if method in ("target", "procrustes"):
        target = np.where(np.arange(2) == (np.arange(fit.data.n_items) % 2)[:, None], np.nan, 0.0)
    found = ij.rotate(fit, method, target=target)
    np.testing.assert_allclose(probabilities(found), probabilities(fit), rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    "settings",
    [{"family": "3pl"}, {"group": "benchmark", "item_distribution": "mixture"}],
    ids=["3pl", "mixture"],
)
def test_probabilities_of_other_families_and_distributions_are_those_before(settings):
    fit = fitted(**settings)
    found = ij.rotate(fit, "geomin")
    np.testing.assert_allclose(probabilities(found), probabilities(fit), rtol=0, atol=1e-6)


@pytest.mark.oracle
@pytest.mark.parametrize("method", ["quartimin", "geomin"])
def test_an_oblique_frame_by_its_definition(method):
    # theta T with Phi = T' T, slopes a (T')^-1, covariances by the same linear maps.
    fit = fitted()
    found = ij.rotate(fit, method)
    theta, other = (np.asarray(each.parameters.ability, float) for each in (fit, found))
    transform = np.linalg.lstsq(theta, other, rcond=None)[0]
    close(other, theta @ transform, kind="solve")
    correlation = found.ability_correlations()
    close(correlation, transform.T @ transform, kind="solve")
    assert np.abs(correlation[0, 1]) > 0.005
    np.testing.assert_allclose(np.diagonal(correlation), 1, atol=tolerance("solve"))
    slope, intercept, covariance = slope_and_intercept(fit)
    new_slope, new_intercept, new_covariance = slope_and_intercept(found)
    back = np.linalg.inv(transform)
    close(new_slope, slope @ back.T, kind="solve")
    close(new_intercept, intercept, kind="solve")
    lift = np.eye(3)
    lift[:2, :2] = back
    close(new_covariance, lift @ covariance @ lift.T, kind="solve")
    spread, new_spread = (
        np.asarray(each.parameters.ability_covariance, float) for each in (fit, found)
    )
    close(new_spread, transform.T @ spread @ transform, kind="solve")
    # What does not depend on the frame: discrimination, difficulty, and their errors.
    before, after = fit.item_parameters(), found.item_parameters()
    for name in ("discrimination", "difficulty", "discrimination_se", "difficulty_se"):
        is_far = np.abs(before["difficulty"]) < 20
        close(after[name][is_far], before[name][is_far], kind="fit", scale=10)


@pytest.mark.parametrize("method", ROTATIONS)
def test_the_way_back_is_the_canonical_frame(method):
    fit = ij.rotate(fitted(), "varimax")
    same_estimates(ij.rotate(ij.rotate(fit, method), "varimax"), fit, 1e-4)
    same_estimates(ij.rotate(in_another_frame(fit), "varimax"), fit, 1e-4)


def test_rotated_dims_are_ordered_by_what_they_explain_and_rise_with_accuracy():
    found = ij.rotate(in_another_frame(fitted()), "geomin")
    assert found.report["rotation"]["method"] == "geomin"
    assert found.report["rotation"]["is_converged"]
    correlation = found.ability_correlations()
    loading = loadings(slope_and_intercept(found)[0], correlation)
    explained = np.sum(loading * (loading @ correlation), axis=0)
    assert explained[0] > explained[1]
    models = found.abilities()
    for k in (1, 2):
        assert models[f"dim{k}_ability"].corr(models["p_correct"]) > 0
    told = [dim["explained_variance"] for dim in found.report["dimensions"]]
    np.testing.assert_allclose(told, np.mean(loading**2, axis=0), rtol=1e-4)


def test_a_target_by_ids_leaves_other_items_free():
    fit = fitted()
    wanted = fit.item_parameters()[["item_id", "dim2_loading", "dim1_loading"]]
    wanted.columns = ["item_id", "first", "second"]
    found = ij.rotate(fit, "target", target=wanted.iloc[::-1].head(100))
    np.testing.assert_allclose(
        found.parameters.ability, np.asarray(fit.parameters.ability)[:, ::-1], atol=1e-4
    )


@pytest.mark.oracle
@pytest.mark.parametrize("by", ["auto", "models", "items"])
@pytest.mark.parametrize("method", ["varimax", "quartimin"])
def test_align_finds_the_frame_of_the_reference(by, method):
    reference = ij.rotate(fitted(), method)
    found = ij.align(in_another_frame(fitted(), 5), reference, by=by)
    same_estimates(found, reference, tolerance("fit"))
    np.testing.assert_allclose(probabilities(found), probabilities(reference), rtol=0, atol=1e-6)
    assert found.report["aligned_by"] == ("models" if by == "auto" else by)


def test_align_by_what_two_fits_have_in_common():
    fit = fitted()
    data = fit.data
    half = ij.ResponseMatrix.from_dense(
        data.to_dense()[:, 80:][::-1],
        model_ids=data.model_ids[::-1],
        item_ids=data.item_ids[80:],
    )
    other = ij.fit(half, fit.spec, max_steps=15)
    found = ij.align(other, fit)
    assert found.report["aligned_by"] == "models"
    one, two = (each.abilities().set_index("model_id") for each in (found, fit))
    for k in (1, 2):
        assert one[f"dim{k}_ability"].corr(two[f"dim{k}_ability"]) > 0.7
    few = ij.ResponseMatrix.from_dense(data.to_dense()[:15], item_ids=data.item_ids)
    few = few.replace(model_ids=np.array([f"new-{k}" for k in range(15)]))
    found = ij.align(ij.fit(few, fit.spec, max_steps=15), fit)
    assert found.report["aligned_by"] == "items"


def test_one_dim_and_confirmatory_fits_change_signs_only():
    data = ij.simulate(ij.ModelSpec(), n_models=20, n_items=60).data
    fit = ij.fit(data, max_steps=10)
    flipped = dataclasses.replace(
        fit, parameters=ScaleChange(-np.eye(1), np.zeros(1)).apply_to_fit(fit.parameters)
    )
    same_estimates(ij.align(flipped, fit), fit, 0)
    with pytest.raises(ij.InputError, match="one dim cannot be rotated"):
        ij.rotate(fit)
    given = dataclasses.replace(fitted(), report=fitted().report | {"dim_names": ["a", "b"]})
    with pytest.raises(ij.InputError, match="its loadings fix the frame"):
        ij.rotate(given)
    turn = ScaleChange(np.diag([1.0, -1.0]), np.zeros(2))
    other = dataclasses.replace(given, parameters=turn.apply_to_fit(given.parameters))
    same_estimates(ij.align(other, given), given, 0)


def test_a_rotated_run_is_saved_and_loaded(tmp_path):
    found = ij.rotate(fitted("benchmark"), "quartimin")
    found.save(tmp_path / "run")
    loaded = ij.FitResult.load(tmp_path / "run")
    same_estimates(loaded, found, 0)
    assert loaded.report["rotation"]["method"] == "quartimin"
    np.testing.assert_allclose(
        loaded.report["ability_correlations"], found.ability_correlations(), rtol=1e-12
    )


def test_clustered_errors_are_kept_or_said_to_be_unknown():
    spec = ij.ModelSpec(dims=2)
    data = ij.simulate(spec, n_models=20, n_items=200, n_benchmarks=10, seed=1).data
    fit = ij.fit(data, spec, max_steps=10)
    assert np.isfinite(fit.abilities()["dim1_ability_se_clustered"]).all()
    found = ij.rotate(fit, "geomin")
    assert found.abilities()["dim1_ability_se_clustered"].isna().all()
    assert found.report["clustered_se"].startswith("empty: not known in a frame")


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda fit: ij.rotate(fit, "promax"), "rotation 'promax' is not known"),
        (lambda fit: ij.rotate("run"), "rotate takes a FitResult, not str"),
        (lambda fit: ij.rotate(fit, "target", target=[["a"]]), "the target must be numbers"),
        (
            lambda fit: ij.rotate(
                fit, "target", target=fit.item_parameters()[["item_id"]].assign(item_id="x").head(1)
            ),
            "1 row for items that are not in the fit",
        ),
        (lambda fit: ij.align(fit, "run"), "takes a FitResult as reference"),
        (lambda fit: ij.align(fit, fit, by="dims"), "by is one of auto, models, items"),
        (
            lambda fit: ij.align(
                fit,
                dataclasses.replace(
                    fit, data=fit.data.replace(model_ids=np.char.add("x", fit.data.model_ids))
                ),
                by="models",
            ),
            "have 0 models in common",
        ),
    ],
)
def test_bad_input_is_refused_in_one_line(call, message):
    with pytest.raises(ij.InputError, match=message):
        call(fitted())

"""Requests: what has no use is refused, not ignored, and what was chosen and found is reported."""

import dataclasses
import json

import numpy as np
import pandas as pd
import pytest

import irtjax as ij
from irtjax.data.responses import ResponseMatrix
from irtjax.errors import InputError
from irtjax.fit.api import fit
from irtjax.fit.request import make_request
from irtjax.model.priors import LogNormal, Normal, Priors
from irtjax.model.spec import ModelSpec
from tests.fit.fitting import quiet_fit, simulated

WIDE = simulated("2pl").data  # marginal-items by shape
TALL = ij.lsat7()
MASK = np.repeat(np.eye(2, dtype=int), [3, 2], axis=0)


@pytest.mark.parametrize(
    "data, family, settings, message",
    [
        (WIDE, "2pl", {"priors": Priors(slope=Normal(0, 1))}, r"prior slope=normal\(0, 1\) has no"),
        (WIDE, "2pl", {"priors": Priors(intercept=Normal(0, 1))}, "marginal-items integrates"),
        (WIDE, "2pl", {"priors": Priors.off()}, "prior slope=off has no use: .*--no-priors"),
        (WIDE, "3pl", {"priors": Priors.off()}, "prior slope=off has no use"),
        (WIDE, "2pl", {"priors": Priors(guessing=(4, 9))}, "family 2pl has no guessing; .* 3pl or"),
        (WIDE, "3pl", {"priors": Priors(infeasibility=(4, 9))}, "3pl has no infeasibility"),
        (WIDE, "2pl", {"priors": Priors(effect_variance=0.5)}, "name a group"),
        (WIDE, "2pl", {"priors": Priors(share_weight=2)}, "share_weight=2.0 has no use"),
        (TALL, "2pl", {"priors": Priors(guessing=(4, 9))}, r"guessing=beta\(4, 9\) has no use"),
        (TALL, "2pl", {"priors": Priors(mean_weight=2)}, "marginal-models does not have"),
        (TALL, "2pl", {"estimator": "joint-map", "priors": Priors(trace_penalty=0)}, "joint-map"),
        (WIDE, "2pl", {"components": 2}, "components=2 belongs to item distribution mixture"),
        (WIDE, "2pl", {"components": "4"}, "components must be a whole number, not '4'"),
        (WIDE, "2pl", {"components": 2.5}, "components must be a whole number, not 2.5"),
        (WIDE, "2pl", {"nodes": 7.5}, "nodes must be a whole number, not 7.5"),
        (WIDE, "2pl", {"nodes": "7"}, "nodes must be a whole number, not '7'"),
        (TALL, "2pl", {"starts": 1.5}, "starts must be a whole number, not 1.5"),
        (WIDE, "2pl", {"max_steps": None}, "max_steps must be a whole number, not None"),
        (WIDE, "2pl", {"group": ["benchmark"]}, r"group, .* must be text, not \['benchmark'\]"),
        (WIDE, "2pl", {"model_group": 3}, "model_group, .* must be text, not 3"),
        (WIDE, "2pl", {"estimator": None}, "estimator must be text, not None"),
        (WIDE, "2pl", {"general": "yes"}, "general must be True or False, not 'yes'"),
        (WIDE, "2pl", {"priors": "off"}, "priors must be Priors, not 'off'; write Priors.off()"),
        (WIDE, "2pl", {"priors": {"slope": 1}}, "priors must be Priors, not {'slope': 1}"),
        (
            WIDE,
            "2pl",
            {"loadings": "benchmark", "correlated": True},
            r"correlated has no use in marginal-items \(auto: with .*they correlate as they do",
        ),
        (
            TALL,
            "2pl",
            {"loadings": np.ones((5, 1), int), "correlated": True},
            "correlated needs loadings on at least 2 dims",
        ),
        (TALL, "rasch", {"loadings": MASK}, "rasch with 2 dims has no common scale"),
    ],
)
def test_what_has_no_use_or_no_meaning_is_refused(data, family, settings, message):
    with pytest.raises(InputError, match=message) as caught:
        make_request(data, ModelSpec(family), **settings)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"spec": {}}, r"the spec must be a ModelSpec, not {}; write ModelSpec\('2pl', dims=1\)"),
        ({"spec": "3pl"}, r"not '3pl'; write ModelSpec\('3pl'\)"),
        ({"checkpoints": "x"}, r"checkpoints must be Checkpoints\(folder, every\), not 'x'"),
        ({"devices": 3}, "devices must be a list of jax.Device, not 3"),
        ({"devices": []}, "not an empty list"),
        ({"devices": ["cpu"]}, "as in jax.devices.., not 'cpu'"),
        ({"on_look": 3}, "on_look must be a function of the progress, not 3"),
    ],
)
def test_arguments_of_other_types_are_refused(settings, message):
    with pytest.raises(InputError, match=message):
        fit(WIDE, **settings)


def test_switching_off_what_is_not_there_is_no_mistake():
    assert make_request(TALL, ModelSpec("2pl"), priors=Priors.off()).route.integrated == "models"
    assert make_request(TALL, ModelSpec("2pl"), max_steps=np.int64(9)).settings.max_steps == 9


@pytest.mark.parametrize(
    "data, family, settings, names",
    [
        (WIDE, "2pl", {}, "mean_weight covariance_weight covariance_floor trace_penalty"),
        (
            WIDE,
            "4pl",
            {"group": "benchmark", "item_distribution": "mixture"},
            "mean_weight covariance_weight share_weight covariance_floor trace_penalty "
            "effect_variance guessing infeasibility",
        ),
        (WIDE, "3pl", {"item_distribution": "empirical"}, "share_weight covariance_floor guessing"),
        (TALL, "2pl", {}, "slope intercept"),
        (TALL, "3pl", {}, "guessing slope intercept"),
        (TALL, "2pl", {"estimator": "joint-map"}, "slope intercept"),
    ],
)
def test_the_report_names_the_priors_in_use(data, family, settings, names):
    request = make_request(data, ModelSpec(family), **settings)
    assert list(request.identity()["priors"]) == names.split()


def test_a_finished_report_names_no_others():
    joint = quiet_fit(TALL, estimator="joint-map", max_steps=5)
    assert joint.report["priors"] == {"slope": "normal(1, 1)", "intercept": "normal(0, 2)"}


def test_every_prior_is_in_use_or_refused():
    reported = make_request(WIDE, ModelSpec("3pl")).identity()["priors"]
    assert reported["guessing"] == "beta(5, 17)"
    changed = {"guessing": (9.0, 9.0), "mean_weight": 9.0, "covariance_weight": 99.0}
    changed |= {"covariance_floor": 0.5, "trace_penalty": 0.5, "slope": LogNormal()}
    changed |= {"intercept": Normal(0, 1), "share_weight": 9.0, "effect_variance": 2.0}
    changed |= {"infeasibility": (9.0, 9.0)}
    assert changed.keys() == {field.name for field in dataclasses.fields(Priors)}
    for name, value in changed.items():
        priors = Priors(**{name: value})
        if name in reported:
            request = make_request(WIDE, ModelSpec("3pl"), priors=priors)
            assert request.identity()["priors"] != reported
        else:
            with pytest.raises(InputError, match=f"prior {name}="):
                make_request(WIDE, ModelSpec("3pl"), priors=priors)


def test_groups_of_models_are_described():
    code = np.arange(TALL.n_models) % 3 == 0
    names = np.where(code, "third", "rest")
    data = TALL.replace(model_metadata=pd.DataFrame({"cohort": names}))
    result = quiet_fit(data, model_group="cohort")
    groups = result.report["model_groups"]
    assert [group["name"] for group in groups] == ["third", "rest"]
    assert [group["n_models"] for group in groups] == [334, 666]
    np.testing.assert_allclose((groups[0]["mean"], groups[0]["sd"]), [[0], [1]], atol=1e-3)
    ability = result.abilities()["dim1_ability"].to_numpy()
    assert abs(groups[1]["mean"][0] - ability[~code].mean()) < 0.05
    json.dumps(groups)


def test_correlations_of_abilities_are_in_the_report_of_a_confirmatory_fit():
    result = quiet_fit(TALL, loadings=MASK, correlated=True, quadrature="fixed", nodes=11)
    found = np.array(result.report["ability_correlations"])
    np.testing.assert_array_equal(found, result.ability_correlations())
    assert found[0, 1] == pytest.approx(found[1, 0])
    assert found[0, 1] != 0
    assert "ability_correlations" not in quiet_fit(TALL).report


def test_components_are_reported_of_mixtures_only():
    assert "components" not in quiet_fit(TALL).report["asked"]
    with pytest.raises(InputError, match="ResponseMatrix"):
        fit(ResponseMatrix)
